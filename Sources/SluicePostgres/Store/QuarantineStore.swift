import SluiceCore
package import SluicePorts

/// A row that does not fit its class and is not sent to clients.
package struct QuarantinedRow: Hashable, Sendable {
    package var type: String
    /// The primary key, as PostgreSQL's text.
    package var key: String
    package var reason: String
    /// The position of the change that carried the row; `0/0` if it was found by reading the table.
    package var lsn: String
    /// The time of the record, in UTC.
    package var at: String
}

/// The store of rows that do not fit their class (`sluice.quarantine`), with the last reason of each. A row that fits again leaves
/// it.
package struct QuarantineStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Records rows that do not fit, and removes those that fit again or were deleted. Rows are processed in the given order.
    package func record(_ rows: [UnfitRow], types: [String]) async throws {
        guard !rows.isEmpty else { return }
        try await pool.transact { session in
            for row in rows where types.indices.contains(Int(row.type)) {
                let subject: [PostgresParameter] = [.text(types[Int(row.type)]), .text(StoreText.printable(row.key))]
                let lsn = PostgresParameter.text(row.position.lsn.description)
                guard let reason = row.reason else {
                    // An older change must not remove the record of a newer one.
                    try session.execute(
                        "DELETE FROM sluice.quarantine WHERE type = $1 AND key = $2 AND lsn <= $3", subject + [lsn], cached: true)
                    continue
                }
                try session.execute(
                    """
                    INSERT INTO sluice.quarantine (type, key, reason, lsn) VALUES ($1, $2, $3, $4)
                    ON CONFLICT (type, key) DO UPDATE SET reason = excluded.reason, lsn = excluded.lsn, at = now()
                    """, subject + [.text(StoreText.printable(reason)), lsn], cached: true)
            }
        }
    }

    /// Records a row that was found by reading its table. An existing record stays.
    package func met(type: String, key: String, reason: String) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "INSERT INTO sluice.quarantine (type, key, reason, lsn) VALUES ($1, $2, $3, '0/0') ON CONFLICT DO NOTHING",
                [.text(type), .text(StoreText.printable(key)), .text(StoreText.printable(reason))], cached: true)
        }
    }

    /// Returns records, newest first, at most `limit`.
    ///
    /// - Parameter type: Only records of this class; nil for all.
    package func list(type: String? = nil, limit: Int = 100) async throws -> [QuarantinedRow] {
        try await pool.perform { session in
            let result = try session.query(
                """
                SELECT type, key, reason, lsn, \(StoreText.time("at")) FROM sluice.quarantine WHERE $1::text IS NULL OR type = $1
                ORDER BY at DESC, type, key LIMIT $2
                """, [.optional(type), .int(limit)])
            return (0..<result.count).map { row in
                QuarantinedRow(
                    type: result[row, 0] ?? "", key: result[row, 1] ?? "", reason: result[row, 2] ?? "", lsn: result[row, 3] ?? "",
                    at: result[row, 4] ?? "")
            }
        }
    }

    /// Returns the reason why a row is not sent; nil if it is not recorded.
    package func reason(type: String, key: String) async throws -> String? {
        try await pool.perform { session in
            let result = try session.query(
                "SELECT reason FROM sluice.quarantine WHERE type = $1 AND key = $2", [.text(type), .text(StoreText.printable(key))],
                cached: true)
            return result.isEmpty ? nil : result[0, 0]
        }
    }

    package func count() async throws -> Int {
        try await pool.perform { session in
            Int(try session.query("SELECT count(*) FROM sluice.quarantine", cached: true).int(0, 0) ?? 0)
        }
    }

    // MARK: Release

    /// Checks up to `limit` records, chosen at random, and releases rows that fit by now.
    ///
    /// A row that fits is written once more, unchanged. Its change passes through the WAL, and devices receive it as they would a
    /// new row. Rows that others have locked remain until the next call. Records of deleted rows, and of classes without a table,
    /// are removed. A row that PostgreSQL does not let be written remains, with that reason.
    /// - Parameter shape: Returns the table of a class; nil if it has none.
    /// - Returns: The number of records released or removed.
    /// - Throws: An error that does not concern the row, such as of a lost connection.
    package func release(_ shape: @escaping @Sendable (String) -> TableShape?, limit: Int) async throws -> Int {
        let rows = try await pool.perform { session in
            let result = try session.query("SELECT type, key FROM sluice.quarantine ORDER BY random() LIMIT $1", [.int(limit)])
            return (0..<result.count).map { (type: result[$0, 0] ?? "", key: result[$0, 1] ?? "") }
        }
        var released = 0
        for row in rows {
            do {
                if try await release(row.type, row.key, shape(row.type)) { released += 1 }
            } catch let failure as SluiceError where !failure.code.isTemporary {
                try await pool.perform { session in
                    let reason = "it fits, and PostgreSQL does not let it be written: \(failure.operatorText)"
                    try Self.note([.text(row.type), .text(row.key)], reason, session)
                }
            }
        }
        return released
    }

    private func release(_ type: String, _ key: String, _ shape: TableShape?) async throws -> Bool {
        try await pool.transact { session in
            let entry: [PostgresParameter] = [.text(type), .text(key)]
            guard let shape, !key.isEmpty else { return try Self.forget(entry, session) }
            // A row that the gateway may only read is released once its owner writes it.
            guard shape.mapping.isWritable else { return false }
            let place = "FROM \(shape.table) WHERE \(shape.lookupKey) = $1"
            let found = try session.query("SELECT \(shape.columnList) \(place) FOR UPDATE SKIP LOCKED", [.text(key)])
            guard !found.isEmpty else {
                // SKIP LOCKED passes over a locked row, too. Only the record of a row that does not exist is removed.
                let isThere = try session.query("SELECT EXISTS (SELECT \(place))", [.text(key)]).bool(0, 0) == true
                return isThere ? false : try Self.forget(entry, session)
            }
            if let reason = Self.misfit(found, shape) {
                // The row may misfit for another reason by now.
                try Self.note(entry, reason, session)
                return false
            }
            // An identity column does not accept its own value. The key is the last choice: other tables may refer to it.
            let candidates = shape.written.filter { !shape.mapping.facts[$0].isIdentity }
            guard let index = candidates.first(where: { $0 != shape.key }) ?? candidates.first else {
                try Self.note(entry, "it fits, and no column of it can be written: write the row by SQL", session)
                return false
            }
            let column = shape.columns[index]
            try session.execute("UPDATE \(shape.table) SET \(column) = \(column) WHERE \(shape.lookupKey) = $1", [.text(key)])
            return try Self.forget(entry, session)
        }
    }

    /// Replaces the reason of a record.
    private static func note(_ entry: [PostgresParameter], _ reason: String, _ session: PostgresSession) throws {
        try session.execute(
            "UPDATE sluice.quarantine SET reason = $3 WHERE type = $1 AND key = $2", entry + [.text(StoreText.printable(reason))])
    }

    private static func forget(_ entry: [PostgresParameter], _ session: PostgresSession) throws -> Bool {
        try session.execute("DELETE FROM sluice.quarantine WHERE type = $1 AND key = $2", entry)
        return true
    }

    /// Returns the reason why the row of a result does not fit; nil if it does.
    private static func misfit(_ result: PostgresResult, _ shape: TableShape) -> String? {
        var reason: String?
        result.forEach { row in
            var buffer = RowBuffer()
            buffer.beginRow()
            for (index, form) in shape.forms.enumerated() where reason == nil {
                do throws(Misfit) {
                    buffer.append(unsafe try form.decode(row.bytes(index), into: &buffer))
                } catch {
                    reason = error.reason
                }
            }
            if reason == nil, buffer.isLarger(buffer.endRow(), than: shape.bound.current) {
                reason = Misfit.tooLarge(shape.bound.current).reason
            }
        }
        return reason
    }
}
