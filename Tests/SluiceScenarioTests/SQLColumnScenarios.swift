import GatewayTestSupport
import SluiceSDK
import Testing

final class Crate: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var note: String
    @Persisted var weight: Int
    @Persisted var count: Int
    @Persisted var names: List<String>
    @Persisted var marks: MutableSet<Int>
    @Persisted var prices: Map<String, Int>
    @Persisted var home: Piece?
}

/// Programs that write columns by SQL beside devices that are offline.
@Suite(.timeLimit(.minutes(5))) struct `SQL that writes one column` {
    @MainActor
    private final class Device {
        let realm: Realm
        let said: Phone.Said
        private let folder: Phone.Folder

        init(_ gateway: RunningGateway) async throws {
            (said, folder) = (Phone.Said(), try Phone.Folder())
            var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration(
                initialSubscriptions: { subscriptions in subscriptions.append(QuerySubscription<Crate>()) })
            configuration.objectTypes = [Crate.self, Piece.self]
            realm = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
        }

        var crate: Crate {
            get throws { try #require(realm.object(ofType: Crate.self, forPrimaryKey: "c")) }
        }

        func synced() async throws { try await realm.waitUntilSynced(timeout: 60) }

        func offline(_ bodies: [(Crate) -> Void]) throws {
            realm.syncSession?.suspend()
            let crate = try crate
            for body in bodies { try realm.write { body(crate) } }
        }

        func upload() async throws {
            realm.syncSession?.resume()
            try await realm.syncSession?.wait(for: .upload)
        }
    }

    private static let values = """
        weight = 10, count = 10, names = '{a,b}', marks = '{1,2}', prices = '{"p": 1, "q": 1}', home = '{"x": 1, "y": 1}'
        """

    /// - Parameter begin: makes the crate `c` with `values`, in the end by SQL.
    @MainActor
    private static func play(_ begin: @escaping @MainActor @Sendable (RunningGateway, Device) async throws -> Void) async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, isDevelopment: true) { @MainActor gateway in
            let (one, two) = (try await Device(gateway), try await Device(gateway))
            try await begin(gateway, one)
            for device in [one, two] { try await device.synced() }
            // The later one arrives first.
            try two.offline([{ $0.increment(\.count, by: 100) }, { $0.names.append("two") }, { $0.marks.insert(3) }, { $0.home?.y = 2 }])
            try one.offline([
                { $0.weight = 7 }, { $0.increment(\.count) }, { $0.names.insert("one", at: 0) }, { $0.marks.remove(1) },
                { $0.prices["p"] = 5 }, { $0.prices["r"] = 5 }, { $0.home?.x = 9 }, { $0.increment(\.count, by: 4) },
            ])
            try await gateway.sql(#"UPDATE "Crate" SET note = 'sql'"#)
            for device in [one, two] { try await device.upload() }
            for device in [one, two] {
                try await device.synced()
                let crate = try device.crate
                #expect(crate.note == "sql" && crate.weight == 7 && crate.count == 115, "\(crate)")
                #expect(Array(crate.names) == ["one", "a", "b", "two"] && Set(crate.marks) == [2, 3], "\(crate)")
                let prices = crate.prices.asKeyValueSequence().reduce(into: [:]) { $0[$1.key] = $1.value }
                #expect(prices == ["p": 5, "q": 1, "r": 5] && crate.home?.x == 9 && crate.home?.y == 2, "\(crate)")
                #expect(device.said.all.isEmpty, "\(device.said.all)")
            }
            // Nobody had seen this: it stands, whenever it was written.
            try one.offline([{ $0.weight = 8 }])
            try await gateway.sql(#"UPDATE "Crate" SET weight = 20"#)
            try await gateway.sql(#"UPDATE "Crate" SET note = 'again'"#)
            try await one.upload()
            try await one.synced()
            #expect(try one.crate.weight == 20)
        }
    }

    @MainActor
    @Test func `CR-5 takes nothing from what devices did to others, of a row that SQL made`() async throws {
        try await Self.play { gateway, _ in
            try await gateway.sql(#"INSERT INTO "Crate" (_id, note, weight, count) VALUES ('c', 'first', 0, 0)"#)
            try await gateway.sql(#"UPDATE "Crate" SET \#(Self.values)"#)
        }
    }

    @MainActor
    @Test func `CR-5 takes nothing from what devices did to others, of a row that a device made and SQL changed`() async throws {
        try await Self.play { gateway, device in
            try device.realm.write { device.realm.create(Crate.self, value: ["_id": "c", "names": ["x"], "count": 1]) }
            try await device.upload()
            try await gateway.sql(#"UPDATE "Crate" SET \#(Self.values)"#)
        }
    }
}
