import SluiceCore
import SluiceValues

/// The rights of a role in a database, as the catalog has them now.
struct DatabaseFacts {
    struct Sequence {
        /// The quoted name.
        var name: String
        var isUsable: Bool
    }

    struct Table {
        var privileges: Set<TablePrivilege>
        var isOwned: Bool
        var isPublished: Bool
        /// `true` if policies of row-level security may hide rows from the role. They do not apply to logical decoding.
        var hidesRows: Bool
        /// The table and its partitions that the role does not own. Quoted names.
        var notOwned: [String]
        /// The table, or those of its partitions, whose changes lack their old rows. Quoted names.
        var withoutIdentity: [String]
        /// The sequences that columns of the table take their defaults from.
        var sequences: [Sequence]
    }

    struct Published {
        /// `true` if it publishes every kind of change, of partitions under their table.
        var isRight: Bool
        var isOwned: Bool
    }

    let role: String
    let database: String
    /// The name of the app's publication.
    let publication: String
    private(set) var hasRole = false
    private(set) var mayReplicate = false
    /// `true` if the server is of a managed service, whose role `CatalogSQL.managedReplication` gives the right to replicate.
    private(set) var isManaged = false
    private(set) var mayConnect = false
    private(set) var mayCreateSchemas = false
    /// `true` if the schema `sluice` exists, and the rights of the role in it.
    private(set) var hasCompanion = false
    private(set) var ownsCompanion = false
    private(set) var writesCompanion = false
    private(set) var countsCompanion = false
    /// The existing schemas of the tables, and `true` for those that the role may use.
    private(set) var usable: [String: Bool] = [:]
    /// The existing schemas of the tables, and `true` for those that the role may create tables in.
    private(set) var extendable: [String: Bool] = [:]
    /// The existing tables by quoted name.
    private(set) var tables: [String: Table] = [:]
    /// nil if the publication does not exist.
    private(set) var published: Published?

    var quotedRole: String { SQLQuote.identifier(role) }

    init(_ needs: DatabaseNeeds, _ session: PostgresSession) throws {
        let own = try session.query("SELECT current_user, current_database()")
        role = needs.role ?? own[0, 0] ?? ""
        database = own[0, 1] ?? ""
        publication = ReplicationNames(app: needs.app, database: database).publication
        let places = needs.tables.map { Place($0.mapping) } + (needs.customData.map { [Place($0)] } ?? [])
        let schemas = needs.tables.map(\.mapping.schema) + (needs.customData.map { [$0.schema] } ?? [])
        // The functions for privileges fail for a role that does not exist.
        let roles = try session.query(
            "SELECT count(*) FILTER (WHERE rolname = $1) > 0, count(*) FILTER (WHERE rolname = $2) > 0 FROM pg_roles",
            [.text(role), .text(CatalogSQL.managedReplication)])
        hasRole = roles.bool(0, 0) ?? false
        isManaged = roles.bool(0, 1) ?? false
        if hasRole { try readRole(session) }
        try readSchemas(session, Set(schemas).sorted())
        for place in Set(places) { tables[place.sqlName] = try table(place, session) }
        published = try readPublication(session)
    }

    private mutating func readRole(_ session: PostgresSession) throws {
        let result = try session.query(
            """
            SELECT \(CatalogSQL.mayReplicate("r")), has_database_privilege(rolname, current_database(), 'CONNECT'),
                has_database_privilege(rolname, current_database(), 'CREATE')
            FROM pg_roles AS r WHERE rolname = $1
            """, [.text(role)])
        mayReplicate = result.bool(0, 0) ?? false
        mayConnect = result.bool(0, 1) ?? false
        mayCreateSchemas = result.bool(0, 2) ?? false
    }

    private mutating func readSchemas(_ session: PostgresSession, _ names: [String]) throws {
        hasCompanion = try session.query("SELECT to_regnamespace('sluice') IS NOT NULL").bool(0, 0) ?? false
        if hasCompanion, hasRole {
            let result = try session.query(
                """
                SELECT has_schema_privilege($1, 'sluice', 'USAGE') AND has_schema_privilege($1, 'sluice', 'CREATE'),
                    COALESCE(bool_and(has_table_privilege($1, oid, 'SELECT') AND has_table_privilege($1, oid, 'INSERT')
                        AND has_table_privilege($1, oid, 'UPDATE') AND has_table_privilege($1, oid, 'DELETE')) FILTER (WHERE relkind = 'r'), true),
                    COALESCE(bool_and(has_sequence_privilege($1, oid, 'USAGE')) FILTER (WHERE relkind = 'S'), true)
                FROM (SELECT oid, relkind FROM pg_class WHERE relnamespace = to_regnamespace('sluice') AND relkind IN ('r', 'S')) AS own
                """, [.text(role)])
            ownsCompanion = result.bool(0, 0) ?? false
            writesCompanion = result.bool(0, 1) ?? false
            countsCompanion = result.bool(0, 2) ?? false
        }
        for name in names {
            let quoted = SQLQuote.identifier(name)
            guard try session.query("SELECT to_regnamespace($1) IS NOT NULL", [.text(quoted)]).bool(0, 0) == true else { continue }
            let rights =
                hasRole
                ? try session.query(
                    "SELECT has_schema_privilege($1, $2, 'USAGE'), has_schema_privilege($1, $2, 'CREATE')", [.text(role), .text(name)])
                : nil
            usable[name] = rights?.bool(0, 0) ?? false
            extendable[name] = rights?.bool(0, 1) ?? false
        }
    }

    /// A table by its names. `to_regclass` would fail for a schema that the role may not use.
    private struct Place: Hashable {
        var schema: String
        var table: String
        var sqlName: String

        init(_ mapping: TableMapping) { (schema, table, sqlName) = (mapping.schema, mapping.table, mapping.sqlName) }

        init(_ place: CustomDataTable.Place) { (schema, table, sqlName) = (place.schema, place.table, place.sqlName) }
    }

    private func table(_ place: Place, _ session: PostgresSession) throws -> Table? {
        let found = try session.query(
            "SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2",
            [.text(place.schema), .text(place.table)])
        guard let oid = found[0, 0] else { return nil }
        let result = try session.query(Self.look, [.text(oid), .text(publication)])
        var table = Table(
            privileges: [], isOwned: false, isPublished: result.bool(0, 0) ?? false, hidesRows: result.bool(0, 3) ?? false,
            notOwned: try result.json(0, 4).array?.compactMap(\.string) ?? [],
            withoutIdentity: try result.json(0, 1).array?.compactMap(\.string) ?? [], sequences: [])
        let sequences = try result.json(0, 2).array ?? []
        table.sequences = try sequences.map { sequence in
            let right =
                try hasRole ? session.query(Self.useOfSequence, [.text(role), .text(sequence["oid"]?.string ?? "0")]).bool(0, 0) : false
            return Sequence(name: sequence["name"]?.string ?? "", isUsable: right ?? false)
        }
        guard hasRole else { return table }
        let rights = TablePrivilege.allCases.map { "has_table_privilege($1, c.oid, '\($0.rawValue)')" }.joined(separator: ", ")
        let own = try session.query(
            "SELECT \(Self.ofRole), \(rights) FROM pg_class AS c JOIN pg_roles AS r ON r.rolname = $1 WHERE c.oid = $2::oid",
            [.text(role), .text(oid)])
        table.isOwned = own.bool(0, 0) ?? false
        table.hidesRows = own.bool(0, 1) ?? false
        table.notOwned = try own.json(0, 2).array?.compactMap(\.string) ?? []
        table.privileges = Set(TablePrivilege.allCases.indices.filter { own.bool(0, $0 + 3) == true }.map { TablePrivilege.allCases[$0] })
        return table
    }

    /// SQL for a table `c` and a role `r`: the ownership, the validity of row-level security, and the parts of other owners.
    ///
    /// The owner of a table is exempt from its policies unless they are forced. A superuser and BYPASSRLS always are.
    private static let ofRole = """
        pg_has_role(r.oid, c.relowner, 'USAGE'),
        c.relrowsecurity AND NOT (r.rolsuper OR r.rolbypassrls) AND (c.relforcerowsecurity OR NOT pg_has_role(r.oid, c.relowner, 'USAGE')),
        \(parts("c.oid", where: "NOT pg_has_role(r.oid, part.relowner, 'USAGE')"))
        """

    /// Returns SQL for the quoted names of a table and its partitions.
    private static func parts(_ relation: String, where condition: String = "true") -> String {
        """
        (SELECT json_agg(format('%I.%I', n.nspname, part.relname) ORDER BY part.oid) FROM pg_class part
            JOIN pg_namespace n ON n.oid = part.relnamespace
            WHERE (part.oid = \(relation) OR part.oid IN (SELECT relid FROM pg_partition_tree(\(relation)::regclass))) AND \(condition))
        """
    }

    private static let useOfSequence = "SELECT has_sequence_privilege($1, $2::oid, 'USAGE')"

    /// SQL for a table: published or not, its parts without REPLICA IDENTITY FULL, the sequences of its defaults, row-level security on
    /// or off, and all of its parts. An identity column needs no right on its sequence.
    private static let look = """
        SELECT \(CatalogSQL.isPublished("$1::oid", in: "$2")),
            (SELECT json_agg(format('%I.%I', n.nspname, c.relname) ORDER BY c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE \(CatalogSQL.lacksIdentity("$1::oid"))),
            (SELECT json_agg(DISTINCT jsonb_build_object('name', format('%I.%I', n.nspname, s.relname), 'oid', s.oid::text)) FROM pg_attrdef f
                JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass
                JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S' JOIN pg_namespace n ON n.oid = s.relnamespace
                WHERE f.adrelid = $1::oid),
            (SELECT relrowsecurity FROM pg_class WHERE oid = $1::oid), \(parts("$1::oid"))
        """

    private func readPublication(_ session: PostgresSession) throws -> Published? {
        let result = try session.query(
            """
            SELECT \(CatalogSQL.hasPublicationOptions), pubowner FROM pg_publication WHERE pubname = $1
            """, [.text(publication)])
        guard !result.isEmpty else { return nil }
        let owner = result[0, 1] ?? ""
        let owns = hasRole ? try session.query("SELECT pg_has_role($1, $2::oid, 'USAGE')", [.text(role), .text(owner)]).bool(0, 0) : false
        return Published(isRight: result.bool(0, 0) ?? false, isOwned: owns ?? false)
    }
}
