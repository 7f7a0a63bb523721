/// Keeps tables of what was refused from growing with the patience of whoever sends it.
package enum RefusalPruning {
    /// Rows that one statement deletes.
    package static let batch = 10_000

    /// - Parameters:
    ///   - condition: what has been told, and may go.
    ///   - count: of numbers, the newest, that stay.
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
