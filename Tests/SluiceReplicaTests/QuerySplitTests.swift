import ReplicaTestSupport
import SluiceCore
import SluiceQuery
import SluiceReplica
import SluiceValues
import TestSupport
import Testing

/// Queries that SQLite answers in part and the replica's own code in part.
struct QuerySplitTests {
    private static let names = Samples.type.properties.map(\.name).filter { !["extra", "friend"].contains($0) }

    @Test(arguments: seeds(3) + [10_754_909_940_593_474_067])
    func `a query finds the rows that the tree accepts, whatever they hold`(_ seed: UInt64) async throws {
        var writer = QueryWriter(random: SplitMix64(seed: seed), names: QuerySplitTests.names)
        let folder = try TemporaryFolder()
        let replica = try await Replica.make(folder, schema: Samples.schema, subscribed: false)
        let version = try replica.addSubscriptionSet([subscription("Sample", "TRUEPREDICATE")])
        try await replica.setSubscriptionState(version: version, .complete)
        let rows = (0..<60).map { number in
            var row = Samples.row(&writer.random)
            row[0] = .objectId(ObjectIdentifierBytes(high: 1, low: UInt32(number)))
            return row
        }
        try await replica.apply(batch(10, put: rows))
        let store = try replica.makeReader().store
        var stored: [Row] = []
        try store.scan(type: 0) { stored.append(Row($0)) }
        try #require(stored.count == rows.count)
        var split = 0
        for _ in 0..<200 {
            // Tests beside this one wait for servers with deadlines.
            await Task.yield()
            let text = writer.query()
            guard let predicate = try? Query.parse(text).predicate(on: Samples.type, in: Samples.schema) else { continue }
            let query = try ReplicaQuery(type: 0, in: replica.schema).narrowed(by: text)
            let found = try query.run(on: store)
            let graph = MemoryGraph(schema: replica.schema, rows: stored.map { ("Sample", $0) })
            #expect(try query.count(on: store) == found.count, "seed \(seed): \(text)")
            #expect(found == query.bound.run(over: graph), "seed \(seed): \(text)")
            if predicate.split(.sqlite).residual != nil { split += 1 }
        }
        #expect(split > 20 && split < 180, "seed \(seed): \(split)")
    }

    @Test
    func `of a condition on a list and a number SQLite takes the number`() throws {
        let predicate = try Query.parse("number > 3 AND ANY tags == 'a' AND price == 1").predicate(on: Samples.type, in: Samples.schema)
        let split = predicate.split(.sqlite)
        #expect(split.condition.text == "(\"number\" > ?1 AND \"price\" IS NOT NULL)")
        #expect(split.residual?.canonicalText == "ANY tags == \"a\" and price == 1")
    }
}
