import QueryTestSupport
import SluiceCore
import SluiceQuery
import SluiceReplica
import TestSupport
import Testing

/// Queries of the whole language over a file, against the tree evaluation over the same rows in memory.
struct ReplicaQueryTests {
    @Test(arguments: seeds(4) + [11_858_374_755_465_172_104])
    func `a file answers queries of the whole language as the tree does`(_ seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        var found = 0
        for _ in 0..<4 {
            let sample = RandomGraph(&random, rowsOfEach: 25)
            let folder = try TemporaryFolder()
            let (replica, rows) = try ReplicaQueryTests.store(sample, in: folder)
            // A file that is only read has no index of links.
            let readOnly = try Replica(
                path: folder.file, schema: sample.schema, isSynced: false, options: ReplicaOptions(isReadOnly: true))
            let store = try (random.chance(50) ? replica : readOnly).makeReader().store
            let graph = MemoryGraph(schema: sample.schema, rows: rows)
            var writer = GraphQueryWriter(random: random, schema: sample.schema, type: sample.schema.types[0])
            for _ in 0..<rounds(60, soak: 150) {
                // Tests beside this one wait for servers with deadlines.
                await Task.yield()
                writer.forgetArguments()
                var text = writer.query()
                for _ in 0..<writer.random.below(3) { text += ReplicaQueryTests.suffix(&writer.random, sample.schema) }
                let whole = ReplicaQuery(type: 0, in: sample.schema)
                guard let query = try? whole.narrowed(by: text, arguments: writer.arguments) else { continue }
                let expected = query.bound.run(over: graph)
                found += expected.count
                #expect(try query.run(on: store) == expected, "seed \(seed): \(text)")
                #expect(try query.count(on: store) == expected.count, "seed \(seed): \(text)")
                #expect(try query.run(on: store, atMost: 2) == Array(expected.prefix(2)), "seed \(seed): \(text)")
                let key = RandomGraph.key(writer.random.below(26), sample.schema.types[0].properties[0].type)
                #expect(try query.contains(key, on: store) == expected.contains(key), "seed \(seed): \(text)")
                #expect(try query.position(of: key, on: store) == expected.firstIndex(of: key), "seed \(seed): \(text)")
                try ReplicaQueryTests.compareValues(query, expected, store, graph, &writer.random, "seed \(seed): \(text)")
            }
            random = writer.random
        }
        #expect(found > rounds(400, soak: 1_000), "seed \(seed): only \(found) objects were found in all, which tells little")
    }

    /// The rows as they read back: the file keeps no absent values, and -0 of floats as it is.
    static func store(_ sample: RandomGraph, in folder: TemporaryFolder) throws -> (Replica, [(type: String, row: Row)]) {
        let replica = try Replica(path: folder.file, schema: sample.schema, isSynced: false, environment: TestEnvironment())
        try replica.write { transaction in
            for (name, row) in sample.rows {
                guard let type = sample.schema.index(of: name), let key = row[0] else { continue }
                var values: [String: Value] = [:]
                for (index, property) in sample.schema.types[type].properties.enumerated() where index > 0 {
                    values[property.name] = row[index]
                }
                try transaction.create(type: type, key: key, values: values)
            }
        }
        var rows: [(type: String, row: Row)] = []
        let store = try replica.makeReader().store
        for (index, type) in sample.schema.types.enumerated() {
            try store.scan(type: index) { rows.append((type.name, Row($0))) }
        }
        return (replica, rows)
    }

    static func suffix(_ random: inout SplitMix64, _ schema: Schema) -> String {
        let type = schema.types[0]
        let name = random.pick(type.properties).name
        var path = name
        if case .link(let target)? = type[name]?.type, let target = schema[target] { path += ".\(random.pick(target.properties).name)" }
        switch random.below(5) {
        case 0: return " LIMIT(\(random.below(12)))"
        case 1: return " SORT(\(path) ASC, _id DESC)"
        case 2: return " SORT(\(path) DESC)"
        case 3: return " SORT(\(name) DESC)"
        default: return " DISTINCT(\(path))"
        }
    }

    private static func compareValues(
        _ query: ReplicaQuery, _ expected: [Value], _ store: RowStore, _ graph: MemoryGraph, _ random: inout SplitMix64,
        _ comment: Comment
    ) throws {
        let type = query.bound.type
        let property = random.below(type.properties.count)
        guard type.properties[property].collection == .none else { return }
        let values = expected.map { graph.row($0, of: type)?[property] ?? .null }
        #expect(try query.values(of: property, on: store) == values, comment)
        // Sums of floating numbers depend on the order, which is the query's only where it picks.
        let isPicking = query.bound.suffixes.contains { if case .sort = $0 { false } else { true } }
        let inOrder = isPicking ? expected : graph.keys(of: type).filter { expected.contains($0) }
        for function in [Aggregate.min, .max, .sum, .average] {
            var aggregation = Aggregation(function, of: type.properties[property].type)
            for key in inOrder { aggregation.add(graph.row(key, of: type)?[property] ?? .null) }
            let found = try query.aggregate(function, property: property, on: store)
            #expect(ReplicaQueryTests.isSame(found, aggregation.result), "\(comment) \(function): \(found)")
        }
    }

    /// Of zeros and of NaNs any stands for all.
    private static func isSame(_ left: Value, _ right: Value) -> Bool {
        switch (left, right) {
        case (.double(let l), .double(let r)): l == r || l.isNaN && r.isNaN
        case (.float(let l), .float(let r)): l == r || l.isNaN && r.isNaN
        default: left == right
        }
    }

    @Test func `sorting and DISTINCT by key paths given as texts go through links and other names`() throws {
        let team = ObjectType(
            name: "Team", properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "n", type: .string)])
        let player = ObjectType(
            name: "Player",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "team", type: .link(to: "Team"), isOptional: true),
            ])
        let folder = try TemporaryFolder()
        let replica = try Replica(path: folder.file, schema: Schema([player, team]), isSynced: false)
        try replica.write { transaction in
            for (id, name) in [(1, "blue"), (2, "ant"), (3, "ant")] {
                try transaction.create(type: 1, key: .int(Int64(id)), values: ["n": .string(name)])
                try transaction.create(type: 0, key: .int(Int64(id)), values: ["team": .int(Int64(id))])
            }
            try transaction.create(type: 0, key: .int(4), values: [:])
        }
        let aliases = QueryAliases(properties: ["Team": ["name": "n"]])
        let all = ReplicaQuery(type: 0, in: replica.schema)
        let store = try replica.makeReader().store
        let sorted = try all.sorted(by: [("team.name", false)], aliases: aliases)
        #expect(try sorted.run(on: store) == [.int(1), .int(2), .int(3), .int(4)])
        #expect(try sorted.distinct(by: ["team.n"]).run(on: store) == [.int(1), .int(2), .int(4)])
        #expect(try sorted.narrowed(by: "team.name == 'ant'", aliases: aliases).limited(to: 1).run(on: store) == [.int(2)])
        let error = #expect(throws: SluiceError.self) { try all.sorted(by: [("team.nothing", true)]) }
        #expect(error?.code == .queryUnknownProperty)
        #expect(throws: SluiceError.self) { try all.limited(to: 1).narrowed(by: "_id > 1") }
    }
}
