import SluiceCore
import SluicePorts

/// An insertion of many rows of one class.
///
/// COPY is tried first. If a row exists already or does not fit, an INSERT that skips existing keys follows. If PostgreSQL rejects
/// it, the batch is halved repeatedly, so that only the rows at fault are left out.
///
/// An error that does not concern values counts as the rejection of one row only if other rows are accepted. Otherwise the table is
/// at fault, and the error is thrown.
struct BulkInsert: Sendable {
    /// The statement that inserted the rows.
    enum Way { case copy, insert }

    /// The number of statements that may fail, before any succeeds, with errors that do not concern values. More make `takesAny`
    /// probe the table: it bounds the cost for a table that accepts no row.
    private static let vainStatements = 64
    /// The approximate number of rows probed one by one. They are spread over the batch, because failing rows may cluster at its
    /// start.
    private static let probes = 8
    /// The size at which a chunk is handed to libpq, in bytes. Its last row may exceed it.
    private static let pieceBytes = 65_536

    private let shape: TableShape
    private let rows: AcceptedObjects

    init(_ shape: TableShape, _ rows: AcceptedObjects) {
        self.shape = shape
        self.rows = rows
    }

    var type: String { shape.type.name }

    /// Inserts the rows and skips existing keys. Rows that PostgreSQL rejects are appended to `refused`.
    ///
    /// - Parameter copies: `false` to omit COPY, which fails if keys repeat.
    /// - Returns: The number of new rows, and the statement that inserted them.
    /// - Throws: The first error that does not concern values, if no statement succeeds; errors that a retry may resolve.
    func run(_ session: PostgresSession, copies: Bool = true, refused: inout [RejectedObject]) throws -> (written: Int, way: Way) {
        if copies {
            // COPY cannot skip a row, so any lasting error leads to the INSERT below.
            do { return (try guarded(session) { try copy(session) }, .copy) } catch let failure where Self.isLasting(failure) {}
        }
        var outcome = Outcome()
        try insert(rows.rows.indices, sql, session, &outcome)
        // No statement succeeded, and an error did not concern values: the table is at fault.
        if let failure = outcome.other, !outcome.hasTaken { throw failure }
        refused += outcome.refused
        return (outcome.written, .insert)
    }

    private struct Outcome {
        var written = 0
        /// `true` once a statement has succeeded, even if all of its rows existed already.
        var hasTaken = false
        var refused: [RejectedObject] = []
        /// The first error that does not concern values, and the number of such errors.
        var other: PostgresError?
        var others = 0
    }

    /// Inserts a range and halves it on failure. The earlier half goes first: of two rows that exclude each other, the first is
    /// kept.
    private func insert(_ range: Range<Int>, _ sql: String, _ session: PostgresSession, _ outcome: inout Outcome) throws {
        do {
            outcome.written += try guarded(session) { try session.execute(sql, parameters(range), cached: true) }
            outcome.hasTaken = true
        } catch let failure as PostgresError where failure.isLasting {
            if !failure.isRefusedWrite {
                outcome.other = outcome.other ?? failure
                outcome.others += 1
                // So many rows may be at fault. If PostgreSQL accepts none of a few probes, the table is.
                if !outcome.hasTaken, outcome.others > Self.vainStatements {
                    guard try takesAny(sql, session) else { throw failure }
                    outcome.hasTaken = true
                }
            }
            guard range.count > 1 else {
                if failure.isKeyCollision(shape.mapping), try exists(range, session) { return }
                // The row may have waited for another transaction's lock. The caller retries it with the next batch.
                if failure.isOutOfTime { throw failure }
                outcome.refused.append(
                    RejectedObject(record: rows.records[range.lowerBound], code: .ingestRejected, reason: failure.message))
                return
            }
            let middle = range.lowerBound + range.count / 2
            try insert(range.lowerBound..<middle, sql, session, &outcome)
            try insert(middle..<range.upperBound, sql, session, &outcome)
        }
    }

    /// Returns `true` if one of a few rows, spread over the batch and tried from its end, can be inserted. All of them are rolled
    /// back: an earlier row may exclude them.
    private func takesAny(_ sql: String, _ session: PostgresSession) throws -> Bool {
        for index in stride(from: rows.rows.count - 1, through: 0, by: -max(1, rows.rows.count / Self.probes)) {
            do {
                _ = try guarded(session, keeps: false) { try session.execute(sql, parameters(index..<index + 1), cached: true) }
                return true
            } catch let failure where Self.isLasting(failure) {}
        }
        return false
    }

    /// Runs the body in a savepoint, so that a lasting failure does not abort the transaction.
    ///
    /// - Parameter keeps: `false` to roll the body back even if it succeeds.
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

    private static func isLasting(_ error: any Error) -> Bool { (error as? PostgresError)?.isLasting == true }

    /// Sends the rows by COPY. PostgreSQL processes a chunk while the next one is encoded.
    private func copy(_ session: PostgresSession) throws -> Int {
        var next = 0
        var piece: [UInt8] = []
        return try session.copyIn("COPY \(shape.table) (\(shape.writtenList)) FROM STDIN") {
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

    /// Returns `true` if the key of a row exists in a partition by now.
    private func exists(_ range: Range<Int>, _ session: PostgresSession) throws -> Bool {
        let form = shape.forms[shape.key]
        let key = rows.buffer.withView(rows.rows[range.lowerBound]) { $0.value(shape.key) } ?? .null
        let sql = "SELECT EXISTS (SELECT FROM \(shape.table) WHERE \(shape.keyColumn) = $1::\(form.castType))"
        return try session.query(sql, [form.parameter(key)]).bool(0, 0) ?? false
    }

    /// SQL that inserts rows and skips existing keys. A table with a unique index on each partition has no conflict target. Without one,
    /// ON CONFLICT would also skip rows that any other constraint rejects.
    private var sql: String {
        let numbers = shape.written
        let casts = numbers.map { "u.c\($0)::\(shape.forms[$0].castType)" }.joined(separator: ", ")
        let arrays = numbers.indices.map { "$\($0 + 1)::text[]" }.joined(separator: ", ")
        let names = numbers.map { "c\($0)" }.joined(separator: ", ")
        let given = "unnest(\(arrays)) WITH ORDINALITY AS u(\(names), number)"
        let insert = "INSERT INTO \(shape.table) (\(shape.writtenList)) SELECT \(casts) FROM"
        guard shape.mapping.hasKeyPerPartition else { return "\(insert) \(given) ON CONFLICT (\(shape.identity)) DO NOTHING" }
        let key = "c\(shape.key)"
        return """
            \(insert) (SELECT DISTINCT ON (\(key)) * FROM \(given) ORDER BY \(key), number) AS u WHERE NOT EXISTS (
                SELECT FROM \(shape.table) AS known WHERE known.\(shape.keyColumn) = u.\(key)::\(shape.forms[shape.key].castType))
            ORDER BY u.number
            """
    }

    private func parameters(_ range: Range<Int>) -> [PostgresParameter] {
        shape.written.map { index in
            let form = shape.forms[index]
            return .text(StoreText.array(rows.rows[range].map { row in form.written(rows.buffer.withView(row) { $0.value(index) }) }))
        }
    }
}
