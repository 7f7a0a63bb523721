import Foundation
import GatewayTestSupport
import SluiceSDK
import Testing

final class Piece: EmbeddedObject {
    @Persisted var x: Int
    @Persisted var y: Int
}

final class Kit: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var count: Int
    @Persisted var names: List<String>
    @Persisted var pieces: List<Piece>
    @Persisted var marks: MutableSet<Int>
    @Persisted var prices: Map<String, Int>
    @Persisted var home: Piece?
}

/// What was done inside of values and not uploaded, on a device that the gateway has forgotten and beside what others did there.
@Suite(.timeLimit(.minutes(5))) struct `A client reset recovers what was done inside of` {
    @MainActor
    private final class Workshop {
        let realm: Realm
        let said: Phone.Said
        private let folder: Phone.Folder

        init(_ gateway: RunningGateway) async throws {
            (said, folder) = (Phone.Said(), try Phone.Folder())
            var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration(
                clientResetMode: .recoverUnsyncedChanges(),
                initialSubscriptions: { subscriptions in subscriptions.append(QuerySubscription<Kit>()) })
            configuration.objectTypes = [Kit.self, Piece.self]
            realm = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
        }

        var kit: Kit {
            get throws { try #require(realm.object(ofType: Kit.self, forPrimaryKey: "k")) }
        }

        /// One transaction.
        func write(_ body: (Kit) -> Void) throws {
            let kit = try kit
            try realm.write { body(kit) }
        }

        func upload() async throws { try await realm.syncSession?.wait(for: .upload) }
    }

    /// - Parameters:
    ///   - mine: what the device does that is then forgotten, each in a transaction of its own.
    ///   - others: what another does meanwhile.
    @MainActor
    private static func play(
        mine: [(Kit) -> Void], others: @escaping (Kit) -> Void, expect: @escaping (Kit) -> Bool,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, isDevelopment: true) { @MainActor gateway in
            let device = try await Workshop(gateway)
            try device.realm.write {
                let start: [String: Any] = [
                    "_id": "k", "count": 10, "names": ["a", "b", "c"], "pieces": [["x": 1, "y": 1], ["x": 2, "y": 2]], "marks": [1, 2],
                    "prices": ["p": 1, "q": 2], "home": ["x": 1, "y": 1],
                ]
                device.realm.create(Kit.self, value: start)
            }
            try await device.upload()
            let other = try await Workshop(gateway)
            device.realm.syncSession?.suspend()
            for body in mine { try device.write(body) }
            try other.write(others)
            try await other.upload()
            try await Phone.forgetDevices(gateway)
            device.realm.syncSession?.resume()
            try await device.upload()
            try await device.realm.waitUntilSynced(timeout: 60)
            let fresh = try await Workshop(gateway)
            for kit in [try device.kit, try fresh.kit] { #expect(expect(kit), "\(kit)", sourceLocation: sourceLocation) }
            #expect(device.said.all.isEmpty, "\(device.said.all)", sourceLocation: sourceLocation)
        }
    }

    @MainActor
    @Test func `lists: insertions, removals, changes and moves find their elements in the list that others made`() async throws {
        try await Self.play(
            mine: [
                { $0.names.append("mine") }, { $0.names.remove(at: 0) }, { $0.names[0] = "B" },
                // Its own element, which the gateway has never seen.
                { $0.names[2] = "MINE" }, { $0.names.insert("second", at: 3) },
            ],
            others: {
                $0.names.insert("z", at: 0)
                $0.names.append("theirs")
            },
            expect: { Array($0.names) == ["z", "B", "c", "MINE", "second", "theirs"] })
        try await Self.play(
            mine: [{ $0.names.move(from: 0, to: 2) }], others: { $0.names.append("d") },
            expect: { Array($0.names) == ["b", "c", "a", "d"] })
    }

    @MainActor
    @Test func `sets, dictionaries and counters: each member, key and amount`() async throws {
        try await Self.play(
            mine: [
                { $0.marks.insert(3) }, { $0.marks.remove(1) }, { $0.prices["p"] = 10 }, { $0.prices["q"] = nil }, { $0.prices["r"] = 3 },
                { $0.increment(\.count, by: 5) }, { $0.increment(\.count) },
            ],
            others: {
                $0.marks.insert(4)
                $0.prices["s"] = 4
                $0.increment(\.count, by: 100)
            },
            expect: {
                Set($0.marks) == [2, 3, 4]
                    && $0.prices.asKeyValueSequence().reduce(into: [:]) { $0[$1.key] = $1.value } == ["p": 10, "r": 3, "s": 4]
                    && $0.count == 116
            })
    }

    @MainActor
    @Test func `embedded objects, alone and in lists: each field`() async throws {
        try await Self.play(
            mine: [
                { $0.home?.x = 5 }, { $0.pieces[1].x = 9 }, { $0.pieces.append(Piece(value: ["x": 3, "y": 3])) },
                { $0.pieces[0].increment(\.y, by: 10) },
            ],
            others: {
                $0.home?.y = 7
                $0.pieces.insert(Piece(value: ["x": 0, "y": 0]), at: 0)
                $0.pieces[1].increment(\.y, by: 100)
            },
            expect: { kit in
                kit.home?.x == 5 && kit.home?.y == 7 && kit.pieces.map { [$0.x, $0.y] } == [[0, 0], [1, 111], [9, 2], [3, 3]]
            })
    }

    @MainActor
    @Test func `objects that are gone: nothing, and no other is harmed`() async throws {
        try await RunningGateway.with(files: ShopApp.withoutRules, isDevelopment: true) { @MainActor gateway in
            let device = try await Workshop(gateway)
            try device.realm.write { for key in ["k", "l"] { device.realm.create(Kit.self, value: ["_id": key, "names": ["a"]]) } }
            try await device.upload()
            device.realm.syncSession?.suspend()
            try device.write { $0.names.append("late") }
            try device.realm.write { device.realm.object(ofType: Kit.self, forPrimaryKey: "l")?.names.append("b") }
            try await gateway.sql(#"DELETE FROM "Kit" WHERE _id = 'k'"#)
            try await Phone.forgetDevices(gateway)
            device.realm.syncSession?.resume()
            try await device.upload()
            try await device.realm.waitUntilSynced(timeout: 60)
            #expect(device.realm.objects(Kit.self).map(\._id) == ["l"])
            #expect(try await gateway.count(#"SELECT array_length(names, 1) FROM "Kit""#) == 2)
        }
    }
}
