import SluiceCore
import SluiceMatch
import SluiceQuery
import SluiceValues
import TestSupport
import Testing

/// The index against the plain way: ask every subscription about every change.
struct PredicateIndexTests {
    private static let types = [
        ObjectType(
            name: "Order",
            properties: [
                Property(id: 1, name: "_id", type: .int),
                Property(id: 2, name: "store", type: .string, isOptional: true),
                Property(id: 3, name: "priority", type: .int),
                Property(id: 4, name: "status", type: .string),
                Property(id: 5, name: "tags", type: .string, collection: .list),
                Property(id: 6, name: "limit", type: .int),
            ]),
        ObjectType(
            name: "Note",
            properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "text", type: .string, isOptional: true)]),
        ObjectType(
            name: "Bin",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "store", type: .objectId, isOptional: true),
                Property(id: 3, name: "level", type: .double),
            ]),
    ]
    private static let schema = Schema(types)
    private static let stores: [String?] = ["s1", "s2", "s12345678901234567890", "s1234567890123456789", "", nil, "🦄"]
    private static let oids = (0..<3).map { ObjectIdentifierBytes(high: 1, low: $0) }

    private static func query(_ type: Int, _ random: inout SplitMix64) -> String {
        switch type {
        case 1: return random.pick(["TRUEPREDICATE", "text == null", "text BEGINSWITH 'a'", "text CONTAINS[c] 'B'", "FALSEPREDICATE"])
        case 2:
            return random.pick([
                "store == oid(\(random.pick(oids)))", "store IN {oid(\(random.pick(oids))), NULL} AND level > 1",
                "store == oid(\(random.pick(oids))) AND level <= \(random.below(3)).5",
            ])
        default: break
        }
        let store = random.pick(stores).map { "'\($0)'" } ?? "NULL"
        let rest = random.pick([
            "priority > \(random.below(4))", "status == 'open'", "(status != 'open' OR priority == 1)", "ANY tags == 'x'", "TRUEPREDICATE",
            "priority < limit",
        ])
        return switch random.below(6) {
        case 0: rest
        case 1: "store == \(store)"
        case 2: "store IN {\(store), 's1', 's2'} AND \(rest)"
        case 3: "(store == \(store) AND \(rest)) OR (store == 's2' AND priority > 2)"
        case 4: "\(rest) AND store == \(store) AND priority > 1"
        default: "store == \(store) AND \(rest)"
        }
    }

    private static func row(_ type: Int, _ random: inout SplitMix64) -> Row {
        let key = Value.int(Int64(random.below(10)))
        switch type {
        case 1: return Row([key, random.chance(20) ? .null : .string(random.pick(["a", "ab", "xB", ""]))])
        case 2: return Row([key, random.chance(20) ? .null : .objectId(random.pick(oids)), .double(Double(random.below(4)))])
        default:
            let store = random.pick(stores).map { Value.string($0) } ?? .null
            let tags = (0..<random.below(3)).map { _ in Value.string(random.pick(["x", "y"])) }
            return Row([
                key, store, .int(Int64(random.below(4))), .string(random.pick(["open", "done"])), .list(tags), .int(Int64(random.below(4))),
            ])
        }
    }

    private struct Change {
        var type: Int
        var before: Row?
        var after: Row?

        init(_ random: inout SplitMix64) {
            type = random.below(3)
            before = random.chance(75) ? row(type, &random) : nil
            after = before == nil || random.chance(75) ? row(type, &random) : nil
            if random.chance(40), var moved = before, type == 0 {
                moved[2] = .int(Int64(random.below(4)))
                after = moved
            }
        }

        func expected(_ predicates: [Predicate]) -> MatchResult.Transition? {
            let was = before.map { row in predicates.contains { $0.matches(row) } } ?? false
            let now = after.map { row in predicates.contains { $0.matches(row) } } ?? false
            return was ? (now ? .updated : .left) : now ? .entered : nil
        }
    }

    private static func run(_ change: Change, _ index: PredicateIndex, _ result: inout MatchResult) {
        var buffer = RowBuffer()
        let before = change.before.map { buffer.append($0) }
        let after = change.after.map { buffer.append($0) }
        buffer.withBase { cells, arena in
            func view(_ ref: RowRef) -> RowView { RowView(cells: cells + Int(ref.start), count: Int(ref.count), arena: arena) }
            index.match(type: change.type, before: before.map(view), after: after.map(view), into: &result)
        }
    }

    @Test(arguments: seeds(7))
    func `the index finds exactly the subscribers that evaluating every subscription finds`(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let indexed: [Int?] = [1, nil, 1]
        var index = PredicateIndex(indexedProperties: indexed, seed: seed)
        var oracle: [UInt32: [Int: [Predicate]]] = [:]
        var result = MatchResult()
        for step in 0..<400 {
            let subscriber = UInt32(random.below(40))
            switch random.below(10) {
            case 0...4:
                let type = random.below(3)
                let text = PredicateIndexTests.query(type, &random)
                let predicate = try Query.parse(text).predicate(
                    on: PredicateIndexTests.types[type], in: PredicateIndexTests.schema)
                index.add(subscriber: subscriber, type: type, entries: predicate.indexForm(indexedProperty: indexed[type]))
                oracle[subscriber, default: [:]][type, default: []].append(predicate)
            case 5:
                index.remove(subscriber: subscriber)
                oracle[subscriber] = nil
            case 6:
                let type = random.below(3)
                index.remove(subscriber: subscriber, type: type)
                oracle[subscriber]?[type] = nil
            default: break
            }
            let change = Change(&random)
            PredicateIndexTests.run(change, index, &result)
            var found: [UInt32: MatchResult.Transition] = [:]
            for match in result {
                #expect(found.updateValue(match.transition, forKey: match.subscriber) == nil, "seed \(seed): reported twice")
            }
            let expected = oracle.compactMapValues { change.expected($0[change.type] ?? []) }
            #expect(found == expected, "seed \(seed), step \(step): \(change)")
        }
        for subscriber in oracle.keys { index.remove(subscriber: subscriber) }
        #expect(index.entryCount == 0 && index.programCount == 0, "seed \(seed): nothing may stay behind")
        #expect(!(0..<3).contains { index.hasSubscribers(type: $0) })
    }

    @Test
    func `identical conditions share one program however they are written`() throws {
        let type = PredicateIndexTests.types[0]
        var index = PredicateIndex(indexedProperties: [1, nil, 1])
        let texts = [
            "store == 's1' AND priority > 2 AND status == 'open'", "status == 'open' && 's2' == store && (priority > 2)",
            "(priority > 2 AND status == 'open') AND store IN {'s1', 's3'}",
        ]
        for (id, text) in texts.enumerated() {
            let entries = try Query.parse(text).predicate(on: type, in: PredicateIndexTests.schema).indexForm(indexedProperty: 1)
            index.add(subscriber: UInt32(id), type: 0, entries: entries)
        }
        #expect(index.entryCount == 4)
        #expect(index.programCount == 1)
    }

    @Test
    func `a row that moves from one key of a subscription to another is an update`() throws {
        let type = PredicateIndexTests.types[0]
        var index = PredicateIndex(indexedProperties: [1, nil, 1])
        let query = try Query.parse("store IN {'s1', 's2'}").predicate(on: type, in: PredicateIndexTests.schema)
        index.add(subscriber: 3, type: 0, entries: query.indexForm(indexedProperty: 1))
        func row(_ store: String) -> Row { Row([.int(1), .string(store), .int(0), .string(""), .list([]), .int(0)]) }
        var result = MatchResult()
        func transitions(_ before: String?, _ after: String?) -> [MatchResult.Transition] {
            var random = SplitMix64(seed: 1)
            var change = Change(&random)
            (change.type, change.before, change.after) = (0, before.map(row), after.map(row))
            PredicateIndexTests.run(change, index, &result)
            return result.map(\.transition)
        }
        #expect(transitions("s1", "s2") == [.updated])
        #expect(transitions("s1", "s3") == [.left])
        #expect(transitions("s3", "s1") == [.entered])
        #expect(transitions(nil, "s1") == [.entered])
        #expect(transitions("s1", nil) == [.left])
        #expect(transitions("s3", "s4").isEmpty)
    }

    @Test
    func `adding and removing over and over does not grow the index`() throws {
        let type = PredicateIndexTests.types[0]
        var index = PredicateIndex(indexedProperties: [1, nil, 1])
        var random = SplitMix64(seed: 9)
        let forms = try (0..<200).map { number in
            let text = "store == 'k\(number % 37)' AND priority > \(number % 11) AND status == 'x\(number % 7)'"
            return try Query.parse(text).predicate(on: type, in: PredicateIndexTests.schema).indexForm(indexedProperty: 1)
        }
        var sizes: [Int] = []
        for _ in 0..<30 {
            for id in 0..<200 { index.add(subscriber: UInt32(id), type: 0, entries: random.pick(forms)) }
            sizes.append(index.byteCount)
            for id in 0..<200 { index.remove(subscriber: UInt32(id)) }
        }
        #expect(index.entryCount == 0)
        let early = try #require(sizes.prefix(10).max())
        let late = try #require(sizes.suffix(10).max())
        #expect(late <= early * 2)
    }

    @Test
    func `types that appear later can be subscribed to`() throws {
        let type = PredicateIndexTests.types[1]
        var index = PredicateIndex(indexedProperties: [1])
        let entries = try Query.parse("TRUEPREDICATE").predicate(on: type, in: PredicateIndexTests.schema).indexForm(indexedProperty: nil)
        index.add(subscriber: 0, type: 1, entries: entries)
        #expect(!index.hasSubscribers(type: 1))
        index.setIndexedProperties([1, nil])
        index.add(subscriber: 0, type: 1, entries: entries)
        #expect(index.hasSubscribers(type: 1))
    }
}
