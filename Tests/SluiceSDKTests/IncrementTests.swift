import ReplicaTestSupport
import SluiceCore
import SluiceMerge
import SluiceReplica
import SluiceSDK
import Testing

private class Meter: EmbeddedObject {
    @Persisted var turns: Int
}

private class Counter: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var count: Int
    @Persisted var total: Int64?
    @Persisted var meter: Meter?
    @Persisted var meters: List<Meter>
}

@Suite struct IncrementTests {
    @Test func `an unmanaged object and a local Realm count like any number`() throws {
        let counter = Counter(value: ["_id": 1, "count": 5])
        counter.increment(\.count, by: -7)
        counter.increment(\.total)
        #expect(counter.count == -2 && counter.total == nil)
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: "increment", objectTypes: [Counter.self, Meter.self]))
        try realm.write {
            realm.add(counter)
            counter.increment(\.count)
            counter.total = 1
            counter.increment(\.total, by: 2)
            counter.meter = Meter(value: ["turns": 3])
            counter.meter?.increment(\.turns, by: 4)
        }
        #expect(counter.count == -1 && counter.total == 3 && counter.meter?.turns == 7)
    }

    @Test func `what is recorded adds to what others have made of the number meanwhile`() async throws {
        let folder = try TemporaryFolder()
        let realm = try await Realm(configuration: try folder.synced([Counter.self, Meter.self]))
        let subscriptions = realm.subscriptions
        subscriptions.update({ subscriptions.append(QuerySubscription<Counter>()) }, onComplete: nil)
        let replica = _replica(of: realm)
        let index = try #require(replica.schema.index(of: "Counter"))
        let type = replica.schema.types[index]
        func apply(_ count: Int64, turns: Int64, lsn: UInt64) async throws {
            let meter = Value.dictionary(["turns": .int(turns)])
            let values: [String: Value] = [
                "_id": .int(1), "count": .int(count), "total": .null, "meter": meter, "meters": .list([meter]),
            ]
            var batch = ReplicaBatch()
            let row = batch.rows.append(Row(type.properties.map { values[$0.name] ?? .null }))
            batch.changes = [ReplicaRowChange(type: index, event: .updated, row: row)]
            batch.commits = [ReplicaCommit(lsn: LSN(rawValue: lsn), changes: 0..<1)]
            batch.lsn = LSN(rawValue: lsn)
            try await replica.apply(batch)
            _ = await realm.asyncRefresh()
        }
        try await apply(10, turns: 100, lsn: 10)
        let counter = try #require(realm.objects(Counter.self).first)
        try realm.write {
            counter.increment(\.count, by: 3)
            counter.increment(\.count)
            counter.increment(\.total)
            counter.meter?.increment(\.turns, by: 5)
            counter.meters[0].increment(\.turns, by: 6)
        }
        #expect(counter.count == 14 && counter.total == nil && counter.meter?.turns == 105 && counter.meters[0].turns == 106)
        // The server has others' numbers by now, and ours are still to come.
        try await apply(1_000, turns: 200, lsn: 20)
        #expect(counter.count == 1_004 && counter.meter?.turns == 205)
    }
}
