import GatewayTestSupport
import SluiceCore
import SluiceSDK
import Testing

/// FaultyC amends whatever Ann writes: it gives the order a title, and a secret that no role may write.
@Suite(.timeLimit(.minutes(5))) struct `A write that a plugin amends` {
    @MainActor
    @Test func `is the amended one in PostgreSQL and on every device, and older writes that come late lose`() async throws {
        try await RunningGateway.with(files: FaultyApp.files, plugins: ["FaultyC"]) { @MainActor gateway in
            try await gateway.createUser("ann@example.com", customData: #"{ "word": "do-amend an order" }"#)
            let other = try await gateway.openSession(["Order"])
            try await other.subscribe(1, [("Order", "store == 'north'")])
            let hour: Int64 = 3_600_000
            let now = SystemEnvironment().wallMilliseconds()
            try await other.upload(
                1, [TestSession.order("there", ["store": .string("north"), "title": .string("first"), "size": .int(1)])],
                time: HybridTime(milliseconds: now - 2 * hour))
            try await other.receive { $0.keys("Order") == ["there"] }
            let base = other.applied

            // She says nothing of the titles.
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"], name: "ann@example.com")
            try await phone.wait { $0.count == 1 }
            try phone.realm.write {
                phone.orders.first?.size = 5
                _ = phone.realm.create(Order.self, value: ["_id": "new", "store": "north", "size": 5])
            }
            try await phone.session.wait(for: .upload)
            let rows = "SELECT concat_ws(' ', _id, title, secret, size) FROM orders ORDER BY _id"
            #expect(try await gateway.texts(rows) == ["new amended amended 5", "there amended amended 5"])
            try await phone.wait { $0.count == 2 && $0.allSatisfy { $0.title == "amended" && $0.size == 5 } }
            try await other.receive { session in
                let titles = (session.rows["Order"] ?? [:]).values.map { $0["title"] }
                return titles.count == 2 && titles.allSatisfy { $0 == .string("amended") }
            }
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")

            // Who was offline wrote after the first title and before the amendment.
            let late = ["new", "there"].map { TestSession.order($0, ["title": .string("late")], .set) }
            try await other.upload(2, late, time: HybridTime(milliseconds: now - hour), base: base)
            try await other.receive { $0.acknowledged == 2 }
            #expect(try await gateway.texts(rows) == ["new amended amended 5", "there amended amended 5"])
            // What is written after it counts.
            try await other.upload(3, ["new", "there"].map { TestSession.order($0, ["title": .string("next")], .set) })
            try await phone.wait { $0.allSatisfy { $0.title == "next" } }
            #expect(other.compensations.isEmpty && other.error == nil)
        }
    }
}
