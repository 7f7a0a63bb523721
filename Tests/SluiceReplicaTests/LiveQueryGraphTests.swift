import QueryTestSupport
import SluiceCore
import SluiceQuery
import SluiceReplica
import Synchronization
import TestSupport
import Testing

/// Results that are followed through links, against the same queries run anew.
@Suite struct LiveQueryGraphTests {
    /// A query of the whole language with its result as an observer has it.
    private struct Watched {
        var live: LiveQuery
        var text: String
        var base: [Value]?
        var shown: [Value]
    }

    /// What an observer is told, as one change.
    private final class News: Sendable {
        private let waiting = Mutex<ReplicaChange?>(nil)

        func put(_ change: ReplicaChange) {
            waiting.withLock { waiting in
                if waiting == nil { waiting = change } else { waiting?.merge(change) }
            }
        }

        func take() -> ReplicaChange? {
            waiting.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
        }
    }

    @Test(arguments: seeds(2))
    func `results of the whole language are followed through random links`(_ seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        var (updates, followed) = (0, 0)
        for _ in 0..<2 {
            let sample = RandomGraph(&random, rowsOfEach: 16)
            let folder = try TemporaryFolder()
            let (replica, _) = try ReplicaQueryTests.store(sample, in: folder)
            let news = News()
            let observer = replica.observeChanges { news.put($0) }
            defer { replica.removeObserver(observer) }
            let reader = try replica.makeReader()
            var watched = try LiveQueryGraphTests.watched(&random, sample, reader.store)
            for round in 0..<16 {
                // Tests beside this one wait for servers with deadlines.
                await Task.yield()
                for _ in 0..<random.below(2) + 1 { try LiveQueryGraphTests.mutate(replica, sample.schema, &random) }
                try reader.refresh()
                guard let change = news.take() else { continue }
                for index in watched.indices {
                    let comment: Comment = "seed \(seed), round \(round): \(watched[index].text)"
                    if try LiveQueryGraphTests.check(&watched[index], change, reader.store, comment) { updates += 1 }
                }
            }
            for one in watched where one.live.isFollowed {
                followed += 1
                #expect(one.live.runs == 1, "seed \(seed): \(one.text)")
            }
        }
        #expect(updates > 60 && followed > 20, "seed \(seed): \(updates) updates and \(followed) followed queries tell little")
    }

    private static func watched(
        _ random: inout SplitMix64, _ sample: RandomGraph, _ store: RowStore
    ) throws -> [Watched] {
        var writer = GraphQueryWriter(random: random, schema: sample.schema, type: sample.schema.types[0])
        var watched: [Watched] = []
        while watched.count < 24 {
            writer.forgetArguments()
            var text = writer.query()
            for _ in 0..<writer.random.below(4) { text += ReplicaQueryTests.suffix(&writer.random, sample.schema) }
            let whole = ReplicaQuery(type: 0, in: sample.schema)
            guard let query = try? whole.narrowed(by: text, arguments: writer.arguments) else { continue }
            // One in four is of a list: its own order, and objects that are not there.
            var base: [Value]?
            if writer.random.chance(25) {
                let key = sample.schema.types[0].properties[0].type
                base = (0..<20).shuffled(using: &writer.random).prefix(12).map { RandomGraph.key($0, key) }
            }
            let live = try LiveQuery(query, over: base, on: store)
            watched.append(Watched(live: live, text: text, base: base, shown: live.keys))
        }
        random = writer.random
        return watched
    }

    /// - Returns: whether the observer was told something.
    private static func check(
        _ watched: inout Watched, _ change: ReplicaChange, _ store: RowStore, _ comment: Comment
    ) throws -> Bool {
        let query = watched.live.query
        let expected = if let base = watched.base { try query.run(over: base, on: store) } else { try query.run(on: store) }
        let diff = try watched.live.update(change, on: store)
        if let diff {
            for place in diff.deletions.reversed() { watched.shown.remove(at: place) }
            for place in diff.insertions { watched.shown.insert(expected[place], at: place) }
        }
        #expect(watched.shown == expected, comment)
        #expect(watched.live.keys == expected && watched.live.count == expected.count, comment)
        let changed = expected.filter { change.types[0]?.contains($0) == true }
        let inserted = Set(diff?.insertions ?? [])
        #expect(diff?.modifications ?? [] == expected.indices.filter { !inserted.contains($0) && changed.contains(expected[$0]) }, comment)
        watched.shown = expected
        return diff != nil
    }

    private static func mutate(_ replica: Replica, _ schema: Schema, _ random: inout SplitMix64) throws {
        let transaction = try replica.beginWrite()
        for _ in 0..<random.below(3) + 1 {
            let type = random.pick(schema.types.indices.filter { schema.types[$0].kind == .topLevel })
            let properties = schema.types[type].properties
            let number = random.below(18)
            let row = RandomGraph.row(&random, schema, schema.types[type], number: number)
            let key = RandomGraph.key(number, properties[0].type)
            switch random.below(6) {
            case 0: try transaction.delete(type: type, key: key)
            case 1:
                var values: [String: Value] = [:]
                for (index, property) in properties.enumerated() where index > 0 { values[property.name] = row[index] ?? nil }
                try transaction.create(type: type, key: key, values: values)
            default:
                for _ in 0..<3 {
                    let property = random.below(properties.count - 1) + 1
                    guard let value = row[property] else { continue }
                    try transaction.set(type: type, key: key, property: property, value)
                }
            }
        }
        if random.chance(10) { transaction.cancel() } else { try transaction.commit() }
    }
}

/// What following costs, in SQLite's own instructions: it does not grow with the result.
@Suite struct LiveQueryCostTests {
    private static let schema = Schema([
        ObjectType(
            name: "Reading",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "value", type: .int),
                Property(id: 3, name: "sensor", type: .link(to: "Sensor"), isOptional: true),
                Property(id: 4, name: "checks", type: .link(to: "Sensor"), collection: .list),
            ]),
        ObjectType(
            name: "Sensor",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "name", type: .string),
                Property(id: 3, name: "on", type: .bool),
            ]),
    ])
    private static let count = 5_000

    @Test(arguments: [
        "value >= 0", "sensor.on == TRUE", "ANY checks.on == TRUE", "SUBQUERY(checks, $c, $c.on == TRUE).@count == 1",
        "sensor.on == TRUE SORT(sensor.name DESC)", "TRUEPREDICATE SORT(sensor.name ASC, value DESC) LIMIT(50)",
        "sensor.on == TRUE DISTINCT(sensor.name)", "TRUEPREDICATE SORT(value DESC) DISTINCT(sensor.on) SORT(sensor.name ASC)",
        "checks.@count > 0 AND checks.@min._id >= 0",
    ])
    func `one change of an object that others link to costs what they cost`(_ text: String) throws {
        let folder = try TemporaryFolder()
        let replica = try Replica(path: folder.file, schema: Self.schema, isSynced: false)
        try replica.write { transaction in
            for number in 0..<Int64(Self.count / 10) {
                let values: [String: Value] = ["name": .string("s\(number % 277)"), "on": .bool(true)]
                try transaction.create(type: 1, key: .int(number), values: values)
            }
            for number in 0..<Int64(Self.count) {
                let sensor = Value.int(number % Int64(Self.count / 10))
                try transaction.create(
                    type: 0, key: .int(number), values: ["value": .int(number % 100), "sensor": sensor, "checks": .list([sensor])])
            }
        }
        let reader = try replica.makeReader()
        let query = try ReplicaQuery(type: 0, in: replica.schema).narrowed(by: text)
        var live = try LiveQuery(query, on: reader.store)
        let news = Mutex<ReplicaChange?>(nil)
        let observer = replica.observeChanges { change in news.withLock { $0 = change } }
        defer { replica.removeObserver(observer) }
        for (property, value) in [(2, Value.bool(false)), (1, .string("a")), (2, .bool(true)), (1, .string("z"))] {
            try replica.write { try $0.set(type: 1, key: .int(77), property: property, value) }
            try reader.refresh()
            let before = reader.instructions
            _ = try live.update(try #require(news.withLock { $0 }), on: reader.store)
            let spent = reader.instructions - before
            #expect(live.keys == (try query.run(on: reader.store)))
            #expect(spent < 5_000, "\(text): \(spent) instructions for ten of \(Self.count) objects")
        }
        #expect(live.runs == 1)
    }

    @Test func `where as many are concerned as running the query costs it is run`() throws {
        let folder = try TemporaryFolder()
        let replica = try Replica(path: folder.file, schema: Self.schema, isSynced: false)
        try replica.write { transaction in
            try transaction.create(type: 1, key: .int(0), values: ["on": .bool(true)])
            for number in 0..<Int64(2_000) { try transaction.create(type: 0, key: .int(number), values: ["sensor": .int(0)]) }
        }
        let reader = try replica.makeReader()
        var live = try LiveQuery(try ReplicaQuery(type: 0, in: replica.schema).narrowed(by: "sensor.on == TRUE"), on: reader.store)
        let news = Mutex<ReplicaChange?>(nil)
        let observer = replica.observeChanges { change in news.withLock { $0 = change } }
        defer { replica.removeObserver(observer) }
        try replica.write { try $0.set(type: 1, key: .int(0), property: 2, .bool(false)) }
        try reader.refresh()
        let diff = try live.update(try #require(news.withLock { $0 }), on: reader.store)
        #expect(diff?.deletions.count == 2_000 && live.runs == 2)
    }
}
