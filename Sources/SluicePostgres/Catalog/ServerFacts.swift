/// The configuration and state of a server that a gateway depends on, as read in one round. It holds no judgement.
package struct ServerFacts: Hashable, Sendable {
    /// The role of the connection.
    package struct Role: Hashable, Sendable {
        package var name = ""
        package var isSuperuser = false
        /// `true` if the role may read a slot: by its attribute, or as a member of a managed service's role.
        package var mayReplicate = false

        package init() {}
    }

    package struct CollationVersions: Hashable, Sendable {
        package var recorded: String
        package var actual: String

        package init(recorded: String, actual: String) { (self.recorded, self.actual) = (recorded, actual) }
    }

    /// The `server_version_num`, such as 150018.
    package var version = 0
    /// The values of `names` as new sessions of this role get them, in the units of `pg_settings`. Unknown settings are missing.
    package var settings: [String: String] = [:]
    package var database = ""
    /// The encoding of the database.
    package var encoding = ""
    /// The version of the database's collation that its indexes were made with, and that of the operating system now; nil before
    /// PostgreSQL 15, or if the collation has no version.
    package var collation: CollationVersions?
    /// The number of replication slots of the server, and of connections that read one.
    package var slots = 0
    package var senders = 0
    /// The app's slot; nil if it does not exist.
    package var slot: SlotState?
    package var role = Role()
    /// `true` if TLS protects the connection.
    package var isEncrypted = false
    /// `true` if the connection is by a Unix socket or a loopback address.
    package var isLocal = false
    /// `true` for a standby, which accepts no writes.
    package var isStandby = false
    /// The number of connections of the server that clients may open further.
    package var freeConnections = 0

    package init() {}

    package subscript(_ setting: String) -> String? { settings[setting] }

    /// The value of a numeric setting, in the unit of `pg_settings`.
    package func number(_ setting: String) -> Int? { settings[setting].flatMap { Int($0) } }

    /// The settings that are read.
    static let names = [
        "wal_level", "track_commit_timestamp", "max_replication_slots", "max_wal_senders", "max_slot_wal_keep_size", "max_connections",
        "superuser_reserved_connections", "fsync", "full_page_writes", "synchronous_commit",
    ]
}

extension ServerFacts {
    /// Reads the facts. Takes no lock and changes nothing.
    ///
    /// - Parameter slot: The name of the app's slot.
    package static func load(_ connection: PostgresConnection, slot: String) async throws -> ServerFacts {
        var facts = try await connection.withSession { session in
            var facts = ServerFacts()
            let settings = try session.query(
                "SELECT name, reset_val FROM pg_settings WHERE name = ANY ($1::text[])", [.text(StoreText.array(names))])
            for row in 0..<settings.count { facts.settings[settings[row, 0] ?? ""] = settings[row, 1] }
            facts.fill(try session.query(state))
            if facts.version >= 150_000 {
                let versions = try session.query(Self.collation)
                if let recorded = versions[0, 0], let actual = versions[0, 1] {
                    facts.collation = CollationVersions(recorded: recorded, actual: actual)
                }
            }
            return facts
        }
        facts.slot = try await ReplicationSlot.state(connection, name: slot)
        return facts
    }

    private mutating func fill(_ result: PostgresResult) {
        version = Int(result.int(0, 0) ?? 0)
        database = result[0, 1] ?? ""
        encoding = result[0, 2] ?? ""
        slots = Int(result.int(0, 3) ?? 0)
        senders = Int(result.int(0, 4) ?? 0)
        role.name = result[0, 5] ?? ""
        role.isSuperuser = result.bool(0, 6) ?? false
        role.mayReplicate = result.bool(0, 7) ?? false
        isEncrypted = result.bool(0, 8) ?? false
        isLocal = result.bool(0, 9) ?? false
        isStandby = result.bool(0, 10) ?? false
        freeConnections =
            (number("max_connections") ?? 0) - (number("superuser_reserved_connections") ?? 0) - Int(result.int(0, 11) ?? 0)
    }

    /// The columns and the function exist from PostgreSQL 15 on.
    private static let collation =
        "SELECT datcollversion, pg_database_collation_actual_version(oid) FROM pg_database WHERE datname = current_database()"

    /// Without `pg_read_all_stats`, PostgreSQL hides the kind of other roles' backends, but neither their existence nor those that have a
    /// role, as clients do. A WAL sender takes no connection of `max_connections`.
    private static let state = """
        SELECT current_setting('server_version_num')::int, current_database(), current_setting('server_encoding'),
            (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_stat_replication), current_user,
            r.rolsuper,
            \(CatalogSQL.mayReplicate("r")),
            COALESCE((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
            inet_client_addr() IS NULL OR inet_client_addr() <<= '127.0.0.0/8' OR inet_client_addr() = '::1',
            pg_is_in_recovery(),
            (SELECT count(*) FROM pg_stat_activity WHERE COALESCE(backend_type, 'client backend') = 'client backend'
                AND usesysid IS NOT NULL AND pid NOT IN (SELECT pid FROM pg_stat_replication))
        FROM pg_roles r WHERE r.rolname = current_user
        """
}
