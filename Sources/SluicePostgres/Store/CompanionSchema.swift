import SluiceCore

/// The schema `sluice`, which holds the gateway's own data. It contains no app table.
package enum CompanionSchema {
    /// The version of the schema that this release creates and needs.
    package static let version = 5

    /// Creates the schema, or upgrades an earlier version. Gateways that start at once wait for each other, up to 60 s.
    ///
    /// - Throws: `configInvalid` if a later release has upgraded the schema.
    package static func create(_ connection: PostgresConnection) async throws {
        try await connection.withSession { session in
            try session.inTransaction {
                // Gateways that start at once create it one after another, in one transaction each.
                try session.query("SELECT pg_advisory_xact_lock($1)", [.int(lock)], within: .seconds(60))
                try session.script("\(makeSchema); CREATE TABLE IF NOT EXISTS sluice.meta (key text PRIMARY KEY, value text NOT NULL)")
                let found = try session.query("SELECT value FROM sluice.meta WHERE key = 'version'")
                guard found.isEmpty else { return try upgrade(session, from: found[0, 0] ?? "") }
                try session.script(tables)
                try session.execute("INSERT INTO sluice.meta VALUES ('version', $1)", [.int(version)])
            }
        }
    }

    /// SQL that creates the schema unless it exists. `IF NOT EXISTS` would require CREATE on the database even if it does.
    static let makeSchema = "DO $$ BEGIN IF to_regnamespace('sluice') IS NULL THEN CREATE SCHEMA sluice; END IF; END $$"

    private static func upgrade(_ session: PostgresSession, from found: String) throws {
        guard let number = Int(found), (1...version).contains(number) else {
            throw SluiceError(
                .configInvalid, "The schema sluice has version \(found), this release needs version \(version).",
                fix: "Run the release that wrote this version, or name a database without the schema.")
        }
        guard number < version else { return }
        for step in upgrades[(number - 1)...] { try session.script(step) }
        try session.execute("UPDATE sluice.meta SET value = $1 WHERE key = 'version'", [.int(version)])
    }

    /// The steps from each version to the next one.
    private static let upgrades = [
        // 1 to 2: logins instead of refresh tokens. A login has the id that `AccessTokens` gives to a token that names none.
        """
        \(passwordReset)
        \(login)
        INSERT INTO sluice.login (id, user_id, created_at, expires_at)
            SELECT left(encode(hash, 'hex'), 32), user_id, created_at, expires_at FROM sluice.refresh_token WHERE NOT revoked;
        DROP TABLE sluice.refresh_token;
        ALTER TABLE sluice.user_change ADD COLUMN login text COLLATE "C";
        DROP FUNCTION sluice.note_user_changes(text[], text[]);
        \(userChangeFunctions)
        """,
        // 2 to 3: identities have a table, in which each has one user. Signing keys rotate, and may be encrypted. Users have events. They
        // may be pending, and all present ones are confirmed.
        """
        ALTER TABLE sluice.signing_key ADD COLUMN id text COLLATE "C" NOT NULL DEFAULT '',
            ADD COLUMN sealed boolean NOT NULL DEFAULT false, DROP CONSTRAINT signing_key_pkey, ADD PRIMARY KEY (name, id);
        DROP INDEX sluice.user_account_identities;
        ALTER TABLE sluice.user_account ADD COLUMN unclaimed boolean NOT NULL DEFAULT false;
        \(identity)
        INSERT INTO sluice.identity (provider, id, user_id)
            SELECT i->>'provider_type', i->>'id', u.id FROM sluice.user_account u,
                jsonb_array_elements(CASE jsonb_typeof(identities) WHEN 'array' THEN identities ELSE '[]' END) i
            WHERE i->>'provider_type' IS NOT NULL AND i->>'id' <> '' ORDER BY u.created_at, u.id ON CONFLICT DO NOTHING;
        \(PendingUserTables.definition)
        \(UserEventTables.definition)
        """,
        // 3 to 4: database triggers have cursors. Client files are counted by user.
        """
        \(TriggerTables.definition)
        \(realmFileUser)
        """,
        // 4 to 5: accounts that are out of use are deleted. Registrations are events.
        """
        \(IdleUserTables.definition)
        \(UserEventTables.registrations)
        """,
    ]

    /// The advisory lock of the creation: the letters "sluice" as a number. `lock + 1` serializes user changes.
    static let lock: Int64 = 0x736C_7569_6365

    private static let tables = [
        core, users, identity, PendingUserTables.definition, passwordReset, ingest, appSchema, userChange, timePartitions, ingestRequest,
        login, userChangeFunctions, deadLetterTurn, publishedTable, ingestAnswer, adminAudit, realmFile, UserEventTables.definition,
        TriggerTables.definition, IdleUserTables.definition, UserEventTables.registrations,
    ].joined()

    /// Clients, clocks, property numbers and write rejections.
    ///
    /// Keys are the texts of primary keys, compared byte by byte. A class has one type of key, so its texts are unique.
    ///
    /// - `client.last_time`: the time of the client's last changeset, by its own clock. It distinguishes two changesets with the same
    ///   number.
    /// - `client.session`: the number of times that the client has been opened.
    /// - `horizon`: deletions below it are forgotten, because each client that counts has seen them.
    /// - `rejected_write.rule`: the rule that decided, for operators. `cause` and `fields` are for programs; the client receives both again
    ///   after a reconnection.
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
            last_changeset bigint NOT NULL DEFAULT 0, last_time bigint NOT NULL DEFAULT 0, session bigint NOT NULL DEFAULT 0,
            position pg_lsn NOT NULL DEFAULT '0/0',
            created_at timestamptz NOT NULL DEFAULT now(), seen_at timestamptz NOT NULL DEFAULT now()
        );
        CREATE INDEX client_user ON sluice.client (user_id);
        CREATE TABLE sluice.horizon (lsn pg_lsn NOT NULL, at timestamptz NOT NULL);
        INSERT INTO sluice.horizon VALUES ('0/0', now());
        CREATE TABLE sluice.row_clock (
            type text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, clocks bytea NOT NULL, deleted_lsn pg_lsn,
            PRIMARY KEY (type, key)
        );
        CREATE INDEX row_clock_deleted ON sluice.row_clock (deleted_lsn) WHERE deleted_lsn IS NOT NULL;
        CREATE SEQUENCE sluice.compensation;
        CREATE TABLE sluice.rejected_write (
            id bigserial PRIMARY KEY, compensation bigint NOT NULL, client bigint NOT NULL, changeset bigint NOT NULL,
            type text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, key_value jsonb NOT NULL,
            code integer NOT NULL, reason text NOT NULL, values jsonb NOT NULL,
            rule text, cause text NOT NULL DEFAULT '', fields jsonb NOT NULL DEFAULT '[]',
            at timestamptz NOT NULL DEFAULT now(), acknowledged boolean NOT NULL DEFAULT false
        );
        CREATE INDEX rejected_write_open ON sluice.rejected_write (client, compensation) WHERE NOT acknowledged;
        CREATE INDEX rejected_write_object ON sluice.rejected_write (type, key, id);
        CREATE TABLE sluice.quarantine (
            type text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, reason text NOT NULL, lsn pg_lsn NOT NULL,
            at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (type, key)
        );

        """

    /// Accounts.
    ///
    /// - `signing_key.sealed`: the key is encrypted by the gateway's own secret.
    /// - `unclaimed`: the user has registered and never logged in. Another user may take over the e-mail address and the password by
    ///   linking them.
    private static let users = """
        CREATE TABLE sluice.user_account (
            id text COLLATE "C" PRIMARY KEY, email text COLLATE "C" UNIQUE, password_hash text, provider text NOT NULL,
            identities jsonb NOT NULL DEFAULT '[]', data jsonb NOT NULL DEFAULT '{}', custom_data jsonb NOT NULL DEFAULT '{}',
            disabled boolean NOT NULL DEFAULT false, created_at timestamptz NOT NULL DEFAULT now(),
            unclaimed boolean NOT NULL DEFAULT false
        );
        CREATE TABLE sluice.signing_key (
            name text NOT NULL, key bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
            id text COLLATE "C" NOT NULL DEFAULT '', sealed boolean NOT NULL DEFAULT false,
            PRIMARY KEY (name, id)
        );

        """

    /// The user of each identity. A trigger keeps it equal to `user_account.identities`, for every writer of that column.
    private static let identity = """
        CREATE TABLE sluice.identity (
            provider text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
            user_id text COLLATE "C" NOT NULL REFERENCES sluice.user_account ON DELETE CASCADE,
            PRIMARY KEY (provider, id)
        );
        CREATE INDEX identity_user ON sluice.identity (user_id);
        CREATE FUNCTION sluice.identities_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF TG_OP = 'UPDATE' THEN
                IF NEW.identities = OLD.identities THEN RETURN NULL; END IF;
                DELETE FROM sluice.identity WHERE user_id = NEW.id;
            END IF;
            INSERT INTO sluice.identity (provider, id, user_id)
                SELECT DISTINCT i->>'provider_type', i->>'id', NEW.id
                FROM jsonb_array_elements(CASE jsonb_typeof(NEW.identities) WHEN 'array' THEN NEW.identities ELSE '[]' END) i
                WHERE i->>'provider_type' IS NOT NULL AND i->>'id' <> '';
            RETURN NULL;
        END $$;
        CREATE TRIGGER identities AFTER INSERT OR UPDATE OF identities ON sluice.user_account
            FOR EACH ROW EXECUTE FUNCTION sluice.identities_changed();

        """

    /// The tokens with which users set a new password. Databases of version 1 may have the table.
    private static let passwordReset = """
        CREATE TABLE IF NOT EXISTS sluice.password_reset (
            id text COLLATE "C" PRIMARY KEY, user_id text COLLATE "C" NOT NULL REFERENCES sluice.user_account ON DELETE CASCADE,
            hash bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL
        );
        CREATE INDEX IF NOT EXISTS password_reset_user ON sluice.password_reset (user_id);

        """

    /// The logins that have not ended.
    ///
    /// - `api_key`: the key that the user logged in with.
    /// - `generation`: that of the newest refresh token that was used.
    private static let login = """
        CREATE TABLE sluice.login (
            id text COLLATE "C" PRIMARY KEY, user_id text COLLATE "C" NOT NULL REFERENCES sluice.user_account ON DELETE CASCADE,
            api_key text COLLATE "C" REFERENCES sluice.api_key ON DELETE CASCADE, generation bigint NOT NULL DEFAULT 0,
            created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL
        );
        CREATE INDEX login_user ON sluice.login (user_id);
        CREATE INDEX login_api_key ON sluice.login (api_key) WHERE api_key IS NOT NULL;

        """

    /// The ingest log's position and rejected objects, with the data for sending them again and for the dead-letter topic.
    ///
    /// An object that is rejected again unchanged, because its sender received no answer, is the same letter. Unreadable records
    /// (code 801) are one letter each. A letter that is being sent again (`replayed`) is exempt: its next rejection is a new
    /// letter. The column `gone` marks a letter that has been sent again and whose row waits until the dead-letter topic has it.
    private static let ingest = """
        CREATE TABLE sluice.ingest_offset (
            topic text COLLATE "C" NOT NULL, partition integer NOT NULL, next_offset bigint NOT NULL,
            PRIMARY KEY (topic, partition)
        );
        CREATE TABLE sluice.ingest_rejected (
            id bigserial PRIMARY KEY, type text COLLATE "C" NOT NULL, source text NOT NULL, code integer NOT NULL,
            reason text NOT NULL, object text NOT NULL, at timestamptz NOT NULL DEFAULT now(),
            log_offset bigint, bytes bytea, published boolean NOT NULL DEFAULT false,
            replayed boolean NOT NULL DEFAULT false, gone boolean NOT NULL DEFAULT false
        );
        CREATE INDEX ingest_rejected_unpublished ON sluice.ingest_rejected (id) WHERE NOT published;
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

    /// All schemas that the app has had. The next schema is compared with the newest one, and running gateways read it here.
    private static let appSchema = """
        CREATE TABLE sluice.app_schema (
            version bigint PRIMARY KEY, definition jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now()
        );

        """

    /// Changes of users that sessions on any gateway may have to react to, including changes by other SQL writers.
    ///
    /// `login`: the one that has ended, for the kind `logged out`.
    private static let userChange = """
        CREATE TABLE sluice.user_change (
            number bigserial PRIMARY KEY, user_id text COLLATE "C" NOT NULL, kind text NOT NULL, at timestamptz NOT NULL DEFAULT now(),
            login text COLLATE "C"
        );
        CREATE INDEX user_change_at ON sluice.user_change (at);

        """

    /// The functions and triggers that note changes of users.
    ///
    /// An advisory lock serializes the transactions that take numbers. If a number is visible, no smaller one can appear later.
    ///
    /// A user who is disabled or gets another password, and an API key that is disabled, lose their logins. A login that expires ends no
    /// session: its tokens have expired.
    private static let userChangeFunctions = """
        CREATE FUNCTION sluice.note_user_changes(ids text[], kinds text[], logins text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
            IF cardinality(ids) > 0 THEN
                PERFORM pg_advisory_xact_lock(\(lock + 1));
                INSERT INTO sluice.user_change (user_id, kind, login) SELECT * FROM unnest(ids, kinds, logins);
            END IF;
        END $$;
        CREATE OR REPLACE FUNCTION sluice.users_updated() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM sluice.note_user_changes(array_agg(n.id), array_agg(CASE WHEN n.disabled AND NOT o.disabled THEN 'disabled' ELSE 'data' END))
                FROM new_users n JOIN old_users o USING (id)
                WHERE n.disabled AND NOT o.disabled
                    OR (n.identities, n.data, n.custom_data) IS DISTINCT FROM (o.identities, o.data, o.custom_data);
            DELETE FROM sluice.login l USING new_users n JOIN old_users o USING (id)
                WHERE l.user_id = n.id
                    AND (n.disabled AND NOT o.disabled OR o.password_hash IS NOT NULL AND n.password_hash IS DISTINCT FROM o.password_hash);
            RETURN NULL;
        END $$;
        CREATE OR REPLACE FUNCTION sluice.users_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM sluice.note_user_changes(array_agg(id), array_agg('deleted'::text)) FROM old_users;
            RETURN NULL;
        END $$;
        CREATE FUNCTION sluice.keys_updated() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            DELETE FROM sluice.login l USING new_keys n JOIN old_keys o USING (id) WHERE l.api_key = n.id AND n.disabled AND NOT o.disabled;
            RETURN NULL;
        END $$;
        CREATE FUNCTION sluice.logins_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM sluice.note_user_changes(array_agg(user_id), array_agg('logged out'::text), array_agg(l.id))
                FROM old_logins l JOIN sluice.user_account u ON u.id = user_id WHERE expires_at > now();
            RETURN NULL;
        END $$;
        CREATE OR REPLACE TRIGGER updated AFTER UPDATE ON sluice.user_account REFERENCING OLD TABLE AS old_users NEW TABLE AS new_users
            FOR EACH STATEMENT EXECUTE FUNCTION sluice.users_updated();
        CREATE OR REPLACE TRIGGER deleted AFTER DELETE ON sluice.user_account REFERENCING OLD TABLE AS old_users
            FOR EACH STATEMENT EXECUTE FUNCTION sluice.users_deleted();
        CREATE TRIGGER updated AFTER UPDATE ON sluice.api_key REFERENCING OLD TABLE AS old_keys NEW TABLE AS new_keys
            FOR EACH STATEMENT EXECUTE FUNCTION sluice.keys_updated();
        CREATE TRIGGER deleted AFTER DELETE ON sluice.login REFERENCING OLD TABLE AS old_logins
            FOR EACH STATEMENT EXECUTE FUNCTION sluice.logins_deleted();

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

    /// The current turn to publish to the dead-letter topic, and the time until which published letters may still arrive. One row.
    private static let deadLetterTurn = """
        CREATE TABLE sluice.dead_letter_turn (number bigint NOT NULL, until timestamptz NOT NULL);
        CREATE UNIQUE INDEX dead_letter_turn_one ON sluice.dead_letter_turn ((true));

        """

    /// The tables whose changes are in the WAL: the identifiers of each table and its partitions, and the transaction since which
    /// they are valid.
    private static let publishedTable = """
        CREATE TABLE sluice.published_table (table_name text COLLATE "C" PRIMARY KEY, parts text NOT NULL, since xid8 NOT NULL);

        """

    /// Acknowledgements with rejections, kept while the client may not have received them, and the highest ingest number of a client that
    /// has taken effect. The number is no column of `sluice.client`, because changesets lock that row.
    private static let ingestAnswer = """
        CREATE TABLE sluice.ingest_answer (
            client bigint NOT NULL REFERENCES sluice.client ON DELETE CASCADE, number bigint NOT NULL, answer bytea NOT NULL,
            PRIMARY KEY (client, number)
        );
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

    /// A new file counts its user's files.
    private static let realmFileUser = "CREATE INDEX IF NOT EXISTS realm_file_user ON sluice.realm_file (user_id);"

    /// The client files of Realm's protocol, and the changesets that their clients have not confirmed.
    ///
    /// - The numbers of files begin at 2: in the protocol, 1 is the server.
    /// - `realm_file.session`: the number of times that the file has been opened. A session with a smaller number may write nothing.
    /// - `realm_file.last_server`, `last_client`: the versions of the last entry, also of a removed one.
    /// - `realm_file.replica`: the gateway's state of the file's views, in a form of `SluiceRealmBridge`. It is stored as it is: a client
    ///   waits for the state of a large view, and PostgreSQL compresses 50 MB/s.
    /// - `realm_file.entries`, `bytes`: the number and cost of the entries without `is_covered`.
    /// - `realm_entry.is_covered`: a bootstrap replaced the entry, and only its compensating write remains to be reported.
    /// - `realm_entry.origin`, `stamp`: numbers of 64 bits without sign. `created` is in milliseconds since 1970.
    private static let realmFile = """
        CREATE TABLE sluice.realm_file (
            id bigint GENERATED ALWAYS AS IDENTITY (START WITH 2) PRIMARY KEY, salt bigint NOT NULL, user_id text COLLATE "C" NOT NULL,
            session bigint NOT NULL DEFAULT 0, upload_client bigint NOT NULL DEFAULT 0, upload_server bigint NOT NULL DEFAULT 0,
            acknowledged bigint NOT NULL DEFAULT 0, view_query bigint, view_server bigint, building bigint,
            is_lost boolean NOT NULL DEFAULT false,
            last_server bigint NOT NULL DEFAULT 0, last_client bigint NOT NULL DEFAULT 0,
            entries bigint NOT NULL DEFAULT 0, bytes bigint NOT NULL DEFAULT 0, replica bytea NOT NULL DEFAULT '',
            created_at timestamptz NOT NULL DEFAULT now(), seen_at timestamptz NOT NULL DEFAULT now()
        );
        ALTER TABLE sluice.realm_file ALTER COLUMN replica SET STORAGE EXTERNAL;
        \(realmFileUser)
        CREATE TABLE sluice.realm_entry (
            file bigint NOT NULL REFERENCES sluice.realm_file ON DELETE CASCADE, server_version bigint NOT NULL,
            client_version bigint NOT NULL, origin bigint NOT NULL, stamp bigint NOT NULL, created bigint NOT NULL, cost bigint NOT NULL,
            changeset bytea NOT NULL, compensation bytea, is_covered boolean NOT NULL DEFAULT false,
            PRIMARY KEY (file, server_version)
        );

        """
}
