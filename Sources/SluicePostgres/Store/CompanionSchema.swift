import SluiceCore

/// The schema `sluice`, which holds the gateway's own data. Migrations change no app table.
package enum CompanionSchema {
    /// The schema version that this release writes. Each step adds one version.
    package static var version: Int { steps.count }

    /// Creates the schema or migrates an older version; does nothing if it is current. Gateways that start at once wait for each
    /// other, up to 60 s.
    ///
    /// - Throws: `configInvalid` if a newer release has migrated the schema.
    package static func migrate(_ connection: PostgresConnection) async throws {
        try await connection.withSession { session in
            try session.inTransaction {
                // Gateways that start at once migrate one after another, in one transaction each.
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
                    // This table is filled by code, within the same transaction.
                    if step == EmailForms.table { try EmailForms.migrate(session) }
                }
                try session.execute(
                    "INSERT INTO sluice.meta VALUES ('version', $1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    [.int(version)])
            }
        }
    }

    /// The advisory lock of migrations: the letters "sluice" as a number. `lock + 1` serializes user changes.
    static let lock: Int64 = 0x736C_7569_6365

    /// Step n migrates version n to n + 1. A released step must never be edited.
    private static let steps = [
        core + users + ingest, horizon, session, appSchema, userChange, deadLetters, timePartitions, ingestRequest, refusalRule,
        refusalObject, refusalCause, deadLettersOnce, changesetTime, deadLetterTurn, publishedTable,
        ingestAnswer, ingestNumber, adminAudit, EmailForms.table,
    ]

    /// Clients, clocks, property numbers and write rejections.
    ///
    /// Keys are the texts of primary keys, compared byte by byte. A class has one type of key, so its texts are unique.
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

    /// The data for sending a rejected object again and for publishing it to the dead-letter topic.
    private static let deadLetters = """
        ALTER TABLE sluice.ingest_rejected
            ADD COLUMN log_offset bigint, ADD COLUMN bytes bytea, ADD COLUMN published boolean NOT NULL DEFAULT false;
        CREATE INDEX ingest_rejected_unpublished ON sluice.ingest_rejected (id) WHERE NOT published;

        """

    /// The uniqueness of dead letters.
    ///
    /// An object that is rejected again unchanged, because its sender received no answer, is the same letter. Unreadable records
    /// (code 801) are one letter each. A letter that is being sent again (`replayed`) is exempt: its next rejection is a new
    /// letter. The column `gone` marks a letter that has been sent again and whose row waits until the dead-letter topic has it.
    private static let deadLettersOnce = """
        ALTER TABLE sluice.ingest_rejected
            ADD COLUMN replayed boolean NOT NULL DEFAULT false, ADD COLUMN gone boolean NOT NULL DEFAULT false;
        DELETE FROM sluice.ingest_rejected AS later USING sluice.ingest_rejected AS first
            WHERE first.type = later.type AND first.id < later.id AND 801 NOT IN (first.code, later.code)
                AND md5(coalesce(encode(first.bytes, 'hex'), first.object)) = md5(coalesce(encode(later.bytes, 'hex'), later.object));
        CREATE UNIQUE INDEX ingest_rejected_once ON sluice.ingest_rejected (type, md5(coalesce(encode(bytes, 'hex'), object)))
            WHERE NOT replayed AND code <> 801;

        """

    /// The tables that are partitioned by time.
    private static let timePartitions = """
        CREATE TABLE sluice.time_partition (
            table_name text COLLATE "C" PRIMARY KEY, column_name text NOT NULL, period text NOT NULL CHECK (period IN ('day', 'week', 'month')),
            keep_days integer CHECK (keep_days > 0)
        );

        """

    /// The horizon. Deletions below it are forgotten, because each client that counts has seen them.
    private static let horizon = """
        ALTER TABLE sluice.client ADD COLUMN position pg_lsn NOT NULL DEFAULT '0/0';
        CREATE TABLE sluice.horizon (lsn pg_lsn NOT NULL, at timestamptz NOT NULL);
        INSERT INTO sluice.horizon VALUES ('0/0', now());
        CREATE INDEX row_clock_deleted ON sluice.row_clock (deleted_lsn) WHERE deleted_lsn IS NOT NULL;

        """

    /// The number of times that a client has been opened.
    private static let session = """
        ALTER TABLE sluice.client ADD COLUMN session bigint NOT NULL DEFAULT 0;

        """

    /// All schemas that the app has had. The next schema is compared with the newest one, and running gateways read it here.
    private static let appSchema = """
        CREATE TABLE sluice.app_schema (
            version bigint PRIMARY KEY, definition jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now()
        );

        """

    /// Changes of users that sessions on any gateway may have to react to, including changes by other SQL writers.
    ///
    /// An advisory lock serializes the transactions that take numbers. If a number is visible, no smaller one can appear later.
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

    /// Ingest by HTTP: requests with idempotency keys, and API keys with which programs log in.
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

    /// The rule that decided a write rejection, for operators.
    private static let refusalRule = "ALTER TABLE sluice.rejected_write ADD COLUMN rule text"

    /// The index of write rejections by object, for `sluice why`.
    private static let refusalObject = "CREATE INDEX rejected_write_object ON sluice.rejected_write (type, key, id)"

    /// The time of a client's last changeset, by its own clock. It distinguishes two changesets with the same number.
    private static let changesetTime = "ALTER TABLE sluice.client ADD COLUMN last_time bigint NOT NULL DEFAULT 0"

    /// The current turn to publish to the dead-letter topic, and the time until which published letters may still arrive. One row.
    private static let deadLetterTurn = """
        CREATE TABLE sluice.dead_letter_turn (number bigint NOT NULL, until timestamptz NOT NULL);
        CREATE UNIQUE INDEX dead_letter_turn_one ON sluice.dead_letter_turn ((true));

        """

    /// The tables whose changes are in the WAL: the identifiers of each table and its partitions, and the transaction since which
    /// they are valid.
    private static let publishedTable =
        "CREATE TABLE sluice.published_table (table_name text COLLATE \"C\" PRIMARY KEY, parts text NOT NULL, since xid8 NOT NULL)"

    /// Acknowledgements with rejections, kept while the client may not have received them.
    private static let ingestAnswer = """
        CREATE TABLE sluice.ingest_answer (
            client bigint NOT NULL REFERENCES sluice.client ON DELETE CASCADE, number bigint NOT NULL, answer bytea NOT NULL,
            PRIMARY KEY (client, number)
        );

        """

    /// The highest ingest number of a client that has taken effect. Earlier releases kept it in `sluice.client.last_ingest`, in a
    /// row that changesets lock.
    private static let ingestNumber = """
        CREATE TABLE sluice.ingest_number (
            client bigint PRIMARY KEY REFERENCES sluice.client ON DELETE CASCADE, number bigint NOT NULL
        );

        """

    /// Changes that operators make through the admin port.
    private static let adminAudit = """
        CREATE TABLE sluice.admin_audit (
            id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), actor text NOT NULL, address text NOT NULL,
            action text NOT NULL, subject text NOT NULL, before jsonb, after jsonb
        );

        """

    /// The cause of a write rejection, for programs, and the fields at fault. The client receives both again after a reconnection.
    private static let refusalCause = """
        ALTER TABLE sluice.rejected_write ADD COLUMN cause text NOT NULL DEFAULT '', ADD COLUMN fields jsonb NOT NULL DEFAULT '[]'
        """
}
