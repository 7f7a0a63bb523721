import SluiceCore

extension TableCatalog {
    /// Returns the catalog with the facts of the existing tables: the forms of their columns, and the rights of the connection's role.
    ///
    /// - Precondition: The tables fit (`requireFit`).
    package func found(_ connection: PostgresConnection) async throws -> TableCatalog {
        let mappings = try await connection.withSession { session in try checks(session).map { try $0.found() } }
        var found = TableCatalog(schema: schema, tables: mappings)
        found.adopted = adopted
        return found
    }
}

extension TableCheck {
    /// Returns the mapping with the facts of the table.
    fileprivate func found() throws -> TableMapping {
        let columns = try columns()
        var mapping = mapping
        mapping.facts = type.properties.indices.map { index in
            guard let column = columns[mapping.columns[index]] else { return ColumnFacts() }
            return ColumnFacts(
                storage: storage(index, column) ?? .plain, generation: column.generation, isIdentity: column.isIdentity)
        }
        mapping.privileges = try privileges()
        if let key = type.primaryKey, mapping.partitions == nil {
            mapping.partitionKeys = try keyPlace() == .eachPartition ? partitionKeys(mapping.columns[key]) : []
        }
        return mapping
    }

    private func privileges() throws -> Set<TablePrivilege> {
        let rows = try facts.rows(Self.privilegeQuery, of: type)
        guard let row = rows.indices.first else { return [] }
        return Set(TablePrivilege.allCases.enumerated().filter { rows.result.bool(row, $0.offset) == true }.map(\.element))
    }

    private static let privilegeQuery: String = {
        let rights = TablePrivilege.allCases.map { "has_table_privilege(wanted.id, '\($0.rawValue)')" }
        return "SELECT \(rights.joined(separator: ", ")), wanted.number FROM \(TableFacts.wanted)"
    }()
}
