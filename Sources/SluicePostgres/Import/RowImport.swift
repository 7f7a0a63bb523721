package import SluiceCore
import SluicePorts

/// Inserts the rows of an import into a class's table, like any other program that writes by SQL.
///
/// COPY is tried first. If a row is at fault, known keys are left out, and the rest is halved until only rows at fault are left out. A row
/// that the table has already with equal values is no fault, so that an import can be repeated.
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

    /// The outcome of a chunk.
    package struct Outcome: Sendable {
        /// The digest of the inserted rows.
        package var written = RowDigest()
        /// The number of rows that the table had already, with equal values.
        package var unchanged = 0
        /// The refused rows, by index.
        package var refused: [Refused] = []
        /// The indexes of the rows that were not inserted.
        var outside: Set<Int> = []

        mutating func refuse(_ index: Int, _ reason: String) {
            refused.append(Refused(index: index, reason: reason))
            outside.insert(index)
        }
    }

    /// Inserts rows within the session's transaction. Existing rows stay as they are.
    ///
    /// - Throws: An error that does not concern values. The transaction is then of no use.
    package func insert(_ rows: [RowRef], of buffer: RowBuffer, _ session: PostgresSession) throws -> Outcome {
        var outcome = Outcome()
        guard !rows.isEmpty else { return outcome }
        if try attempt(Array(rows.indices), rows, buffer, session) != nil {
            let fresh = try withoutKnownKeys(rows, buffer, session, &outcome)
            try insert(fresh[...], rows, buffer, session, &outcome)
            outcome.refused.sort { $0.index < $1.index }
        }
        unsafe buffer.withBase { cells, arena in
            for (index, row) in rows.enumerated() where !outcome.outside.contains(index) {
                unsafe outcome.written.add(
                    RowView(cells: cells + Int(row.start), count: Int(row.count), arena: arena), shape.forms)
            }
        }
        return outcome
    }

    private func insert(
        _ indexes: ArraySlice<Int>, _ rows: [RowRef], _ buffer: RowBuffer, _ session: PostgresSession, _ outcome: inout Outcome
    ) throws {
        guard let first = indexes.first, let failure = try attempt(Array(indexes), rows, buffer, session) else { return }
        guard indexes.count > 1 else { return outcome.refuse(first, failure.message) }
        // The earlier half goes first: of two rows that exclude each other, the first is kept.
        let middle = indexes.startIndex + indexes.count / 2
        try insert(indexes[..<middle], rows, buffer, session, &outcome)
        try insert(indexes[middle...], rows, buffer, session, &outcome)
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
        try session.copyIn("COPY \(shape.table) (\(shape.writtenList)) FROM STDIN", within: Self.limit) {
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

    // MARK: Known keys

    /// Leaves out the rows whose keys exist in the table or in an earlier row of the chunk.
    private func withoutKnownKeys(
        _ rows: [RowRef], _ buffer: RowBuffer, _ session: PostgresSession, _ outcome: inout Outcome
    ) throws -> [Int] {
        let stored = try storedRows(rows, buffer, session)
        var seen: [RowHash.Pair: RowHash.Pair] = [:]
        var fresh: [Int] = []
        for (index, row) in rows.enumerated() {
            let (identity, whole) = buffer.withView(row) { hashes($0) }
            guard let known = stored[identity] ?? seen[identity] else {
                seen[identity] = whole
                fresh.append(index)
                continue
            }
            if known == whole {
                outcome.unchanged += 1
                outcome.outside.insert(index)
            } else {
                let place =
                    stored[identity] == nil
                    ? "an earlier document of the collection has the same _id" : "\(table) has a row with this key already"
                outcome.refuse(index, "\(place), with other values")
            }
        }
        return fresh
    }

    /// Returns the stored rows with the keys of the given ones: the hash of each by that of its identity.
    private func storedRows(
        _ rows: [RowRef], _ buffer: RowBuffer, _ session: PostgresSession
    ) throws -> [RowHash.Pair: RowHash.Pair] {
        let keys = rows.map { row in buffer.withView(row) { shape.forms[shape.key].written($0.value(shape.key)) } }
        var found: [RowHash.Pair: RowHash.Pair] = [:]
        var scratch = RowBuffer()
        try session.stream(
            "SELECT \(shape.columnList) FROM \(shape.table) WHERE \(shape.lookupKey) = ANY ($1::\(shape.forms[shape.key].lookupType)[])",
            [.text(StoreText.array(keys))], within: Self.limit
        ) { row in
            let (identity, whole) = hashes(row, &scratch)
            found[identity.pair] = whole.pair
        }
        return found
    }

    /// `true` for the columns that identify a row: the key, and the time of a table with time partitions.
    private func isIdentity(_ index: Int) -> Bool {
        index == shape.key || shape.type.properties[index].name == shape.mapping.partitions?.property
    }

    private func hashes(_ row: RowView) -> (identity: RowHash.Pair, whole: RowHash.Pair) {
        var (identity, whole) = (RowHash(), RowHash())
        for (index, form) in shape.forms.enumerated() where !form.isGenerated {
            whole.add(row[index], of: row, form)
            if isIdentity(index) { identity.add(row[index], of: row, form) }
        }
        return (identity.pair, whole.pair)
    }

    private func hashes(_ row: PostgresRow, _ buffer: inout RowBuffer) -> (identity: RowHash, whole: RowHash) {
        buffer.removeAll()
        var (identity, whole) = (RowHash(), RowHash())
        for (index, form) in shape.forms.enumerated() where !form.isGenerated {
            guard let cell = try? unsafe form.decode(row.bytes(index), into: &buffer) else {
                // A row of another program that does not fit counts by its text.
                unsafe whole.bytes(UnsafeRawBufferPointer(row.bytes(index) ?? UnsafeBufferPointer(start: nil, count: 0)))
                continue
            }
            unsafe buffer.withBase { cells, arena in
                let view = unsafe RowView(cells: cells, count: 0, arena: arena)
                whole.add(cell, of: view, form)
                if isIdentity(index) { identity.add(cell, of: view, form) }
            }
        }
        return (identity, whole)
    }

    // MARK: Reading back

    /// Returns the digest of all rows of the table. Memory does not grow with their number.
    package func stored(_ session: PostgresSession) throws -> RowDigest {
        var digest = RowDigest()
        var buffer = RowBuffer()
        try session.stream("SELECT \(shape.columnList) FROM \(shape.table)", within: Self.limit) { row in
            digest.add(hashes(row, &buffer).whole)
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
