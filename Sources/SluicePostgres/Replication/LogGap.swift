/// A logical message about a gap: the WAL lacks earlier changes of a table. Every later reader of the WAL receives it in its place.
enum LogGap {
    static let prefix = "sluice-gap"

    /// Writes the message if the table has been published before; otherwise no reader has missed changes.
    ///
    /// It belongs to the transaction that publishes the table in its present form.
    static func write(_ table: TableMapping, _ session: PostgresSession) throws {
        try session.query(
            // Constant because: the prefix is defined in this file.
            "SELECT pg_logical_emit_message(true, '\(prefix)', table_name) FROM sluice.published_table WHERE table_name = $1",
            [.text(table.sqlName)])
    }
}
