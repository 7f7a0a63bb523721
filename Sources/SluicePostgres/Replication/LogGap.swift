/// A logical message that says: of this table the write-ahead log lacks changes that were made before. Whoever reads the log learns it in
/// its place, whoever it is by then.
enum LogGap {
    static let prefix = "sluice-gap"

    /// Writes one when the table was published before; else nobody has read it. It belongs to the transaction in which the table is
    /// published as it is now.
    static func write(_ table: TableMapping, _ session: PostgresSession) throws {
        try session.query(
            // Constant because: the prefix is this file's.
            "SELECT pg_logical_emit_message(true, '\(prefix)', table_name) FROM sluice.published_table WHERE table_name = $1",
            [.text(table.sqlName)])
    }
}
