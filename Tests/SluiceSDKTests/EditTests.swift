import ReplicaTestSupport
import SluiceCore
import SluiceMerge
import SluiceReplica
import SluiceSDK
import TestSupport
import Testing

private class Stop: EmbeddedObject {
    @Persisted var name: String
    @Persisted var minutes: Int
    @Persisted var notes: List<String>
}

private class Route: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var names: List<String>
    @Persisted var stops: List<Stop>
    @Persisted var returns: List<Route>
    @Persisted var days: MutableSet<Int>
    @Persisted var fares: Map<String, Int>
    @Persisted var depots: Map<String, Stop?>
    @Persisted var home: Stop?
    @Persisted var any: AnyRealmValue
}

/// What a device records of changes inside of values, merged as the gateway merges it.
@Suite struct EditTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let start: [String: Value] = [
        "_id": .int(1), "names": .list(["a", "b", "c"].map { .string($0) }), "days": .list([.int(1), .int(2)]),
        // Links to objects that are not on the device surround the one that is.
        "returns": .list([.int(7), .int(1), .int(8)]),
        "stops": .list([.dictionary(["name": .string("s"), "minutes": .int(1), "notes": .list([.string("n")])])]),
        "fares": .dictionary(["k": .int(1)]), "depots": .dictionary([:]), "home": .null, "any": .null,
    ]

    /// A Realm that has the start from the server.
    private func open() async throws -> (Realm, Replica, ObjectType) {
        let realm = try await Realm(configuration: try folder.synced([Route.self, Stop.self]))
        let subscriptions = realm.subscriptions
        subscriptions.update({ subscriptions.append(QuerySubscription<Route>()) }, onComplete: nil)
        let replica = _replica(of: realm)
        let index = try #require(replica.schema.index(of: "Route"))
        // The gateway keeps clocks by property numbers, which the classes of an app lack.
        let type = replica.schema.numbered { _, index in UInt32(index + 1) }.types[index]
        try await replica.apply(Self.batch(Self.start, 10, type, index))
        _ = await realm.asyncRefresh()
        return (realm, replica, type)
    }

    private static func batch(_ values: [String: Value], _ lsn: UInt64, _ type: ObjectType, _ index: Int) -> ReplicaBatch {
        var batch = ReplicaBatch()
        let row = batch.rows.append(Row(type.properties.map { values[$0.name] ?? .null }))
        batch.changes = [ReplicaRowChange(type: index, event: .updated, row: row)]
        batch.commits = [ReplicaCommit(lsn: LSN(rawValue: lsn), changes: 0..<1)]
        batch.lsn = LSN(rawValue: lsn)
        return batch
    }

    /// What the gateway makes of the start and of everything that is pending.
    private func merged(_ replica: Replica, _ type: ObjectType) async throws -> [String: Value]? {
        var state = ObjectState(row: Self.start, clocks: nil, type: type, rowTime: 0)
        for changeset in try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 30) {
            let writer = WriteContext(
                stamp: WriteStamp(time: changeset.time, client: ClientID(rawValue: 1)), base: changeset.base,
                now: LSN(rawValue: 100 + changeset.number))
            for change in changeset.changes { try Merge.apply(change, by: writer, to: &state, type: type) }
        }
        return state.values
    }

    private func shown(_ replica: Replica, _ type: ObjectType) throws -> [String: Value] {
        let index = try #require(replica.schema.index(of: "Route"))
        let row = try #require(try replica.makeReader().store.row(type: index, key: .int(1)))
        return Dictionary(
            uniqueKeysWithValues: type.properties.enumerated().filter { $1.name != "_id" }.map { ($1.name, row[$0] ?? .null) })
    }

    @Test(arguments: seeds(6)) func `the gateway makes of them what the device shows`(seed: UInt64) async throws {
        var generator = SplitMix64(seed: seed)
        let (realm, replica, type) = try await open()
        let route = try #require(realm.object(ofType: Route.self, forPrimaryKey: 1))
        for round in 0..<30 {
            try realm.write {
                for _ in 0..<Int.random(in: 1...4, using: &generator) { change(route, &generator) }
            }
            let (shown, merged) = (try shown(replica, type), try await merged(replica, type))
            for (name, value) in shown {
                let gateway = merged?[name] ?? .null
                try #require(gateway == value, "seed \(seed), round \(round): \(name)")
            }
        }
    }

    private func change(_ route: Route, _ generator: inout SplitMix64) {
        func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &generator) }
        let (text, key) = ("t\(below(1_000))", ["k", "l", "m"][below(3)])
        let stop = Stop(value: ["name": text, "minutes": below(9)])
        switch below(24) {
        case 0: route.names.append(text)
        case 1: route.names.insert(text, at: below(route.names.count + 1))
        case 2: if !route.names.isEmpty { route.names.remove(at: below(route.names.count)) }
        case 3: if !route.names.isEmpty { route.names[below(route.names.count)] = text }
        case 4: if route.names.count > 1 { route.names.move(from: below(route.names.count), to: below(route.names.count)) }
        case 5: if route.names.count > 1 { route.names.swapAt(below(route.names.count), below(route.names.count)) }
        case 6: if below(4) == 0 { route.names.removeAll() } else { route.names.append(objectsIn: ["x", text]) }
        case 7: if route.names.count > 2 { route.names.replaceSubrange(1..<2, with: [text, "y"]) }
        case 8: route.stops.append(stop)
        case 9: if let first = route.stops.first { first.minutes += 1 }
        case 10: if let last = route.stops.last { last.notes.append(text) }
        case 11: if route.stops.count > 1 { route.stops.move(from: 0, to: route.stops.count - 1) }
        case 12: if let first = route.stops.first { route.realm?.delete(first) }
        case 13: route.days.insert(below(5))
        case 14: route.days.remove(below(5))
        case 15:
            route.days.formIntersection(
                {
                    let set = MutableSet<Int>(); set.insert(objectsIn: [1, 2, 3]); return set
                }())
        case 16: route.fares[key] = below(9)
        case 17: if below(4) == 0 { route.fares.removeAll() } else { route.fares.removeObject(for: key) }
        case 18: route.depots[key] = stop
        case 19: if let depot = route.depots[key] ?? nil { depot.name = text }
        case 20: route.home = below(4) == 0 ? nil : stop
        case 21: if let home = route.home { home.notes.append(text) }
        case 22: route.any = .fromArray([.string(text), .int(1)])
        default: if let list = route.any.listValue { list.append(.fromDictionary(["k": .string(text)])) } else { route.any = .string(text) }
        }
    }

    @Test func `an append is recorded as one, and stays beside another device's`() async throws {
        let (realm, replica, type) = try await open()
        let route = try #require(realm.object(ofType: Route.self, forPrimaryKey: 1))
        try realm.write { route.names.append("mine") }
        let changeset = try #require(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).first)
        #expect(changeset.changes.first?.values.isEmpty == true && changeset.changes.first?.edits.count == 1)
        // Another device's came first.
        var row = Self.start
        row["names"] = .list(["a", "b", "c", "theirs"].map { .string($0) })
        try await replica.apply(Self.batch(row, 20, type, try #require(replica.schema.index(of: "Route"))))
        _ = await realm.asyncRefresh()
        #expect(Array(route.names) == ["a", "b", "c", "mine", "theirs"])
        try realm.write { route.names.remove(at: 3) }
        #expect(Array(route.names) == ["a", "b", "c", "theirs"])
    }

    @Test func `the removal of all of a list is recorded as one clear, with the links that are not shown`() async throws {
        let (realm, replica, type) = try await open()
        let route = try #require(realm.object(ofType: Route.self, forPrimaryKey: 1))
        #expect(route.returns.map(\._id) == [1] && route.primaryKeysNotLocal(in: "returns") == [.int(7), .int(8)])
        try realm.write { route.returns.removeAll() }
        let changeset = try #require(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).first)
        #expect(changeset.changes.first?.edits.map(\.action) == [.clear(.list)])
        #expect(route.primaryKeysNotLocal(in: "returns").isEmpty)
        #expect(try await merged(replica, type)?["returns"] == .list([]))
    }

    @Test func `an object that was just made is recorded whole`() async throws {
        let (realm, replica, _) = try await open()
        try realm.write {
            let route = realm.create(Route.self, value: ["_id": 2])
            route.names.append("x")
            route.days.insert(4)
        }
        let change = try #require(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).first?.changes.first)
        #expect(change.kind == .create && change.edits.isEmpty && change.values["names"] == .list([.string("x")]))
        #expect(!change.defaults.contains("names") && change.defaults.contains("fares"))
    }
}
