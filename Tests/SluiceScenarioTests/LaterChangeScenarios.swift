import Foundation
import GatewayTestSupport
import SluiceSDK
import Testing

/// The download of what changes after a subscription set is complete, also of a Realm in memory.
@Suite(.timeLimit(.minutes(5))) struct `Later changes` {
    private static let rows = "INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1), ('n2', 'north', 2)"

    @MainActor
    @Test func `Scenario 20: progress that is reported for good tells of the changes after a download, of none that are not its own`()
        async throws
    {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            let (always, once) = (Steps(), Steps())
            let tokens = [
                phone.session.addProgressNotification(for: .download, mode: .reportIndefinitely) { always.add($0) },
                phone.session.addProgressNotification(for: .download, mode: .forCurrentlyOutstandingWork) { once.add($0) },
            ]
            await always.wait { $0 == [1] }
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 's' || i, 'south', i FROM generate_series(1, 10) AS i")
            try await phone.session.wait(for: .download)
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'm' || i, 'north', i FROM generate_series(1, 3000) AS i")
            try await phone.wait { $0.count == 3_002 }
            await always.wait { $0.filter { $0 == 1 }.count == 2 && $0.last == 1 }
            let later = always.all.dropFirst().dropLast()
            #expect(!later.isEmpty && later.allSatisfy { $0 < 1 } && later.elementsEqual(later.sorted()), "\(always.all)")
            try await gateway.sql("DELETE FROM orders WHERE _id = 'n1'")
            await always.wait { $0.filter { $0 == 1 }.count == 3 && $0.last == 1 }
            #expect(once.all == [1])
            withExtendedLifetime(tokens) {}
        }
    }

    @MainActor
    @Test func `a synced Realm in memory downloads, follows, uploads, and downloads afresh when it is opened again`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql(Self.rows)
            let (said, folder) = (Phone.Said(), try Phone.Folder())
            let user = try await Phone.user(gateway, said, folder)
            var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
                subscriptions.append(QuerySubscription<Order>(name: "north", where: "store == 'north'"))
            })
            configuration.objectTypes = [Order.self, Tag.self]
            configuration.inMemoryIdentifier = "orders-\(folder.url.lastPathComponent)"
            let memory = configuration
            @MainActor func use(_ before: Set<String>, adding key: String) async throws {
                let realm = try await Realm(configuration: memory, downloadBeforeOpen: .always)
                #expect(Set(realm.objects(Order.self).map(\._id)) == before)
                try realm.write { _ = realm.create(Order.self, value: ["_id": key, "store": "north", "size": 3]) }
                try await gateway.sql("UPDATE orders SET size = size + 1 WHERE _id = 'n1'")
                try await realm.syncSession?.wait(for: .upload)
                try await realm.waitUntilSynced(timeout: 60)
                #expect(Set(realm.objects(Order.self).map(\._id)) == before.union([key]))
            }
            try await use(["n1", "n2"], adding: "a")
            try await use(["n1", "n2", "a"], adding: "b")
            #expect(try await gateway.count("SELECT size FROM orders WHERE _id = 'n1'") == 3)
            #expect(said.all.isEmpty, "\(said.all)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).allSatisfy { !$0.hasSuffix(".realm") })
        }
    }
}
