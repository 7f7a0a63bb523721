import SluiceCore
import SluiceValues

/// The foreign keys between the app's tables, as the catalog has them now.
package enum ForeignKeys {
    /// Returns the keys between the catalog's tables, by name. A key on a column without a property is omitted.
    static func load(_ session: PostgresSession, _ catalog: TableCatalog) throws -> [ForeignKey] {
        let mappings = Dictionary(catalog.tables.map { ($0.sqlName, $0) }) { first, _ in first }
        let result = try session.query(sql, [.text(StoreText.array(mappings.keys.sorted()))])
        return try (0..<result.count).compactMap { row in
            guard let child = result[row, 1].flatMap({ mappings[$0] }), let parent = result[row, 2].flatMap({ mappings[$0] }) else {
                return nil
            }
            func indices(_ mapping: TableMapping, _ column: Int) throws -> [Int]? {
                let names = (try result.json(row, column).array ?? []).compactMap(\.string)
                let indices = names.compactMap { mapping.columns.firstIndex(of: $0) }
                return indices.count == names.count ? indices : nil
            }
            guard let from = try indices(child, 4), let to = try indices(parent, 5) else { return nil }
            return ForeignKey(
                name: result[row, 0] ?? "", schema: result[row, 6] ?? "", child: child.type, from, parent: parent.type, to,
                isDeferrable: result.bool(row, 3) == true)
        }
    }

    private static let sql = """
        WITH tables AS (SELECT name, to_regclass(name)::oid AS id FROM unnest($1::text[]) AS name)
        SELECT c.conname, child.name, parent.name, c.condeferrable,
            (SELECT json_agg(a.attname ORDER BY k.place) FROM unnest(c.conkey) WITH ORDINALITY AS k(number, place)
                JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number),
            (SELECT json_agg(a.attname ORDER BY k.place) FROM unnest(c.confkey) WITH ORDINALITY AS k(number, place)
                JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.number), n.nspname
        FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
            JOIN tables child ON child.id = c.conrelid JOIN tables parent ON parent.id = c.confrelid
        WHERE c.contype = 'f' AND c.conparentid = 0 ORDER BY 1
        """

    /// Returns the keys that no order of rows may satisfy and that cannot be deferred: those on a cycle of classes, or within one
    /// class.
    package static func undeferrable(_ keys: [ForeignKey]) -> [ForeignKey] {
        keys.filter { key in !key.isDeferrable && reaches(key.child, from: key.parent, keys) }
    }

    /// Returns `true` if `start` is the class, or refers to it over any number of keys.
    private static func reaches(_ type: String, from start: String, _ keys: [ForeignKey]) -> Bool {
        var (seen, next): (Set<String>, [String]) = ([start], [start])
        while let name = next.popLast() {
            if name == type { return true }
            for key in keys where key.child == name && seen.insert(key.parent).inserted { next.append(key.parent) }
        }
        return false
    }
}

extension TableCatalog {
    /// Returns the foreign keys that can fail a device's transaction although neither the device nor its rows are at fault.
    func foreignKeyFindings(_ session: PostgresSession) throws -> [TableFinding] {
        try ForeignKeys.undeferrable(ForeignKeys.load(session, self)).compactMap { key in
            guard let mapping = self[key.child] else { return nil }
            let way = key.child == key.parent ? "to itself" : "through class \(key.parent) back to it"
            return TableFinding(
                .foreignKeyCircle, of: mapping, subject: key.name,
                message:
                    "The foreign key “\(key.name)” leads from class \(key.child) \(way), and is NOT DEFERRABLE: a transaction of a device "
                    + "whose new objects refer to each other in a circle is refused.",
                statements: ["ALTER TABLE \(mapping.sqlName) ALTER CONSTRAINT \(SQLQuote.identifier(key.name)) DEFERRABLE"])
        }
    }

    /// Returns the foreign keys between the tables.
    package func foreignKeys(_ connection: PostgresConnection) async throws -> [ForeignKey] {
        try await connection.withSession { try ForeignKeys.load($0, self) }
    }
}
