package import SluiceCore

/// A row that does not fit its class and is not sent (EXT-3).
package struct QuarantinedRow: Hashable, Sendable {
    package var type: String
    /// PostgreSQL's text of the primary key.
    package var key: String
    package var reason: String
    /// The change that it was met in; zero when it was met by reading the table.
    package var lsn: String
    /// When that was, UTC.
    package var at: String
}

/// Rows that do not fit their type (`sluice.quarantine`, EXT-3): the last reason of each, for as long as it does not fit.
package struct QuarantineStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Notes rows that do not fit, and forgets those that fit again or are gone, in the order given.
    package func record(_ rows: [UnfitRow], types: [String]) async throws {
        guard !rows.isEmpty else { return }
        try await pool.transact { session in
            for row in rows where types.indices.contains(Int(row.type)) {
                let subject: [PostgresParameter] = [.text(types[Int(row.type)]), .text(StoreText.printable(row.key))]
                let lsn = PostgresParameter.text(row.position.lsn.description)
                guard let reason = row.reason else {
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

    /// Notes a row that was met by reading its table; what a change said of it stays.
    package func met(type: String, key: String, reason: String) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "INSERT INTO sluice.quarantine (type, key, reason, lsn) VALUES ($1, $2, $3, '0/0') ON CONFLICT DO NOTHING",
                [.text(type), .text(StoreText.printable(key)), .text(StoreText.printable(reason))], cached: true)
        }
    }

    /// The newest first, at most `limit`.
    /// - Parameter type: of this class only.
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

    /// Why a row is not sent; nil when it is not noted.
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

    /// Looks at rows that are noted, any of them when there are more than `limit`, and releases what fits by now.
    ///
    /// A row that fits is written once more as it is: so its change passes, and devices get it as they would a new row. Rows that
    /// are locked by others are left for the next time; those that are gone, and those of classes without a table, are forgotten.
    /// - Parameter shape: the table of a class; nil when it has none.
    /// - Returns: how many were released or forgotten.
    package func release(_ shape: @escaping @Sendable (String) -> TableShape?, limit: Int) async throws -> Int {
        let rows = try await pool.perform { session in
            let result = try session.query("SELECT type, key FROM sluice.quarantine ORDER BY random() LIMIT $1", [.int(limit)])
            return (0..<result.count).map { (type: result[$0, 0] ?? "", key: result[$0, 1] ?? "") }
        }
        var released = 0
        for row in rows where try await release(row.type, row.key, shape(row.type)) { released += 1 }
        return released
    }

    private func release(_ type: String, _ key: String, _ shape: TableShape?) async throws -> Bool {
        try await pool.transact { session in
            let entry: [PostgresParameter] = [.text(type), .text(key)]
            guard let shape, !key.isEmpty else { return try Self.forget(entry, session) }
            let place = "FROM \(shape.table) WHERE \(shape.keyColumn) = $1"
            let found = try session.query("SELECT \(shape.columnList) \(place) FOR UPDATE SKIP LOCKED", [.text(key)])
            guard !found.isEmpty else {
                let isThere = try session.query("SELECT EXISTS (SELECT \(place))", [.text(key)]).bool(0, 0) == true
                return isThere ? false : try Self.forget(entry, session)
            }
            if let reason = Self.misfit(found, shape) {
                try session.execute(
                    "UPDATE sluice.quarantine SET reason = $3 WHERE type = $1 AND key = $2", entry + [.text(StoreText.printable(reason))])
                return false
            }
            try session.execute(
                "UPDATE \(shape.table) SET \(shape.keyColumn) = \(shape.keyColumn) WHERE \(shape.keyColumn) = $1", [.text(key)])
            return try Self.forget(entry, session)
        }
    }

    private static func forget(_ entry: [PostgresParameter], _ session: PostgresSession) throws -> Bool {
        try session.execute("DELETE FROM sluice.quarantine WHERE type = $1 AND key = $2", entry)
        return true
    }

    /// Why the row of a result does not fit; nil when it does.
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
