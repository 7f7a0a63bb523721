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
    private(set) var mayConnect = false
    private(set) var mayCreateSchemas = false
    /// `true` if the schema `sluice` exists, and the rights of the role in it.
    private(set) var hasCompanion = false
    private(set) var ownsCompanion = false
    private(set) var writesCompanion = false
    private(set) var countsCompanion = false
    /// The existing schemas of the tables, and `true` for those that the role may use.
    private(set) var usable: [String: Bool] = [:]
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
        let found = try session.query("SELECT FROM pg_roles WHERE rolname = $1", [.text(role)])
        hasRole = !found.isEmpty
        if hasRole { try readRole(session) }
        try readSchemas(session, Set(schemas).sorted())
        for place in Set(places) { tables[place.sqlName] = try table(place, session) }
        published = try readPublication(session)
    }

    private mutating func readRole(_ session: PostgresSession) throws {
        let result = try session.query(
            """
            SELECT rolreplication OR rolsuper, has_database_privilege(rolname, current_database(), 'CONNECT'),
                has_database_privilege(rolname, current_database(), 'CREATE')
            FROM pg_roles WHERE rolname = $1
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
            usable[name] =
                hasRole ? try session.query("SELECT has_schema_privilege($1, $2, 'USAGE')", [.text(role), .text(name)]).bool(0, 0) : false
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
            privileges: [], isOwned: false, isPublished: result.bool(0, 0) ?? false,
            withoutIdentity: try result.json(0, 1).array?.compactMap(\.string) ?? [], sequences: [])
        let sequences = try result.json(0, 2).array ?? []
        table.sequences = try sequences.map { sequence in
            let right =
                try hasRole ? session.query(Self.useOfSequence, [.text(role), .text(sequence["oid"]?.string ?? "0")]).bool(0, 0) : false
            return Sequence(name: sequence["name"]?.string ?? "", isUsable: right ?? false)
        }
        guard hasRole else { return table }
        let rights = TablePrivilege.allCases.map { "has_table_privilege($1, oid, '\($0.rawValue)')" }.joined(separator: ", ")
        let own = try session.query(
            "SELECT pg_has_role($1, relowner, 'USAGE'), \(rights) FROM pg_class WHERE oid = $2::oid", [.text(role), .text(oid)])
        table.isOwned = own.bool(0, 0) ?? false
        table.privileges = Set(TablePrivilege.allCases.indices.filter { own.bool(0, $0 + 1) == true }.map { TablePrivilege.allCases[$0] })
        return table
    }

    private static let useOfSequence = "SELECT has_sequence_privilege($1, $2::oid, 'USAGE')"

    /// SQL for a table: published or not, its parts without REPLICA IDENTITY FULL, and the sequences of its defaults. An identity
    /// column needs no right on its sequence.
    private static let look = """
        SELECT EXISTS (
                SELECT FROM pg_publication p WHERE p.pubname = $2
                    AND (p.puballtables OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = $1::oid))),
            (SELECT json_agg(format('%I.%I', n.nspname, c.relname) ORDER BY c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE c.relreplident <> 'f' AND c.relkind IN ('r', 'p')
                    AND (c.oid = $1::oid OR c.oid IN (SELECT relid FROM pg_partition_tree($1::oid::regclass)))),
            (SELECT json_agg(DISTINCT jsonb_build_object('name', format('%I.%I', n.nspname, s.relname), 'oid', s.oid::text)) FROM pg_attrdef f
                JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass
                JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S' JOIN pg_namespace n ON n.oid = s.relnamespace
                WHERE f.adrelid = $1::oid)
        """

    private func readPublication(_ session: PostgresSession) throws -> Published? {
        let result = try session.query(
            """
            SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot, pubowner FROM pg_publication WHERE pubname = $1
            """, [.text(publication)])
        guard !result.isEmpty else { return nil }
        let owner = result[0, 1] ?? ""
        let owns = hasRole ? try session.query("SELECT pg_has_role($1, $2::oid, 'USAGE')", [.text(role), .text(owner)]).bool(0, 0) : false
        return Published(isRight: result.bool(0, 0) ?? false, isOwned: owns ?? false)
    }
}
