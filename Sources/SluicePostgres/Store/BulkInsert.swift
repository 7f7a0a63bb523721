import SluiceCore

/// Many rows of one type, written by COPY; when one of them is there already or does not fit, by a statement that passes over the
/// first kind; and when PostgreSQL refuses that too, one by one, so that only those at fault are left out.
struct BulkInsert: Sendable {
    /// How the rows went in.
    enum Way { case copy, insert, oneByOne }

    private let shape: TableShape
    private let rows: [IngestRow]

    init(_ shape: TableShape, _ rows: [IngestRow]) {
        self.shape = shape
        self.rows = rows
    }

    var type: String { shape.type.name }

    /// Writes the rows; keys that are there already are passed over. Those that PostgreSQL refuses join `refused`.
    /// - Parameter copies: whether to try COPY first: in vain where keys repeat.
    /// - Returns: how many rows were new, and how they went in.
    func run(_ session: PostgresSession, copies: Bool = true, refused: inout [RefusedRecord]) throws -> (written: Int, way: Way) {
        guard !rows.isEmpty else { return (0, .copy) }
        if copies, let written = try attempt(session, { try session.copyIn(copySQL, copyData) }) { return (written, .copy) }
        let sql = self.sql
        if let written = try attempt(session, { try session.execute(sql, parameters(rows[...]), cached: true) }) {
            return (written, .insert)
        }
        return (try oneByOne(sql, session, refused: &refused), .oneByOne)
    }

    /// Nil when PostgreSQL refuses a row.
    private func attempt(_ session: PostgresSession, _ body: () throws -> Int) throws -> Int? {
        do { return try guarded(session, body) } catch let failure as PostgresFailure where Self.isRefusal(failure) { return nil }
    }

    private func oneByOne(_ sql: String, _ session: PostgresSession, refused: inout [RefusedRecord]) throws -> Int {
        var written = 0
        for index in rows.indices {
            do {
                written += try guarded(session) { try session.execute(sql, parameters(rows[index...index]), cached: true) }
            } catch let failure as PostgresFailure where Self.isRefusal(failure) {
                refused.append(RefusedRecord(source: rows[index].source, code: .ingestRejected, reason: failure.message))
            }
        }
        return written
    }

    /// Runs the body so that its failure does not end the transaction.
    private func guarded<R>(_ session: PostgresSession, _ body: () throws -> R) throws -> R {
        try session.script("SAVEPOINT bulk")
        do {
            let result = try body()
            try session.script("RELEASE SAVEPOINT bulk")
            return result
        } catch let failure as PostgresFailure where Self.isRefusal(failure) {
            try session.script("ROLLBACK TO SAVEPOINT bulk")
            throw failure
        }
    }

    private static func isRefusal(_ failure: PostgresFailure) -> Bool {
        failure.isRefusedValue || PostgresRowTransaction.isRaised(failure)
    }

    private var copySQL: String { "COPY \(shape.table) (\(shape.columnList)) FROM STDIN" }

    /// The rows in COPY's text format, in pieces of about 64 KiB.
    private var copyData: [[UInt8]] {
        var pieces: [[UInt8]] = []
        var piece: [UInt8] = []
        for row in rows {
            for index in shape.forms.indices {
                if index > 0 { piece.append(UInt8(ascii: "\t")) }
                append(text(of: index, in: row.row), to: &piece)
            }
            piece.append(UInt8(ascii: "\n"))
            if piece.count >= 65_536 {
                pieces.append(piece)
                piece.removeAll(keepingCapacity: true)
            }
        }
        if !piece.isEmpty { pieces.append(piece) }
        return pieces
    }

    private func append(_ text: String?, to piece: inout [UInt8]) {
        guard let text else { return piece.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "N")]) }
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): piece.append(contentsOf: [byte, byte])
            case UInt8(ascii: "\n"): piece.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "n")])
            case UInt8(ascii: "\r"): piece.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "r")])
            case UInt8(ascii: "\t"): piece.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "t")])
            default: piece.append(byte)
            }
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

    private func parameters(_ rows: ArraySlice<IngestRow>) -> [PostgresParameter] {
        shape.forms.indices.map { index in .text(StoreText.array(rows.map { text(of: index, in: $0.row) })) }
    }

    private func text(of index: Int, in row: Row) -> String? {
        let form = shape.forms[index]
        let value = row[index] ?? form.property.emptyValue
        return form.text(form.property.collection != .none && value.isNull ? form.property.emptyValue : value)
    }
}
