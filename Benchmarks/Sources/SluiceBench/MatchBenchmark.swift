import SluiceCore
import SluiceMatch
import SluiceQuery

/// Measures matching: the index with a thousand and with a hundred thousand subscriptions, and an equal number of matches for each change.
/// The reference evaluates each of a thousand conditions. Needs no server.
struct MatchBenchmark {
    let rounds: Int
    let scale: Double

    /// Subscriptions to one store, each with a different condition.
    private static let perStore = 10
    /// The number of them that match a change.
    private static let concerned = 6
    private static let changes = 4_096

    func run(_ report: inout Report) throws {
        let (few, many) = (try Crowd(1_000), try Crowd(100_000))
        let repeats = max(Int(200 * scale), 1)
        var (small, large, asking): ([Double], [Double], [Double]) = ([], [], [])
        for round in 0...rounds {
            let samples = (try few.match(repeats), try many.match(repeats), try few.ask(max(repeats / 50, 1)))
            guard round > 0 else { continue }
            small.append(samples.0)
            large.append(samples.1)
            asking.append(samples.2)
        }
        report.add(
            "who of 100,000 subscriptions is concerned by a change, \(Self.concerned) each time",
            ours: "\(large.median.text()) ns, of 1,000 subscriptions \(small.median.text()) ns",
            reference: "asking each of 1,000 \(asking.median.text()) ns",
            ratio: "\((large.median / small.median).text(1)) × for 100 times as many", target: "none")
    }

    /// Subscriptions, and updates of rows of their stores.
    private struct Crowd {
        var index = PredicateIndex(indexedProperties: [1])
        var programs: [Program] = []
        var rows = RowBuffer()
        var updates: [(before: RowRef, after: RowRef)] = []

        init(_ subscriptions: Int) throws {
            let stores = subscriptions / perStore
            for number in 0..<subscriptions {
                let text = "store == \(number / perStore) AND quantity > \(number % perStore * 20)"
                let predicate = try Query.parse(text).predicate(on: QueryBenchmark.type, in: QueryBenchmark.schema)
                index.add(subscriber: UInt32(number), type: 0, entries: predicate.indexForm(indexedProperty: 1))
                if subscriptions <= 1_000 { programs.append(predicate.compile()) }
            }
            for number in 0..<changes {
                // Ascending stores would favour the caches.
                let store = Int64(number &* 7_919 % stores)
                updates.append((rows.append(row(number, store, quantity: 101)), rows.append(row(number, store, quantity: 119))))
            }
        }

        private func row(_ number: Int, _ store: Int64, quantity: Int64) -> Row {
            Row([.int(Int64(number)), .int(store), .string("open"), .int(quantity), .double(0.5), .null, .null])
        }

        /// - Returns: Nanoseconds per change.
        func match(_ repeats: Int) throws -> Double {
            var (result, found) = (MatchResult(), 0)
            let begin = seconds()
            each(repeats) { before, after in
                index.match(type: 0, before: before, after: after, into: &result)
                found += result.count
            }
            return try time(since: begin, repeats, found)
        }

        /// Evaluates every condition, without an index.
        /// - Returns: Nanoseconds per change.
        func ask(_ repeats: Int) throws -> Double {
            var found = 0
            let begin = seconds()
            each(repeats) { before, after in
                for program in programs where program.matches(before) || program.matches(after) { found += 1 }
            }
            return try time(since: begin, repeats, found)
        }

        @inline(__always)
        private func each(_ repeats: Int, _ body: (RowView, RowView) -> Void) {
            rows.withBase { cells, arena in
                for _ in 0..<repeats {
                    for (before, after) in updates {
                        body(
                            RowView(cells: cells + Int(before.start), count: Int(before.count), arena: arena),
                            RowView(cells: cells + Int(after.start), count: Int(after.count), arena: arena))
                    }
                }
            }
        }

        private func time(since begin: Double, _ repeats: Int, _ found: Int) throws -> Double {
            let elapsed = seconds() - begin
            let expected = repeats * changes * concerned
            guard found == expected else { throw BenchFailure("\(found) subscriptions are concerned, not \(expected).") }
            return elapsed * 1e9 / Double(repeats * changes)
        }
    }
}
