import SluiceCore

/// Many rows of one type, written by COPY; when one of them is there already or does not fit, by a statement that passes over the
/// first kind; and when PostgreSQL refuses that too, by halves, so that only those at fault are left out.
///
/// An error that says nothing of values counts as a refusal of one row only when others go in: else it is the table's, and to be mended.
struct BulkInsert: Sendable {
    /// How the rows went in.
    enum Way { case copy, insert }

    /// Statements that may fail before one goes through when the error says nothing of values: what no row can be put into is not asked about each.
    private static let vainStatements = 64
    /// Rows that are tried by themselves before the table counts as at fault: those that fail may all stand at the beginning.
    private static let probes = 8
    /// Bytes that are handed to libpq at a time.
    private static let pieceBytes = 65_536

    private let shape: TableShape
    private let rows: IngestRows

    init(_ shape: TableShape, _ rows: IngestRows) {
        self.shape = shape
        self.rows = rows
    }

    var type: String { shape.type.name }

    /// Writes the rows; keys that are there already are passed over. Those that PostgreSQL refuses join `refused`.
    /// - Parameter copies: whether to try COPY first: in vain where keys repeat.
    /// - Returns: how many rows were new, and how they went in.
    func run(_ session: PostgresSession, copies: Bool = true, refused: inout [RefusedRecord]) throws -> (written: Int, way: Way) {
        if copies {
            do { return (try guarded(session) { try copy(session) }, .copy) } catch let failure where Self.isLasting(failure) {}
        }
        var outcome = Outcome()
        try insert(rows.rows.indices, sql, session, &outcome)
        if let failure = outcome.other, !outcome.hasTaken { throw failure }
        refused += outcome.refused
        return (outcome.written, .insert)
    }

    private struct Outcome {
        var written = 0
        /// Whether a statement went through, with rows that were there already too.
        var hasTaken = false
        var refused: [RefusedRecord] = []
        /// The first error that says nothing of values, and how often there was one.
        var other: PostgresFailure?
        var others = 0
    }

    /// The earlier rows first, whatever is halved: of two that exclude each other the first stands.
    private func insert(_ range: Range<Int>, _ sql: String, _ session: PostgresSession, _ outcome: inout Outcome) throws {
        do {
            outcome.written += try guarded(session) { try session.execute(sql, parameters(range), cached: true) }
            outcome.hasTaken = true
        } catch let failure as PostgresFailure where failure.isLasting {
            if !failure.isRefusedWrite {
                outcome.other = outcome.other ?? failure
                outcome.others += 1
                if !outcome.hasTaken, outcome.others > Self.vainStatements {
                    guard try takesAny(sql, session) else { throw failure }
                    outcome.hasTaken = true
                }
            }
            guard range.count > 1 else {
                // It may have waited for another's row, and go in with the next batch.
                if failure.isOutOfTime { throw failure }
                outcome.refused.append(
                    RefusedRecord(source: rows.source(range.lowerBound), code: .ingestRejected, reason: failure.message))
                return
            }
            let middle = range.lowerBound + range.count / 2
            try insert(range.lowerBound..<middle, sql, session, &outcome)
            try insert(middle..<range.upperBound, sql, session, &outcome)
        }
    }

    /// Whether one of a few rows from all over the batch, the last first, goes in. None stays, as it is not its turn.
    private func takesAny(_ sql: String, _ session: PostgresSession) throws -> Bool {
        for index in stride(from: rows.rows.count - 1, through: 0, by: -max(1, rows.rows.count / Self.probes)) {
            do {
                _ = try guarded(session, keeps: false) { try session.execute(sql, parameters(index..<index + 1), cached: true) }
                return true
            } catch let failure where Self.isLasting(failure) {}
        }
        return false
    }

    /// Runs the body so that its failure does not end the transaction.
    /// - Parameter keeps: whether what it did stays.
    private func guarded<R>(_ session: PostgresSession, keeps: Bool = true, _ body: () throws -> R) throws -> R {
        let undo = "ROLLBACK TO SAVEPOINT bulk; RELEASE SAVEPOINT bulk"
        try session.script("SAVEPOINT bulk")
        do {
            let result = try body()
            try session.script(keeps ? "RELEASE SAVEPOINT bulk" : undo)
            return result
        } catch let failure where Self.isLasting(failure) {
            try session.script(undo)
            throw failure
        }
    }

    private static func isLasting(_ error: any Error) -> Bool { (error as? PostgresFailure)?.isLasting == true }

    /// The next rows are made while PostgreSQL works on those before.
    private func copy(_ session: PostgresSession) throws -> Int {
        var next = 0
        var piece: [UInt8] = []
        return try session.copyIn("COPY \(shape.table) (\(shape.columnList)) FROM STDIN") {
            piece.removeAll(keepingCapacity: true)
            unsafe rows.buffer.withBase { cells, arena in
                while next < rows.rows.count, piece.count < Self.pieceBytes {
                    let row = rows.rows[next]
                    CopyText.append(
                        unsafe RowView(cells: cells + Int(row.start), count: Int(row.count), arena: arena), shape.forms, to: &piece)
                    next += 1
                }
            }
            return piece.isEmpty ? nil : piece
        }
    }

    private var sql: String {
        let numbers = shape.columns.indices
        let casts = numbers.map { "u.c\($0)::\(shape.forms[$0].columnType)" }
        let arrays = numbers.map { "$\($0 + 1)::text[]" }
        let names = numbers.map { "c\($0)" }
        return """
            INSERT INTO \(shape.table) (\(shape.columnList)) SELECT \(casts.joined(separator: ", ")) \
            FROM unnest(\(arrays.joined(separator: ", "))) AS u(\(names.joined(separator: ", "))) \
            ON CONFLICT (\(shape.identity)) DO NOTHING
            """
    }

    private func parameters(_ range: Range<Int>) -> [PostgresParameter] {
        shape.forms.enumerated().map { index, form in
            .text(StoreText.array(rows.rows[range].map { row in form.written(rows.buffer.withView(row) { $0.value(index) }) }))
        }
    }
}
