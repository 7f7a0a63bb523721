/// The cursors of database triggers.
///
/// - `trigger_cursor.lsn`, `ordinal`: the position of the last change that the trigger is done with.
/// - `trigger_cursor.next_offset`: the offset after its record.
/// - `trigger_cursor.turn`: the number of times that a gateway has opened the cursor. Only the last one moves it.
enum TriggerTables {
    /// A part of `CompanionSchema`.
    static let definition = """
        CREATE TABLE sluice.trigger_cursor (
            trigger text COLLATE "C" NOT NULL, topic text COLLATE "C" NOT NULL, partition integer NOT NULL,
            lsn pg_lsn NOT NULL, ordinal bigint NOT NULL, next_offset bigint NOT NULL, turn bigint NOT NULL DEFAULT 1,
            PRIMARY KEY (trigger, topic, partition)
        );

        """
}
