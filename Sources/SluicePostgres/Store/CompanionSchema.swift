import SluiceCore

/// The schema `sluice`: what the gateway keeps beside the app's own tables (DESIGN section 4). No app table is touched.
package enum CompanionSchema {
    /// The version that this release writes. Versions only add; one step each.
    package static var version: Int { steps.count }

    /// Makes the schema, or brings an older one up to date; does nothing when it is. Gateways that start at once wait for
    /// each other.
    /// - Throws: `configInvalid` when a newer release has been here.
    package static func migrate(_ connection: PostgresConnection) async throws {
        try await connection.withSession { session in
            try session.inTransaction {
                try session.query("SELECT pg_advisory_xact_lock($1)", [.int(lock)], within: .seconds(60))
                try session.script(
                    """
                    CREATE SCHEMA IF NOT EXISTS sluice;
                    CREATE TABLE IF NOT EXISTS sluice.meta (key text PRIMARY KEY, value text NOT NULL)
                    """)
                let found = try session.query("SELECT value FROM sluice.meta WHERE key = 'version'").int(0, 0) ?? 0
                guard found <= Int64(version) else {
                    throw SluiceError(
                        .configInvalid, "The schema sluice has version \(found), this release knows \(version).",
                        fix: "Run the newer release, or restore an older database.")
                }
                for step in steps.dropFirst(Int(found)) {
                    try session.script(step)
                    if step == EmailForms.table { try EmailForms.migrate(session) }
                }
                try session.execute(
                    "INSERT INTO sluice.meta VALUES ('version', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    [.int(version)])
            }
        }
    }

    /// The advisory lock of migrations: the letters "sluice" as a number.
    static let lock: Int64 = 0x736C_7569_6365

    /// Step n leads from version n to n + 1. Never change one that was released.
    private static let steps = [
        core + users + ingest, horizon, session, appSchema, userChange, deadLetters, timePartitions, ingestRequest, refusalRule,
        refusalObject, refusalCause, deadLettersOnce, changesetTime, deadLetterTurn, publishedTable,
        ingestAnswer, ingestNumber, adminAudit, EmailForms.table,
    ]

    /// Clients, clocks, property numbers, refusals.
    ///
    /// Keys are texts of primary keys, compared byte by byte; a class has one type of key, so its texts are unique.
    private static let core = """
        DO $$ BEGIN
            IF to_regtype('sluice.objectid') IS NULL THEN
                CREATE DOMAIN sluice.objectid AS text COLLATE "C" CHECK (VALUE ~ '^[0-9a-f]{24}$');
            END IF;
        END $$;
        CREATE TABLE sluice.property (
            type text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, id integer NOT NULL CHECK (id > 0),
            PRIMARY KEY (type, name), UNIQUE (type, id)
        );
        CREATE TABLE sluice.client (
            id bigserial PRIMARY KEY, user_id text NOT NULL, secret bytea NOT NULL,
            last_changeset bigint NOT NULL DEFAULT 0, last_ingest bigint NOT NULL DEFAULT 0,
            created_at timestamptz NOT NULL DEFAULT now(), seen_at timestamptz NOT NULL DEFAULT now()
        );
        CREATE INDEX client_user ON sluice.client (user_id);
        CREATE TABLE sluice.row_clock (
            type text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, clocks bytea NOT NULL, deleted_lsn pg_lsn,
            PRIMARY KEY (type, key)
        );
        CREATE SEQUENCE sluice.compensation;
        CREATE TABLE sluice.rejected_write (
            id bigserial PRIMARY KEY, compensation bigint NOT NULL, client bigint NOT NULL, changeset bigint NOT NULL,
            type text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, key_value jsonb NOT NULL,
            code integer NOT NULL, reason text NOT NULL, values jsonb NOT NULL,
            at timestamptz NOT NULL DEFAULT now(), acknowledged boolean NOT NULL DEFAULT false
        );
        CREATE INDEX rejected_write_open ON sluice.rejected_write (client, compensation) WHERE NOT acknowledged;
        CREATE TABLE sluice.quarantine (
            type text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, reason text NOT NULL, lsn pg_lsn NOT NULL,
            at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (type, key)
        );

        """

    private static let users = """
        CREATE TABLE sluice.user_account (
            id text COLLATE "C" PRIMARY KEY, email text COLLATE "C" UNIQUE, password_hash text, provider text NOT NULL,
            identities jsonb NOT NULL DEFAULT '[]', data jsonb NOT NULL DEFAULT '{}', custom_data jsonb NOT NULL DEFAULT '{}',
            disabled boolean NOT NULL DEFAULT false, created_at timestamptz NOT NULL DEFAULT now()
        );
        CREATE INDEX user_account_identities ON sluice.user_account USING gin (identities jsonb_path_ops);
        CREATE TABLE sluice.refresh_token (
            hash bytea PRIMARY KEY, user_id text COLLATE "C" NOT NULL REFERENCES sluice.user_account ON DELETE CASCADE,
            created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL, revoked boolean NOT NULL DEFAULT false
        );
        CREATE INDEX refresh_token_user ON sluice.refresh_token (user_id);
        CREATE TABLE sluice.signing_key (
            name text PRIMARY KEY, key bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT now()
        );

        """

    private static let ingest = """
        CREATE TABLE sluice.ingest_offset (
            topic text COLLATE "C" NOT NULL, partition integer NOT NULL, next_offset bigint NOT NULL,
            PRIMARY KEY (topic, partition)
        );
        CREATE TABLE sluice.ingest_rejected (
            id bigserial PRIMARY KEY, type text COLLATE "C" NOT NULL, source text NOT NULL, code integer NOT NULL,
            reason text NOT NULL, object text NOT NULL, at timestamptz NOT NULL DEFAULT now()
        );

        """

    /// What is needed to send a refused object again, and to tell the dead-letter topic of it.
    private static let deadLetters = """
        ALTER TABLE sluice.ingest_rejected
            ADD COLUMN log_offset bigint, ADD COLUMN bytes bytea, ADD COLUMN published boolean NOT NULL DEFAULT false;
        CREATE INDEX ingest_rejected_unpublished ON sluice.ingest_rejected (id) WHERE NOT published;

        """

    /// An object that is refused again as it was, because whoever sent it had no answer, is the same letter; what cannot be read is one for
    /// each record of the log. One that is being sent again is none: what becomes of it is new. It is gone when it has been sent; its row
    /// waits until the topic has it.
    private static let deadLettersOnce = """
        ALTER TABLE sluice.ingest_rejected
            ADD COLUMN replayed boolean NOT NULL DEFAULT false, ADD COLUMN gone boolean NOT NULL DEFAULT false;
        DELETE FROM sluice.ingest_rejected AS later USING sluice.ingest_rejected AS first
            WHERE first.type = later.type AND first.id < later.id AND 801 NOT IN (first.code, later.code)
                AND md5(coalesce(encode(first.bytes, 'hex'), first.object)) = md5(coalesce(encode(later.bytes, 'hex'), later.object));
        CREATE UNIQUE INDEX ingest_rejected_once ON sluice.ingest_rejected (type, md5(coalesce(encode(bytes, 'hex'), object)))
            WHERE NOT replayed AND code <> 801;

        """

    /// The tables that are cut by time.
    private static let timePartitions = """
        CREATE TABLE sluice.time_partition (
            table_name text COLLATE "C" PRIMARY KEY, column_name text NOT NULL, period text NOT NULL CHECK (period IN ('day', 'week', 'month')),
            keep_days integer CHECK (keep_days > 0)
        );

        """

    /// Below the horizon nothing has to be remembered: no client that counts can write any more without knowing of it.
    private static let horizon = """
        ALTER TABLE sluice.client ADD COLUMN position pg_lsn NOT NULL DEFAULT '0/0';
        CREATE TABLE sluice.horizon (lsn pg_lsn NOT NULL, at timestamptz NOT NULL);
        INSERT INTO sluice.horizon VALUES ('0/0', now());
        CREATE INDEX row_clock_deleted ON sluice.row_clock (deleted_lsn) WHERE deleted_lsn IS NOT NULL;

        """

    /// How often a client file has been opened.
    private static let session = """
        ALTER TABLE sluice.client ADD COLUMN session bigint NOT NULL DEFAULT 0;

        """

    /// Every schema that the app has had: what the next one is compared with, and where running gateways learn of it.
    private static let appSchema = """
        CREATE TABLE sluice.app_schema (
            version bigint PRIMARY KEY, definition jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now()
        );

        """

    /// What happened to users whose sessions may have to notice, on whichever gateway they are; also when somebody else than a
    /// gateway changed them. One transaction after the other takes numbers, so a number that can be seen has none below it that
    /// will be.
    private static let userChange = """
        CREATE TABLE sluice.user_change (
            number bigserial PRIMARY KEY, user_id text COLLATE "C" NOT NULL, kind text NOT NULL, at timestamptz NOT NULL DEFAULT now()
        );
        CREATE INDEX user_change_at ON sluice.user_change (at);
        CREATE FUNCTION sluice.note_user_changes(ids text[], kinds text[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
            IF cardinality(ids) > 0 THEN
                PERFORM pg_advisory_xact_lock(\(lock + 1));
                INSERT INTO sluice.user_change (user_id, kind) SELECT * FROM unnest(ids, kinds);
            END IF;
        END $$;
        CREATE FUNCTION sluice.users_updated() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM sluice.note_user_changes(array_agg(n.id), array_agg(CASE WHEN n.disabled AND NOT o.disabled THEN 'disabled' ELSE 'data' END))
                FROM new_users n JOIN old_users o USING (id)
                WHERE n.disabled AND NOT o.disabled
                    OR (n.identities, n.data, n.custom_data) IS DISTINCT FROM (o.identities, o.data, o.custom_data);
            RETURN NULL;
        END $$;
        CREATE FUNCTION sluice.users_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM sluice.note_user_changes(array_agg(id), array_agg('deleted'::text)) FROM old_users;
            RETURN NULL;
        END $$;
        CREATE TRIGGER updated AFTER UPDATE ON sluice.user_account REFERENCING OLD TABLE AS old_users NEW TABLE AS new_users
            FOR EACH STATEMENT EXECUTE FUNCTION sluice.users_updated();
        CREATE TRIGGER deleted AFTER DELETE ON sluice.user_account REFERENCING OLD TABLE AS old_users
            FOR EACH STATEMENT EXECUTE FUNCTION sluice.users_deleted();

        """

    /// Ingest by HTTP: requests that can be told from their repetitions, and keys that programs log in with.
    private static let ingestRequest = """
        CREATE TABLE sluice.ingest_request (
            user_id text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, owner text NOT NULL, type text COLLATE "C" NOT NULL,
            lease_until timestamptz NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
            body bytea, status integer, answer text,
            PRIMARY KEY (user_id, key)
        );
        CREATE INDEX ingest_request_created ON sluice.ingest_request (created_at);
        CREATE TABLE sluice.api_key (
            id text COLLATE "C" PRIMARY KEY, user_id text COLLATE "C" NOT NULL REFERENCES sluice.user_account ON DELETE CASCADE,
            name text COLLATE "C" NOT NULL, hash bytea NOT NULL UNIQUE, disabled boolean NOT NULL DEFAULT false,
            is_server boolean NOT NULL DEFAULT false, created_at timestamptz NOT NULL DEFAULT now(),
            UNIQUE (user_id, name)
        );
        CREATE UNIQUE INDEX api_key_server_name ON sluice.api_key (name) WHERE is_server;

        """

    /// What decided on a refusal, for operators.
    private static let refusalRule = "ALTER TABLE sluice.rejected_write ADD COLUMN rule text"

    /// What was refused of one object, for `sluice why`.
    private static let refusalObject = "CREATE INDEX rejected_write_object ON sluice.rejected_write (type, key, id)"

    /// When the last changeset was made, by its file's clock: tells it from another of that number.
    private static let changesetTime = "ALTER TABLE sluice.client ADD COLUMN last_time bigint NOT NULL DEFAULT 0"

    /// Whose turn it is to tell the dead-letter topic, and until when what was sent may arrive; one row.
    private static let deadLetterTurn = """
        CREATE TABLE sluice.dead_letter_turn (number bigint NOT NULL, until timestamptz NOT NULL);
        CREATE UNIQUE INDEX dead_letter_turn_one ON sluice.dead_letter_turn ((true));

        """

    /// The tables whose changes are in the write-ahead log: the numbers of each and its partitions, and the transaction since which it
    /// is these.
    private static let publishedTable =
        "CREATE TABLE sluice.published_table (table_name text COLLATE \"C\" PRIMARY KEY, parts text NOT NULL, since xid8 NOT NULL)"

    /// Acknowledgements that say what was refused, as long as the client may not have heard them.
    private static let ingestAnswer = """
        CREATE TABLE sluice.ingest_answer (
            client bigint NOT NULL REFERENCES sluice.client ON DELETE CASCADE, number bigint NOT NULL, answer bytea NOT NULL,
            PRIMARY KEY (client, number)
        );

        """

    /// The highest ingest number of a client file that took effect; earlier releases kept it in the file's line (`last_ingest`), which
    /// changesets lock.
    private static let ingestNumber = """
        CREATE TABLE sluice.ingest_number (
            client bigint PRIMARY KEY REFERENCES sluice.client ON DELETE CASCADE, number bigint NOT NULL
        );

        """

    /// Operators' changes by the admin port.
    private static let adminAudit = """
        CREATE TABLE sluice.admin_audit (
            id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), actor text NOT NULL, address text NOT NULL,
            action text NOT NULL, subject text NOT NULL, before jsonb, after jsonb
        );

        """

    /// Why, for programs, and the fields at fault: as the client is told again after a reconnection.
    private static let refusalCause = """
        ALTER TABLE sluice.rejected_write ADD COLUMN cause text NOT NULL DEFAULT '', ADD COLUMN fields jsonb NOT NULL DEFAULT '[]'
        """
}
