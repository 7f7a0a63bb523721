import SluiceCore
import SluiceQuery

/// Measures conditions on flat rows, beside hand-written Swift closures that compare the same cells. Also measures parsing and binding of a
/// query. Needs no server.
struct QueryBenchmark {
    let rounds: Int
    let scale: Double

    static let type = ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "store", type: .int),
            Property(id: 3, name: "state", type: .string), Property(id: 4, name: "quantity", type: .int),
            Property(id: 5, name: "price", type: .double), Property(id: 6, name: "note", type: .string, isOptional: true),
            Property(id: 7, name: "maker", type: .link(to: "Item"), isOptional: true),
        ])

    static let schema = Schema([type])

    private static let states = ["open", "shut", "sold", "reserved for somebody"]

    /// Few enough to stay in the cache, so that evaluation is measured and not memory.
    private static let count = 1_024

    private static func row(_ index: Int) -> Row {
        let (store, quantity) = (Int64(index % 2), Int64(index * 31 % 200))
        let price = Double(index % 100) / 4
        let values: [Value] = [
            .int(Int64(index)), .int(store), .string(states[index * 7 % 4]), .int(quantity), .double(price), .string("note \(index)"),
            .null,
        ]
        return Row(values)
    }

    func run(_ report: inout Report) throws {
        var rows = RowBuffer()
        let references = (0..<Self.count).map { rows.append(Self.row($0)) }
        try compare("store == 1 AND quantity > 100", rows, references, &report) { row in
            let (store, quantity) = (row[1], row[3])
            guard store.tag == .int, quantity.tag == .int else { return false }
            return Int64(bitPattern: store.bits) == 1 && Int64(bitPattern: quantity.bits) > 100
        }
        try compare("state == 'sold' OR price < 10.0", rows, references, &report) { row in
            let (state, price) = (row[2], row[4])
            if state.tag == .string, row.bytes(of: state).elementsEqual("sold".utf8) { return true }
            return price.tag == .double && Double(bitPattern: price.bits) < 10
        }
        try prepare(&report)
    }

    // MARK: Evaluation

    private func compare(
        _ text: String, _ rows: RowBuffer, _ references: [RowRef], _ report: inout Report, _ closure: @escaping (RowView) -> Bool
    ) throws {
        let program = try Query.parse(text).predicate(on: Self.type, in: Self.schema).compile()
        let repeats = max(Int(20_000 * scale), 1)
        var (ours, theirs): ([Double], [Double]) = ([], [])
        for round in 0...rounds {
            let (a, matched) = measure(rows, references, repeats) { program.matches($0) }
            let (b, expected) = measure(rows, references, repeats, closure)
            guard matched == expected else { throw BenchFailure("\(text) holds for \(matched) rows, the closure for \(expected).") }
            guard round > 0 else { continue }
            ours.append(a)
            theirs.append(b)
        }
        report.add(
            "evaluations of `\(text)` on flat rows",
            ours: "\(ours.median.text(1)) ns, \((1e9 / ours.median).short)/s on one core",
            reference: "Swift closure \(theirs.median.text(1)) ns", ratio: "\((ours.median / theirs.median).text(1)) ×",
            target: "≤ 50 ns, ≥ 20 M/s")
    }

    /// - Returns: Nanoseconds per evaluation, and the number of matching rows.
    @inline(never)
    private func measure(_ rows: RowBuffer, _ references: [RowRef], _ repeats: Int, _ holds: (RowView) -> Bool) -> (Double, Int) {
        let begin = seconds()
        var matched = 0
        rows.withBase { cells, arena in
            for _ in 0..<repeats {
                for reference in references {
                    let row = RowView(cells: cells + Int(reference.start), count: Int(reference.count), arena: arena)
                    if holds(row) { matched += 1 }
                }
            }
        }
        return ((seconds() - begin) * 1e9 / Double(repeats * references.count), matched / repeats)
    }

    // MARK: From text

    private func prepare(_ report: inout Report) throws {
        let short = "store == 1 AND (quantity > 100 OR state IN {'open', 'sold'}) AND price BETWEEN {1.5, 9.75} AND note != null"
        let long = "maker.store == 1 AND ANY @links.Item.maker.state IN {'open', 'sold'} AND maker.price + quantity * 2 < 9.75"
        let parse = try time { _ = try Query.parse(short) }
        let row = try time { _ = try Query.parse(short).predicate(on: Self.type, in: Self.schema) }
        let whole = try time { _ = try Query.parse(long).bind(to: Self.type, in: Self.schema) }
        report.add(
            "parse and bind a query of \(short.utf8.count) B", ours: "\(row.text(1)) µs", reference: "parsing alone \(parse.text(1)) µs",
            ratio: "\((row / parse).text(1)) ×", target: "≤ 20 µs")
        report.add(
            "parse and bind a query of \(long.utf8.count) B over links", ours: "\(whole.text(1)) µs",
            reference: "the query on one row \(row.text(1)) µs", ratio: "\((whole / row).text(1)) ×", target: "≤ 20 µs")
    }

    /// - Returns: The median in microseconds.
    private func time(_ body: () throws -> Void) throws -> Double {
        let repeats = max(Int(20_000 * scale), 1)
        var samples: [Double] = []
        for round in 0...rounds {
            let begin = seconds()
            for _ in 0..<repeats { try body() }
            if round > 0 { samples.append((seconds() - begin) * 1e6 / Double(repeats)) }
        }
        return samples.median
    }
}
