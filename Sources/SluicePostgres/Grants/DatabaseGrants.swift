import SluiceCore

/// The grants of a gateway's role: those that a database has, and the statements for the others.
///
/// The role owns its schema `sluice` and nothing else. All other rights are grants, and what needs the owner of a table (replica identity,
/// publication) is prepared before. A superuser and the owner of the tables lack nothing.
package enum DatabaseGrants {
    /// Returns all grants in the order in which their statements can be run. Changes nothing. O(tables) statements.
    package static func all(_ needs: DatabaseNeeds, _ connection: PostgresConnection) async throws -> [DatabaseGrant] {
        try await connection.withSession { session in
            let facts = try DatabaseFacts(needs, session)
            let ownGrants = role(needs, facts) + schemas(needs, facts)
            let tables = needs.tables.flatMap { self.tables(of: $0, facts) }
            return ownGrants + tables + publication(needs, facts) + customData(needs, facts)
        }
    }

    /// Returns the grants that the role lacks, in the order of `all`.
    package static func missing(_ needs: DatabaseNeeds, _ connection: PostgresConnection) async throws -> [DatabaseGrant] {
        try await all(needs, connection).filter { !$0.isMet }
    }

    /// Checks that the role of the connection lacks nothing.
    ///
    /// - Throws: `grantMissing` with every lack and its statement.
    package static func require(_ needs: DatabaseNeeds, _ connection: PostgresConnection) async throws {
        let missing = try await missing(needs, connection)
        guard !missing.isEmpty else { return }
        let lines = missing.map { "\n  - \($0.lack). Run: \($0.statement);" }.joined()
        throw SluiceError(.grantMissing, "The role of the gateway lacks \(missing.count) of its grants:\(lines)\n")
    }

    /// Returns the needed tables that do not exist, for people.
    package static func missingTables(_ needs: DatabaseNeeds, _ connection: PostgresConnection) async throws -> [String] {
        try await connection.withSession { session in
            let facts = try DatabaseFacts(needs, session)
            return needs.tables.filter { facts.tables[$0.mapping.sqlName] == nil }.map(\.mapping.displayName)
        }
    }

    // MARK: The role and its schemas

    private static func role(_ needs: DatabaseNeeds, _ facts: DatabaseFacts) -> [DatabaseGrant] {
        let role = facts.quotedRole
        let (managed, hiding) = (CatalogSQL.managedReplication, hiding(needs, facts))
        return [
            DatabaseGrant(
                .role, isMet: facts.hasRole, lack: "The role \(facts.role) does not exist",
                statement: "CREATE ROLE \(role) LOGIN \(facts.isManaged ? "IN ROLE \(managed)" : "REPLICATION")"),
            DatabaseGrant(
                .access, isMet: !facts.hasRole || facts.mayReplicate, lack: "The role may not replicate",
                statement: facts.isManaged ? "GRANT \(managed) TO \(role)" : "ALTER ROLE \(role) REPLICATION"),
            DatabaseGrant(
                .access, isMet: facts.mayConnect, lack: "The role may not connect to the database \(facts.database)",
                statement: "GRANT CONNECT ON DATABASE \(SQLQuote.identifier(facts.database)) TO \(role)"),
            DatabaseGrant(
                .access, isMet: hiding.isEmpty, lack: "Row-level security may hide rows of \(hiding.joined(separator: ", ")) from the role",
                statement: "ALTER ROLE \(role) BYPASSRLS"),
        ]
    }

    /// Returns the tables whose rows the role may not see all. Their changes reach devices, and bootstraps remove the same rows.
    private static func hiding(_ needs: DatabaseNeeds, _ facts: DatabaseFacts) -> [String] {
        let tables = needs.tables.map { (place: $0.mapping.sqlName, name: $0.mapping.displayName) }
        let custom = needs.customData.map { [(place: $0.sqlName, name: "\($0.schema).\($0.table)")] } ?? []
        return (tables + custom).filter { facts.tables[$0.place]?.hidesRows == true }.map(\.name)
    }

    private static func schemas(_ needs: DatabaseNeeds, _ facts: DatabaseFacts) -> [DatabaseGrant] {
        let role = facts.quotedRole
        var grants = [
            DatabaseGrant(
                .companion, isMet: facts.hasCompanion || facts.mayCreateSchemas, lack: "The schema sluice does not exist",
                statement: "CREATE SCHEMA sluice AUTHORIZATION \(role)"),
            DatabaseGrant(
                .companion, isMet: !facts.hasCompanion || facts.ownsCompanion, lack: "The role may not create tables in the schema sluice",
                statement: "GRANT USAGE, CREATE ON SCHEMA sluice TO \(role)"),
            DatabaseGrant(
                .companion, isMet: !facts.hasCompanion || facts.writesCompanion,
                lack: "The role may not write the tables of the schema sluice",
                statement: "GRANT ALL ON ALL TABLES IN SCHEMA sluice TO \(role)"),
            DatabaseGrant(
                .companion, isMet: !facts.hasCompanion || facts.countsCompanion,
                lack: "The role may not use the sequences of the schema sluice",
                statement: "GRANT ALL ON ALL SEQUENCES IN SCHEMA sluice TO \(role)"),
        ]
        let custom = needs.customData.map { [$0.schema] } ?? []
        for schema in Set(needs.tables.map(\.mapping.schema) + custom).sorted() {
            grants.append(
                DatabaseGrant(
                    .schema, isMet: facts.usable[schema] ?? true, lack: "The role may not use the schema \(schema)",
                    statement: "GRANT USAGE ON SCHEMA \(SQLQuote.identifier(schema)) TO \(role)"))
        }
        return grants
    }

    // MARK: Tables

    private static func tables(of need: NeededTable, _ facts: DatabaseFacts) -> [DatabaseGrant] {
        let mapping = need.mapping
        // A missing table is reported by the comparison with the schema.
        guard let table = facts.tables[mapping.sqlName] else { return [] }
        let lacking = need.ordered.filter { !table.privileges.contains($0) }
        let words = (lacking.isEmpty ? need.ordered : lacking).map(\.rawValue).joined(separator: ", ")
        var grants = [
            DatabaseGrant(
                .table, isMet: lacking.isEmpty, lack: "The role lacks \(words) on \(mapping.displayName)",
                statement: "GRANT \(need.ordered.map(\.rawValue).joined(separator: ", ")) ON \(mapping.sqlName) TO \(facts.quotedRole)")
        ]
        if need.privileges.contains(.insert) {
            grants += table.sequences.map { sequence in
                DatabaseGrant(
                    .sequence, isMet: sequence.isUsable,
                    lack: "The role may not use the sequence \(sequence.name) of \(mapping.displayName)",
                    statement: "GRANT USAGE ON SEQUENCE \(sequence.name) TO \(facts.quotedRole)")
            }
        }
        if mapping.partitions != nil {
            grants += partitions(of: mapping, table, facts)
        }
        guard need.isPublished else { return grants }
        return grants
            + table.withoutIdentity.map { name in
                DatabaseGrant(
                    .table, isMet: table.isOwned, lack: "Changes of \(name) lack their old rows, and the role does not own the table",
                    statement: "ALTER TABLE \(name) REPLICA IDENTITY FULL")
            }
    }

    /// Returns the grants for a table whose partitions the gateway makes and drops.
    ///
    /// The new owner of a table must have CREATE on its schema, and an owner's change does not reach the partitions.
    private static func partitions(of mapping: TableMapping, _ table: DatabaseFacts.Table, _ facts: DatabaseFacts) -> [DatabaseGrant] {
        let create = DatabaseGrant(
            .table, isMet: facts.extendable[mapping.schema] ?? true,
            lack: "The role may not create the partitions of \(mapping.displayName) in the schema \(mapping.schema)",
            statement: "GRANT CREATE ON SCHEMA \(SQLQuote.identifier(mapping.schema)) TO \(facts.quotedRole)")
        let names = table.notOwned.isEmpty ? [mapping.sqlName] : table.notOwned
        return [create]
            + names.map { name in
                DatabaseGrant(
                    .table, isMet: table.notOwned.isEmpty,
                    lack: "The role does not own \(name), and the gateway makes and drops the partitions of \(mapping.displayName)",
                    statement: "ALTER TABLE \(name) OWNER TO \(facts.quotedRole)")
            }
    }

    // MARK: Publication

    private static func publication(_ needs: DatabaseNeeds, _ facts: DatabaseFacts) -> [DatabaseGrant] {
        let name = SQLQuote.identifier(facts.publication)
        let published = needs.tables.filter { $0.isPublished && facts.tables[$0.mapping.sqlName] != nil }
        guard let found = facts.published else {
            let names = published.map(\.mapping.sqlName).joined(separator: ", ")
            let list = names.isEmpty ? "" : " FOR TABLE \(names)"
            let ownsAll = published.allSatisfy { facts.tables[$0.mapping.sqlName]?.isOwned == true }
            return [
                DatabaseGrant(
                    .publication, isMet: ownsAll && facts.mayCreateSchemas, lack: "The publication \(facts.publication) does not exist",
                    statement: "CREATE PUBLICATION \(name)\(list) WITH (\(CatalogSQL.publicationOptions))")
            ]
        }
        let isRight = DatabaseGrant(
            .publication, isMet: found.isRight || found.isOwned,
            lack: "The publication \(facts.publication) does not publish every kind of change",
            statement: "ALTER PUBLICATION \(name) SET (\(CatalogSQL.publicationOptions))")
        return [isRight]
            + published.map { need in
                let table = facts.tables[need.mapping.sqlName]
                return DatabaseGrant(
                    .publication, isMet: table?.isPublished == true || found.isOwned && table?.isOwned == true,
                    lack: "The publication \(facts.publication) lacks \(need.mapping.displayName)",
                    statement: "ALTER PUBLICATION \(name) ADD TABLE \(need.mapping.sqlName)")
            }
    }

    // MARK: Custom data

    private static func customData(_ needs: DatabaseNeeds, _ facts: DatabaseFacts) -> [DatabaseGrant] {
        guard let place = needs.customData, let table = facts.tables[place.sqlName] else { return [] }
        let wanted: [TablePrivilege] = [.select, .trigger]
        let lacking = wanted.filter { !table.privileges.contains($0) }
        let words = wanted.map(\.rawValue).joined(separator: ", ")
        return [
            DatabaseGrant(
                .customData, isMet: lacking.isEmpty,
                lack: "The role lacks \(words) on \(place.schema).\(place.table), the table of custom user data",
                statement: "GRANT \(words) ON \(place.sqlName) TO \(facts.quotedRole)")
        ]
    }
}
