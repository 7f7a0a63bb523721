import Foundation
import RealmSwift
import SluiceCore
import SluicePostgres
import SluiceValues
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct `A table with a composite key` {
    @Test @MainActor func `has a key of its own by the printed statement, and is served`() async throws {
        try await `sluice init`.with(TableShop.tables + "INSERT INTO order_lines VALUES (7, 1, 'Soap'), (7, 2, 'Rope');") {
            conninfo, folder in
            let app = folder + "/shop"
            let words = ["init", app, "--postgres", conninfo]
            let first = try await Program.sluice(words + ["--yes"])
            let left = try JSON.parse(try await Program.sluice(words + ["--json"]).out)["left_out"]?.array
            let statement = left?.first { $0["table"]?.string == "public.order_lines" }?["statement"]?.string
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script(try #require(statement))
            let second = try await Program.sluice(words + ["--yes"])
            #expect(second.out.contains("OrderLine: table public.order_lines, key _id"), "\(second)")
            try `sluice init`.opening(first.out).write(
                toFile: app + "/data_sources/postgres/default_rule.json", atomically: true, encoding: .utf8)
            let gateway = try ServedGateway(["serve", "--app", app, "--postgres", conninfo, "--json"])
            try await gateway.start()
            do {
                try await Self.useLines(gateway, URL(fileURLWithPath: folder))
            } catch {
                Issue.record("the gateway said: \(gateway.said.suffix(3_000))")
                await gateway.stop()
                throw error
            }
            await gateway.stop()
            let rows = try await connection.query("SELECT concat_ws(' ', order_no, line, article) FROM order_lines ORDER BY line")
            #expect(rows.column(0) == ["7 1 Soap", "7 2 Rope", "7 3 Tape"])
            await connection.close()
        }
    }

    /// Reads two lines of an order, and adds the third.
    @MainActor private static func useLines(_ gateway: ServedGateway, _ folder: URL) async throws {
        let app = App(id: "shop", configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder))
        try await app.emailPasswordAuth.registerUser(email: "kim@example.com", password: "secret123")
        let user = try await app.login(credentials: .emailPassword(email: "kim@example.com", password: "secret123"))
        var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
            subscriptions.append(QuerySubscription<ShopOrder>())
            subscriptions.append(QuerySubscription<ShopLine>())
        })
        configuration.objectTypes = [ShopOrder.self, ShopCustomer.self, ShopLine.self]
        configuration.fileURL = folder.appendingPathComponent("kim.realm")
        let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .once)
        let session = try #require(realm.syncSession)
        let lines = realm.objects(ShopLine.self).sorted(byKeyPath: "line")
        #expect(lines.map(\.article) == ["Soap", "Rope"] && lines.allSatisfy { $0.order_no?._id == 7 })
        try realm.write {
            let line = ShopLine()
            (line.order_no, line.line, line.article) = (lines.first?.order_no, 3, "Tape")
            realm.add(line)
        }
        try await session.wait(for: .upload)
        session.suspend()
    }
}
