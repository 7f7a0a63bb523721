/// The bound of the tables of rejections, which clients could otherwise grow without limit.
package enum RejectionPruning {
    /// The maximum number of rows that one statement deletes.
    package static let batch = 10_000

    /// Deletes the oldest rows that meet the condition.
    ///
    /// - Parameters:
    ///   - condition: SQL for the rows that may be deleted, such as those that have been delivered.
    ///   - count: The number of newest ids that are kept.
    /// - Returns: The number of deleted rows, at most `batch`.
    static func delete(from table: String, where condition: String, keeping count: Int64, _ pool: PostgresPool) async throws -> Int {
        try await pool.perform { session in
            let deleted = try session.execute(
                """
                DELETE FROM \(table) WHERE id IN (
                    SELECT id FROM \(table) WHERE \(condition) AND id <= (SELECT max(id) FROM \(table)) - $1 ORDER BY id LIMIT \(batch))
                """, [.int(count)], cached: true)
            return Int(deleted)
        }
    }
}
