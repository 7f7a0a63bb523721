import QueryTestSupport
import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// The compiled evaluation of the whole language against the plain one, over random schemas, rows and queries.
struct GraphOracleTests {
    @Test(arguments: seeds(1, soak: 40))
    func `the compiled query decides like the tree, on random schemas, rows and queries`(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var pairs = 0
        var (written, bound, positive) = (0, 0, 0)
        while pairs < 15_000 {
            let sample = RandomGraph(&random, rowsOfEach: 9)
            let graph = MemoryGraph(schema: sample.schema, rows: sample.rows)
            var writer = GraphQueryWriter(random: random, schema: sample.schema, type: sample.schema.types[0])
            for _ in 0..<120 {
                writer.forgetArguments()
                let text = writer.query()
                written += 1
                guard let query = try bind(text, writer.arguments, sample.schema, seed) else { continue }
                bound += 1
                if writer.arguments.isEmpty {
                    let again = try Query.parse(query.canonicalText).bind(to: query.type, in: sample.schema)
                    #expect(again == query, "seed \(seed): \(text) became \(query.canonicalText)")
                }
                let results = try compare(query, text, sample, graph, seed)
                pairs += results.count
                positive += results.count { $0 }
            }
            random = writer.random
        }
        #expect(bound * 2 > written, "seed \(seed): the writer's queries should mostly be valid, but only \(bound) of \(written) are")
        #expect(positive * 20 > pairs && positive * 20 < pairs * 19, "seed \(seed): \(positive) of \(pairs) hold, which tells little")
    }

    /// - Returns: the query; nil when it has no meaning, which must be an error of the language.
    private func bind(_ text: String, _ arguments: [QueryArgument], _ schema: Schema, _ seed: UInt64) throws -> BoundQuery? {
        do throws(SluiceError) {
            return try Query.parse(text).bind(to: schema.types[0], in: schema, arguments: arguments)
        } catch {
            #expect((300...304).contains(error.code.rawValue) || error.code == .queryUnsupported, "seed \(seed): \(text): \(error)")
            #expect(error.code != .querySyntax, "seed \(seed): \(text): \(error)")
            return nil
        }
    }

    private func compare(
        _ query: BoundQuery, _ text: String, _ sample: RandomGraph, _ graph: MemoryGraph, _ seed: UInt64
    ) throws -> [Bool] {
        let compiled = query.compile()
        let program = query.predicate?.compile()
        return graph.keys(of: query.type).map { key in
            let expected = query.matches(key, in: graph)
            if GraphOracleTests.differ(query, compiled, program, key, graph, expected) {
                let small = Disagreement(query: query, sample: sample, key: key, differ: GraphOracleTests.differ).shrunk()
                Issue.record("seed \(seed): the evaluations disagree on \(text)\n\(small)")
            }
            return expected
        }
    }

    private static func differ(_ query: BoundQuery, _ key: Value, _ sample: RandomGraph) -> Bool {
        let graph = MemoryGraph(schema: sample.schema, rows: sample.rows)
        return differ(query, query.compile(), query.predicate?.compile(), key, graph, query.matches(key, in: graph))
    }

    /// Whether the compiled query, or the predicate or program where there is one, decides otherwise than expected.
    private static func differ(
        _ query: BoundQuery, _ compiled: CompiledQuery, _ program: Program?, _ key: Value, _ graph: MemoryGraph, _ expected: Bool
    ) -> Bool {
        if compiled.matches(key, in: graph) != expected { return true }
        guard let program, let row = graph.row(key, of: query.type) else { return false }
        return query.predicate?.matches(row) != expected || graph.withView(key, of: query.type) { program.matches($0) } != expected
    }

    @Test
    func `a disagreement shrinks to one comparison and the values that it needs`() throws {
        var random = SplitMix64(seed: 7)
        let sample = RandomGraph(&random, rowsOfEach: 9)
        let type = sample.schema.types[0]
        let query = try Query.parse("(TRUEPREDICATE OR @links.@count == 5) AND (NOT (_id == null) AND @links.@count >= 0)").bind(
            to: type, in: sample.schema)
        // An evaluation that does not know NOT.
        let disagreement = Disagreement(query: query, sample: sample, key: sample.rows[3].row[0] ?? .null) { query, key, sample in
            query.canonicalText.contains("!(") && query.matches(key, in: MemoryGraph(schema: sample.schema, rows: sample.rows))
        }
        let small = disagreement.shrunk()
        #expect(small.query.canonicalText == "!(_id == NULL)")
        #expect(small.sample.rows.count == 1)
        #expect(small.sample.rows[0].row.values.filter { $0?.isNull == false }.count == 1)
        #expect(small.description.contains("!(_id == NULL)"))
    }
}
