#if canImport(Glibc)
    import SluiceCore
    import SluiceQuery
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
            "number < other", "number == other OR NOT (name == null AND number BETWEEN {1, 9})", "price IN {1, 0.1, 1.5}", "friend == null",
            "friend == obj('Sample', oid(010203040506070800000001))",
        ]

        @Test
        func `evaluating a compiled condition on a row allocates nothing`() throws {
            var random = SplitMix64(seed: 1)
            var rows = RowBuffer()
            let references = (0..<50).map { _ in rows.append(Samples.row(&random)) }
            // The counter counts.
            var list = [1]
            #expect(try #require(Allocations.count { list.append(contentsOf: Array(repeating: list.count, count: 100)) }) > 0)
            for text in Self.texts {
                let query = try Query.parse(text).bind(to: Samples.type, in: Schema([Samples.type]))
                let program = try #require(query.compile().program, "\(text)")
                #expect(program.isFlat, "\(text)")
                var matches = 0
                let count = rows.withBase { cells, arena in
                    Allocations.count {
                        for reference in references {
                            let row = RowView(cells: cells + Int(reference.start), count: Int(reference.count), arena: arena)
                            if program.matches(row) { matches += 1 }
                        }
                    }
                }
                #expect(count == 0, "\(text): \(matches) of \(references.count) rows match")
            }
        }
    }
#endif
