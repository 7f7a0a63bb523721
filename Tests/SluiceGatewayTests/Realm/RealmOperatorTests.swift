import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceRealm
import SluiceValues
import TestSupport
import Testing

/// Clients of Realm's protocol in the explanations and in the console.
@Suite(.timeLimit(.minutes(5))) struct `Operators, of clients of Realm's protocol,` {
    private static let agent = "RealmSync/14.14.0 (Linux test) RealmSwift/20.0.3 com.example.<b>shop</b>"
    private static let granted = #"the role 'keeper' permits reading objects with store == "north""#

    /// Connects a client of an account.
    private static func client(
        _ gateway: RunningGateway, _ account: RunningGateway.Account, agent: String = agent
    ) async throws -> RealmTestClient {
        let client = RealmTestClient(try ShopApp.configuration().schema)
        try await client.connect(gateway.url, app: gateway.app, token: account.token, agent: agent)
        return client
    }

    private static func why(_ gateway: RunningGateway, _ account: RunningGateway.Account, _ id: String) async throws -> JSON {
        try await gateway.request("GET", "/admin/v1/why?user=\(account.id)&type=Order&id=\(id)", admin: true).json
    }

    private static func reasons(_ answer: JSON) -> [String] { answer["because"]?.array?.compactMap(\.string) ?? ["\(answer)"] }

    @Test func `learn why a client has an object or lacks it, as for our own SDK`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(
                "INSERT INTO orders (_id, store, size) VALUES ('small', 'north', 1), ('large', 'north', 9), ('far', 'south', 9)")
            let account = try await gateway.account(customData: #"{ "store": "north" }"#)
            let client = try await Self.client(gateway, account)
            try await client.receive { $0.reachedMark > 0 }
            let fresh = Self.reasons(try await Self.why(gateway, account, "large"))
            #expect(fresh.count == 1 && fresh[0].hasSuffix(" has not sent a subscription set yet."), "\(fresh)")
            let query = "store == 'north' AND size > 5"
            try await client.subscribe(["Order": query])
            let answer = try await Self.why(gateway, account, "large")
            let session = try #require(answer["sessions"]?.array?.first, "\(answer)")
            let (device, file) = (try #require(session["client"]?.int), try #require(client.file.file?.ident))
            let program = "client file \(file), RealmSwift/20.0.3 on realm-core/14.14.0, app com.example.<b>shop</b>"
            let name = "Device \(device) (Realm's protocol, \(program))"
            #expect(Self.reasons(answer) == ["\(name) has it, by the query \(query); \(Self.granted)."])
            #expect(session["has_object"]?.bool == true && session["live"]?.bool == true && session["version"] == .int(1))
            #expect(session["protocol"]?.string == "realm" && session["file"] == .int(Int64(file)), "\(session)")
            #expect(session["sdk"]?.string == "RealmSwift/20.0.3" && session["realm_core"]?.string == "14.14.0")
            #expect(session["app"]?.string == "com.example.<b>shop</b>")
            let small = Self.reasons(try await Self.why(gateway, account, "small"))
            #expect(small == ["\(name) does not subscribe to it: \(query) (not met: size > 5)."])
            let far = Self.reasons(try await Self.why(gateway, account, "far"))
            #expect(far.count == 2 && far[0].hasPrefix("The role 'keeper' permits"), "\(far)")

            // A write that was undone, of the device that is named above.
            let other = ObjectKey(type: "Order", key: .string("other"))
            try await client.write([
                .createObject(other), .update(RealmPath(other, "store"), .value(.string("south"))),
                .update(RealmPath(other, "size"), .value(.int(1))),
            ])
            try await client.receive { !$0.compensations.isEmpty }
            let undone = Self.reasons(try await Self.why(gateway, account, "other"))
            #expect(undone.contains { $0.hasPrefix("A write by device \(device) was undone at ") }, "\(undone)")

            // A session of our own SDK beside it.
            let own = try await gateway.session(token: account.token)
            try await own.hello(["Order"])
            let both = try await Self.why(gateway, account, "large")["sessions"]?.array ?? []
            #expect(both.map { $0["protocol"]?.string } == ["sluice", "realm"] && both.first?["file"] == .null, "\(both)")
            own.close()

            client.disconnect()
            let away = try await Self.untilAway(gateway, account, device)
            #expect(away["file"] == .int(Int64(file)), "\(away)")
        }
    }

    /// Returns the entry of a device without a session.
    private static func untilAway(_ gateway: RunningGateway, _ account: RunningGateway.Account, _ device: Int64) async throws -> JSON {
        let away = try await found {
            let answer = try await why(gateway, account, "large")
            return answer["elsewhere"]?.array?.first { $0["client"] == .int(device) }
        }
        return try #require(away, "the device \(device) still has a session")
    }

    @Test func `see their sessions in the console, and no text of a client is markup`() async throws {
        try await RunningGateway.with { gateway in
            let account = try await gateway.account()
            let client = try await Self.client(gateway, account, agent: Self.agent + String(repeating: " long", count: 1_000))
            try await client.subscribe(["Order": "store == 'north'", "Tag": "TRUEPREDICATE"])
            let own = try await gateway.session(token: account.token)
            try await own.hello(["Order"])
            let page = try await gateway.console().page
            let file = try #require(client.file.file?.ident)
            let text = page.text("sessions")
            #expect(text.contains("Connections of Sluice's protocol: 1. Of Realm's protocol: 1."), "\(text)")
            let row = try #require(page.rows.first { $0.count == 8 && $0[1] == "realm" }, "\(text)")
            #expect(Array(row[4...6]) == ["\(file)", account.id, "version 1, 2 queries"] && Int(row[0]) != nil, "\(row)")
            #expect(row[2] == "RealmSwift/20.0.3 on realm-core/14.14.0", "\(row)")
            #expect(row[3].hasPrefix("com.example.<b>shop</b> long") && row[3].count < 256, "\(row)")
            #expect(page.rows.contains { $0.count == 8 && $0[1] == "sluice" && $0[4] == "–" && $0[6] == "none" }, "\(text)")
            #expect(!page.source.contains("<b>"))
            let figures = try #require(page.rows.first { $0.first == "swift" }, "\(page.text("realm"))")
            #expect(figures.count == 9 && figures[1] == "1" && figures[8] == "0", "\(figures)")
            own.close()
            client.disconnect()
        }
    }
}
