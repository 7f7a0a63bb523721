import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// The compiled program against the tree, and texts against themselves, over random queries and rows.
struct EvaluationTests {
    private static let names = Samples.type.properties.map(\.name).filter { $0 != "extra" && $0 != "friend" }

    @Test(arguments: seeds(5))
    func `a compiled query decides like the tree on random rows`(_ seed: UInt64) throws {
        var writer = QueryWriter(random: SplitMix64(seed: seed), names: EvaluationTests.names)
        var rows = RowBuffer()
        let refs = (0..<60).map { _ in rows.append(Samples.row(&writer.random)) }
        var bound = 0
        for _ in 0..<150 {
            let text = writer.query()
            guard let predicate = try? Query.parse(text).predicate(on: Samples.type, in: Samples.schema) else { continue }
            bound += 1
            let program = predicate.compile()
            for ref in refs {
                rows.withView(ref) { row in
                    let expected = predicate.matches(row)
                    #expect(program.matches(row) == expected, "seed \(seed): \(text) on \(row.values())")
                    #expect(predicate.matches(Row(row)) == expected, "seed \(seed): \(text)")
                }
            }
        }
        #expect(bound > 100, "seed \(seed): the writer's queries should mostly be valid")
    }

    /// The reference evaluates the bound condition itself, with constants as they are written and quantifiers over sequences.
    @Test(arguments: seeds(5))
    func `a lowered condition decides like the bound one on random rows`(_ seed: UInt64) throws {
        var writer = QueryWriter(random: SplitMix64(seed: seed), names: EvaluationTests.names + ["friend"])
        let graph = MemoryGraph(schema: Samples.schema, rows: [])
        var buffer = RowBuffer()
        let rows = (0..<60).map { _ in Samples.row(&writer.random) }
        let stored = rows.map { buffer.append($0) }
        var (lowered, positive) = (0, 0)
        for _ in 0..<150 {
            let text = writer.query()
            guard let query = try? Query.parse(text).bind(to: Samples.type, in: Samples.schema) else { continue }
            guard let predicate = query.predicate else { continue }
            lowered += 1
            #expect(try Query.parse(text).predicate(on: Samples.type, in: Samples.schema) == predicate, "seed \(seed): \(text)")
            let program = predicate.compile()
            for (row, view) in zip(rows, stored) {
                let expected = query.matches(row, key: row[0] ?? .null, in: graph)
                if expected { positive += 1 }
                #expect(predicate.matches(row) == expected, "seed \(seed): \(text) lowered to \(predicate.canonicalText) on \(row)")
                #expect(buffer.withView(view) { program.matches($0) } == expected, "seed \(seed): \(text) compiled, on \(row)")
            }
        }
        #expect(lowered > 100 && positive > 500, "seed \(seed): \(lowered) conditions lowered, \(positive) rows selected")
    }

    @Test(arguments: seeds(5))
    func `a query's canonical text parses back to it`(_ seed: UInt64) throws {
        var writer = QueryWriter(random: SplitMix64(seed: seed), names: EvaluationTests.names)
        for _ in 0..<300 {
            let text = writer.query()
            let query = try Query.parse(text)
            let again = try Query.parse(query.canonicalText)
            #expect(again == query, "seed \(seed): \(text) became \(query.canonicalText)")
            #expect(again.canonicalText == query.canonicalText, "seed \(seed): \(text)")
        }
    }

    @Test(arguments: seeds(5))
    func `a predicate's canonical text binds back to it`(_ seed: UInt64) throws {
        let names = EvaluationTests.names.filter { $0 != "blend" }
        var writer = QueryWriter(random: SplitMix64(seed: seed), names: names + ["friend"])
        for _ in 0..<300 {
            let text = writer.query()
            guard let predicate = try? Query.parse(text).predicate(on: Samples.type, in: Samples.schema) else { continue }
            let again = try Query.parse(predicate.canonicalText).predicate(on: Samples.type, in: Samples.schema)
            #expect(again == predicate, "seed \(seed): \(text) became \(predicate.canonicalText)")
        }
    }

    @Test(arguments: seeds(5))
    func `the index form accepts the same rows`(_ seed: UInt64) throws {
        var writer = QueryWriter(
            random: SplitMix64(seed: seed), names: ["store", "store", "store", "number", "name", "flag", "tags", "place"])
        let store = try #require(Samples.type.index(of: "store"))
        let rows = (0..<80).map { _ in Samples.row(&writer.random) }
        var keyed = 0
        for _ in 0..<150 {
            let text = writer.query()
            guard let predicate = try? Query.parse(text).predicate(on: Samples.type, in: Samples.schema) else { continue }
            let entries = predicate.indexForm(indexedProperty: store)
            keyed += entries.count { $0.key != nil }
            for row in rows {
                let accepted = entries.contains { entry in
                    (entry.key == nil || entry.key == (row[store] ?? .null))
                        && Predicate(type: Samples.type, bound: entry.residual).matches(row)
                }
                #expect(accepted == predicate.matches(row), "seed \(seed): \(text) on \(row)")
            }
        }
        #expect(keyed > 0, "seed \(seed)")
    }

    @Test(arguments: seeds(5))
    func `random bytes never crash the parser`(_ seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pieces = [
            "a", "number", " ", "==", "(", ")", "{", "}", "$0", "'x'", "\"", "\\", "[c]", "AND", "not ", "T1:", "B64\"", "uuid(", "1.", "-",
            "@", "🦄",
            "SORT(", "ANY ", ".", "[", "]", "obj(", "null", "geoBox(", "SUBQUERY(", ",", "2020-01-01@", "\n",
        ]
        var parsed = 0
        for _ in 0..<2_000 {
            let text = (0..<random.below(12)).map { _ in random.pick(pieces) }.joined()
            do throws(SluiceError) {
                _ = try Query.parse(text).predicate(on: Samples.type, in: Samples.schema)
                parsed += 1
            } catch {
                #expect((300...315).contains(error.code.rawValue), "seed \(seed): \(text)")
            }
        }
        #expect(parsed < 2_000)
    }
}
