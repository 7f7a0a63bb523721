#if canImport(Glibc)
    import Glibc
    import SluiceCore
    import SluiceQuery
    import TestSupport
    import Testing

    /// The hot path allocates nothing.
    struct AllocationTests {
        private static let texts = [
            "number > 3 AND name == 'x'", "flag == true", "ratio < 1.5", "small >= 0.1", "price == 1.50", "name != 'abc'",
            "name ==[c] 'ABC'",
            "name LIKE 'a*b?'", "name CONTAINS[c] 'É'", "name BEGINSWITH 'a'", "data ENDSWITH binary('b')", "at > T1:500",
            "_id == oid(010203040506070800000001)",
            "owner == uuid(00000000-0000-0007-1000-000000000000)", "number IN {1, 2, 3, 5}", "name IN {'a', 'b', NULL}", "blend == 1",
            "blend > 'a'",
            "tags == 'a'", "ALL scores > 1", "NONE weights == 1.5", "tags.@count > 2", "ANY scores IN {1, 2}",
            "place GEOWITHIN geoBox([-1.0, -1.0], [1.0, 1.0])", "NOT place GEOWITHIN geoCircle([0, 0], 2)",
            "place GEOWITHIN geoPolygon({[-20.0, -20.0], [20.0, -20.0], [0, 50], [-20.0, -20.0]}, {[0, 0], [1, 0], [0, 1], [0, 0]})",
            "number < other", "number == other OR NOT (name == null AND number BETWEEN {1, 9})", "price IN {1, 0.1, 1.5}", "friend == null",
            "friend == obj('Sample', oid(010203040506070800000001))",
        ]

        /// In a process of its own: the runtime's hook does not bear other threads that count references meanwhile.
        @Test
        func `evaluating a compiled condition on a row allocates nothing`() async {
            await #expect(processExitsWith: .success) {
                for problem in try AllocationTests.problems() {
                    print(problem)
                    exit(EXIT_FAILURE)
                }
            }
        }

        private static func problems() throws -> [String] {
            var random = SplitMix64(seed: 1)
            var rows = RowBuffer()
            let references = (0..<50).map { _ in rows.append(Samples.row(&random)) }
            var list = [1]
            let control = Allocations.count { list.append(contentsOf: Array(repeating: list.count, count: 100)) }
            var problems = (control ?? 0) > 0 ? [] : ["the counter does not count"]
            for text in texts {
                let query = try Query.parse(text).bind(to: Samples.type, in: Samples.schema)
                guard let program = query.compile().program, program.isFlat else {
                    problems.append("\(text) has no flat program")
                    continue
                }
                var matches = 0
                let count = rows.withBase { cells, arena in
                    Allocations.count {
                        for reference in references {
                            let row = RowView(cells: cells + Int(reference.start), count: Int(reference.count), arena: arena)
                            if program.matches(row) { matches += 1 }
                        }
                    }
                }
                if count != 0 { problems.append("\(text): \(count ?? -1) allocations, \(matches) rows match") }
            }
            return problems
        }
    }
#endif
