import SluiceCore
import SluiceQuery
import Testing

/// How a condition is split by the indexed property.
struct IndexFormTests {
    private func form(_ text: String, _ property: String? = "store") throws -> [String] {
        let predicate = try Query.parse(text).bind(to: Samples.type)
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
            try #require(try Query.parse(text).bind(to: Samples.type).indexForm(indexedProperty: 10).first)
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
        let entries = try Query.parse("(\(keys)) AND \(rest)").bind(to: Samples.type).indexForm(indexedProperty: 10)
        #expect(entries.count == 1_000)
        #expect(Set(entries.map(\.program)).count == 1)
    }
}
