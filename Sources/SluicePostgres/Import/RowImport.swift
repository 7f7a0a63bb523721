package import SluiceCore
import SluicePorts

/// Inserts the rows of an import into a class's table, like any other program that writes by SQL.
///
/// COPY is tried first. If a row is at fault, existing keys are left out, and the rest is halved until only rows at fault are left out.
package struct RowImport: Sendable {
    /// A row that PostgreSQL did not take.
    package struct Refused: Hashable, Sendable {
        /// The index of the row in the chunk.
        package var index: Int
        package var reason: String
    }

    /// The time limit of a COPY, and of a wait of a read for its next row.
    private static let limit = Duration.seconds(600)
    /// The size at which a piece is handed to libpq, in bytes. Its last row may exceed it.
    private static let pieceBytes = 65_536

    private let shape: TableShape

    package init(_ shape: TableShape) { self.shape = shape }

    package var type: String { shape.type.name }
    package var table: String { shape.mapping.displayName }

    /// Inserts rows within the session's transaction.
    ///
    /// - Returns: The digest of the inserted rows, and the refused rows by index.
    /// - Throws: An error that does not concern values. The transaction is then of no use.
    package func insert(
        _ rows: [RowRef], of buffer: RowBuffer, _ session: PostgresSession
    ) throws -> (digest: RowDigest, refused: [Refused]) {
        guard !rows.isEmpty else { return (RowDigest(), []) }
        var refused: [Refused] = []
        let all = Array(rows.indices)
        if try attempt(all, rows, buffer, session) != nil {
            let fresh = try withoutKnownKeys(all, rows, buffer, session, &refused)
            try insert(fresh[...], rows, buffer, session, &refused)
            refused.sort { $0.index < $1.index }
        }
        let outside = Set(refused.map(\.index))
        var digest = RowDigest()
        unsafe buffer.withBase { cells, arena in
            for (index, row) in rows.enumerated() where !outside.contains(index) {
                unsafe digest.add(RowView(cells: cells + Int(row.start), count: Int(row.count), arena: arena), shape.forms)
            }
        }
        return (digest, refused)
    }

    private func insert(
        _ indexes: ArraySlice<Int>, _ rows: [RowRef], _ buffer: RowBuffer, _ session: PostgresSession, _ refused: inout [Refused]
    ) throws {
        guard let first = indexes.first, let failure = try attempt(Array(indexes), rows, buffer, session) else { return }
        guard indexes.count > 1 else { return refused.append(Refused(index: first, reason: failure.message)) }
        // The earlier half goes first: of two rows that exclude each other, the first is kept.
        let middle = indexes.startIndex + indexes.count / 2
        try insert(indexes[..<middle], rows, buffer, session, &refused)
        try insert(indexes[middle...], rows, buffer, session, &refused)
    }

    /// Runs a COPY in a savepoint.
    ///
    /// - Returns: The failure for which a row may be at fault; nil if all rows are inserted.
    private func attempt(_ indexes: [Int], _ rows: [RowRef], _ buffer: RowBuffer, _ session: PostgresSession) throws -> PostgresError? {
        try session.script("SAVEPOINT import")
        do {
            try copy(indexes, rows, buffer, session)
            try session.script("RELEASE SAVEPOINT import")
            return nil
        } catch let failure as PostgresError where failure.isLasting && failure.isRefusedWrite {
            try session.script("ROLLBACK TO SAVEPOINT import; RELEASE SAVEPOINT import")
            return failure
        }
    }

    /// Sends rows by COPY. PostgreSQL processes a piece while the next one is encoded.
    private func copy(_ indexes: [Int], _ rows: [RowRef], _ buffer: RowBuffer, _ session: PostgresSession) throws {
        var next = 0
        var piece: [UInt8] = []
        try session.copyIn("COPY \(shape.table) (\(shape.columnList)) FROM STDIN", within: Self.limit) {
            piece.removeAll(keepingCapacity: true)
            unsafe buffer.withBase { cells, arena in
                while next < indexes.count, piece.count < Self.pieceBytes {
                    let row = rows[indexes[next]]
                    CopyText.append(
                        unsafe RowView(cells: cells + Int(row.start), count: Int(row.count), arena: arena), shape.forms, to: &piece)
                    next += 1
                }
            }
            return piece.isEmpty ? nil : piece
        }
    }

    /// Leaves out the rows whose keys exist in the table or in an earlier row of the chunk.
    private func withoutKnownKeys(
        _ indexes: [Int], _ rows: [RowRef], _ buffer: RowBuffer, _ session: PostgresSession, _ refused: inout [Refused]
    ) throws -> [Int] {
        // The time is part of the key of a table with time partitions.
        guard shape.mapping.partitions == nil else { return indexes }
        let keys = indexes.map { index in buffer.withView(rows[index]) { shape.forms[shape.key].written($0.value(shape.key)) ?? "" } }
        let found = try session.query(
            "SELECT \(shape.keyColumn)::text FROM \(shape.table) WHERE \(shape.keyColumn) = ANY ($1::\(shape.forms[shape.key].columnType)[])",
            [.text(StoreText.array(keys))], within: Self.limit)
        let stored = Set(found.column(0).map { Array($0.utf8) })
        var seen: Set<[UInt8]> = []
        return zip(indexes, keys).filter { index, key in
            let bytes = Array(key.utf8)
            if stored.contains(bytes) {
                refused.append(Refused(index: index, reason: "\(table) has a row with this key already"))
                return false
            }
            guard seen.insert(bytes).inserted else {
                refused.append(Refused(index: index, reason: "an earlier document of the collection has the same _id"))
                return false
            }
            return true
        }.map(\.0)
    }

    // MARK: Reading back

    /// Returns the digest of all rows of the table. Memory does not grow with their number.
    package func stored(_ session: PostgresSession) throws -> RowDigest {
        var digest = RowDigest()
        var buffer = RowBuffer()
        try session.stream("SELECT \(shape.columnList) FROM \(shape.table)", within: Self.limit) { row in
            buffer.removeAll()
            var hash = RowHash()
            for (index, form) in shape.forms.enumerated() {
                guard let cell = try? unsafe form.decode(row.bytes(index), into: &buffer) else {
                    // A row of another program that does not fit counts by its text.
                    unsafe hash.bytes(UnsafeRawBufferPointer(row.bytes(index) ?? UnsafeBufferPointer(start: nil, count: 0)))
                    continue
                }
                unsafe buffer.withBase { cells, arena in
                    unsafe hash.add(cell, of: RowView(cells: cells, count: 0, arena: arena), form)
                }
            }
            digest.add(hash)
        }
        return digest
    }

    /// Returns `true` if the table has no row.
    package func isEmpty(_ session: PostgresSession) throws -> Bool {
        try session.query("SELECT NOT EXISTS (SELECT FROM \(shape.table))", within: Self.limit).bool(0, 0) ?? false
    }

    /// Renews the statistics, by which PostgreSQL plans the gateway's queries.
    package func analyze(_ session: PostgresSession) throws {
        try session.script("ANALYZE \(shape.table)", within: Self.limit)
    }
}
