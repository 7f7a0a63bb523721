/// The cursors of database triggers, and the progress of users' events at their two destinations.
///
/// - `user_event.published`, `triggered`: the topic has the event; its triggers have run.
/// - `user_event.publish_due`: the time until which a gateway appends the event, or waits for the brokers.
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
        ALTER TABLE sluice.user_event ADD COLUMN triggered boolean NOT NULL DEFAULT false,
            ADD COLUMN publish_due timestamptz NOT NULL DEFAULT '-infinity';
        CREATE INDEX user_event_unpublished ON sluice.user_event (id) WHERE NOT published;
        CREATE INDEX user_event_untriggered ON sluice.user_event (id) WHERE NOT triggered;

        """
}
