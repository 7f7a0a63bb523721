import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// How a condition is split by the indexed property.
struct IndexFormTests {
    private func form(_ text: String, _ property: String? = "store") throws -> [String] {
        let predicate = try Query.parse(text).predicate(on: Samples.type, in: Samples.schema)
        let entries = predicate.indexForm(indexedProperty: property.flatMap { Samples.type.index(of: $0) })
        return entries.map { entry in
            let key: String
            switch entry.key {
            case nil: key = "*"
            case .some(.string(let text)): key = text
            case .some(let value): key = value.typeName
            }
            return key + ": " + Predicate(type: Samples.type, bound: entry.residual).canonicalText
        }.sorted()
    }

    @Test
    func `a pinned key is taken out of the condition`() throws {
        #expect(try form("store == 'a'") == ["a: TRUEPREDICATE"])
        #expect(try form("store == 'a' AND number > 1") == ["a: number > 1"])
        #expect(try form("number > 1 AND 'a' == store AND flag == true") == ["a: flag == true and number > 1"])
        #expect(try form("store IN {'a', 'b'} AND number > 1") == ["a: number > 1", "b: number > 1"])
        #expect(try form("store == null AND number > 1") == ["null: number > 1"])
    }

    @Test
    func `each part of a disjunction keeps its own keys`() throws {
        #expect(try form("(store == 'a' AND number > 1) OR (store == 'b' AND flag == true)") == ["a: number > 1", "b: flag == true"])
        #expect(try form("(store == 'a' OR store == 'b') AND number > 1") == ["a: number > 1", "b: number > 1"])
        #expect(try form("store == 'a' OR number > 1") == ["*: number > 1", "a: TRUEPREDICATE"])
    }

    @Test
    func `contradictions and conditions without a pin`() throws {
        #expect(try form("FALSEPREDICATE").isEmpty)
        #expect(try form("store == 'a' AND number == 1.5").isEmpty)
        #expect(try form("TRUEPREDICATE") == ["*: TRUEPREDICATE"])
        #expect(try form("store != 'a'") == ["*: store != \"a\""])
        #expect(try form("store ==[c] 'a'") == ["*: store ==[c] \"a\""])
        #expect(try form("store == 'a' AND store == 'b'").count == 1)
        #expect(try form("store == 'a'", nil) == ["*: store == \"a\""])
        #expect(try form("ratio == 1.0", "ratio") == ["*: ratio == 1.0"], "doubles are no keys: 0 and -0 have different bytes")
    }

    @Test
    func `conditions written in another order have the same residual and program`() throws {
        func entry(_ text: String) throws -> IndexEntry {
            try #require(try Query.parse(text).predicate(on: Samples.type, in: Samples.schema).indexForm(indexedProperty: 10).first)
        }
        let one = try entry("store == 'a' AND (number > 1 OR flag == true) AND name == 'x' AND name == 'x'")
        let other = try entry("name == \"x\" && store = 'a' && (flag == TRUE or number > 1)")
        #expect(one.residual == other.residual)
        #expect(one.program == other.program)
    }

    @Test
    func `a condition that would multiply is kept whole under its keys`() throws {
        let keys = (0..<1_000).map { "(store == 's\($0)' AND number == \($0))" }.joined(separator: " OR ")
        let rest = (0..<1_000).map { "other != \($0)" }.joined(separator: " AND ")
        let whole = try Query.parse("(\(keys)) AND \(rest)").predicate(on: Samples.type, in: Samples.schema)
        let entries = whole.indexForm(indexedProperty: 10)
        #expect(entries.count == 1_000)
        #expect(Set(entries.map(\.program)).count == 1)
    }

    @Test(arguments: [
        ("number == 1 OR number == 2 OR number == 1", "number IN {2, 1}"),
        ("number != 1 AND number != 2", "NOT number IN {1, 2}"),
        ("NOT (number == 1 OR number == 2)", "number != 2 AND NOT number == 1"),
        ("NOT (number > 1 OR flag == true)", "flag != true AND NOT number > 1"),
        ("NOT (number > 1 AND NOT (flag == true AND other < 3))", "(other < 3 AND TRUE_ AND flag = true) OR !(number > 1)"),
        ("number > 1 AND (flag == true AND other < 3)", "(other < 3 AND number > 1) AND flag == true"),
        ("NOT NOT number > 1", "1 < number"),
        ("number BETWEEN {1, 5}", "number <= 5 && number >= 1 && TRUE_"),
        ("name ==[c] 'AB' OR name ==[c] 'c'", "name IN[c] {'C', 'ab'}"),
        ("number > 1.5 OR FALSE_", "number > 1"), ("tags.@count == 0 AND NOT tags.@count != 0", "tags.@size == 0"),
    ])
    func `conditions of one meaning have one normal form`(_ pair: (String, String)) throws {
        func normal(_ text: String) throws -> IndexEntry? {
            let text = text.replacing("TRUE_", with: "TRUEPREDICATE").replacing("FALSE_", with: "FALSEPREDICATE")
            return try Query.parse(text).predicate(on: Samples.type, in: Samples.schema).indexForm(indexedProperty: nil).first
        }
        let (one, other) = (try normal(pair.0), try normal(pair.1))
        #expect(one != nil)
        #expect(one == other)
        #expect(one?.program == other?.program)
    }

    @Test(arguments: [
        ("NOT number > 1", "number <= 1"), ("NOT ANY tags == 'a'", "ANY tags != 'a'"), ("name == 'a'", "name ==[c] 'a'"),
        ("number == 1 OR number == 2", "number == 1 OR other == 2"), ("number == 1 AND number == 2", "number IN {1, 2}"),
        ("number != 1 OR number != 2", "NOT number IN {1, 2}"), ("name == 'e\u{301}'", "name == '\u{e9}'"),
    ])
    func `conditions of different meaning do not`(_ pair: (String, String)) throws {
        func normal(_ text: String) throws -> IndexEntry? {
            try Query.parse(text).predicate(on: Samples.type, in: Samples.schema).indexForm(indexedProperty: nil).first
        }
        #expect(try normal(pair.0) != normal(pair.1))
    }

    @Test(arguments: seeds(2))
    func `a normal form holds for the same rows, and reordering does not change it`(_ seed: UInt64) throws {
        var writer = QueryWriter(random: SplitMix64(seed: seed), names: Samples.type.properties.map(\.name).filter { $0 != "extra" })
        var shuffler = SplitMix64(seed: seed ^ 1)
        for _ in 0..<150 {
            let text = writer.query()
            guard let predicate = try? Query.parse(text).predicate(on: Samples.type, in: Samples.schema) else { continue }
            let normal = Predicate(type: Samples.type, bound: predicate.bound.normalized)
            #expect(normal.bound.normalized == normal.bound, "seed \(seed): \(text)")
            #expect(shuffled(predicate.bound, &shuffler).normalized == normal.bound, "seed \(seed): \(text)")
            for _ in 0..<20 {
                let row = Samples.row(&writer.random)
                #expect(normal.matches(row) == predicate.matches(row), "seed \(seed): \(text) on \(row)")
            }
        }
    }

    private func shuffled(_ predicate: BoundPredicate, _ random: inout SplitMix64) -> BoundPredicate {
        switch predicate {
        case .constant, .test, .properties, .within: return predicate
        case .not(let inner): return .not(shuffled(inner, &random))
        case .and(let parts):
            let parts = (parts + [parts[0]]).map { shuffled($0, &random) }
            return .and(parts.shuffled(using: &random))
        case .or(let parts):
            return .not(.and(parts.map { .not(shuffled($0, &random)) }.shuffled(using: &random)))
        }
    }

    @Test
    func `subscriptions with one residual under different keys share its program`() throws {
        var table = ResidualTable()
        for store in 0..<100 {
            let text =
                store % 2 == 0
                ? "store == '\(store)' AND number > 3 AND flag == true" : "flag = TRUE && (3 < number && '\(store)' == store)"
            let predicate = try Query.parse(text).predicate(on: Samples.type, in: Samples.schema)
            let entries = predicate.indexForm(indexedProperty: 10, sharing: &table)
            #expect(entries.count == 1)
        }
        #expect(table.count == 1)
    }

    @Test
    func `nested conjunctions do not multiply beyond one budget for the whole query`() throws {
        var text = (0..<40).map { "(store == 's\($0)' AND number == \($0))" }.joined(separator: " OR ")
        for level in 0..<30 { text = "((\(text)) AND (other > \(level) OR ratio > \(level).5)) OR (store == 'x\(level)' AND number == 1)" }
        let entries = try Query.parse(text).predicate(on: Samples.type, in: Samples.schema).indexForm(indexedProperty: 10)
        #expect(entries.allSatisfy { $0.key != nil })
        #expect(Set(entries.map(\.residual)).reduce(0) { $0 + $1.leafCount } < 20_000)
    }

    @Test
    func `long constants are not copied for every key`() throws {
        let keys = (0..<500).map { "(store == 's\($0)' AND number == \($0))" }.joined(separator: " OR ")
        let text = "(\(keys)) AND name != '\(String(repeating: "x", count: 100_000))'"
        let entries = try Query.parse(text).predicate(on: Samples.type, in: Samples.schema).indexForm(indexedProperty: 10)
        #expect(entries.count == 500)
        #expect(Set(entries.map(\.program)).count == 1)
    }
}
