package import SluiceCore

/// The database form of objects: a table for each class, a column for each property.
///
/// PostgreSQL has `boolean`, `bigint` (or narrower), `real`, `double precision`, `numeric`, `text`, `bytea`, `timestamptz` and `uuid`. An
/// ObjectId is its 24 hexadecimal digits, and a link its target's key. Lists and sets of these are arrays, and NULL reads as empty. All
/// other values are `jsonb`.
///
/// SQLite has integers, REAL, TEXT of BINARY collation and blobs. NaN and -0 are the big-endian bytes of their bit pattern. Blobs of ids
/// and times sort as the values do. Decimals, collections, embedded objects and mixed values are blobs that compare only with NULL.
package struct SQLLayout: Sendable {
    package var dialect: SQLDialect
    package var schema: Schema
    /// The tables by class. A query never reads a class without a table.
    package var tables: [String: SQLTable]

    package init(_ dialect: SQLDialect, schema: Schema, tables: [String: SQLTable]) {
        self.dialect = dialect
        self.schema = schema
        self.tables = tables
    }

    /// The alias that a statement must give the table of the selected rows: `FROM table AS t0`.
    package static let row = "t0"
}

package struct SQLTable: Hashable, Sendable {
    /// The qualified and quoted name.
    package var name: String
    /// The quoted column names by property index.
    package var columns: [String]
    /// An expression of the rows' own order, which makes every order total, as SQLite's `rowid`. Nil without one.
    package var ownOrder: String?
    /// The links, by property index, with an index of their targets. Nil if all have one.
    package var linksBack: Set<Int>?

    package init(name: String, columns: [String], ownOrder: String? = nil, linksBack: Set<Int>? = nil) {
        self.name = name
        self.columns = columns
        self.ownOrder = ownOrder
        self.linksBack = linksBack
    }
}

extension SQLLayout {
    /// Returns the type of a column's values or array elements. A link has the type of its target's key. Nil for types without one in SQL.
    func stored(_ type: PropertyType) -> PropertyType? {
        var type = type
        for _ in 0..<3 {
            switch type {
            case .mixed, .embedded: return nil
            case .link(let target):
                guard let object = schema[target], let key = object.primaryKey else { return nil }
                type = object.properties[key].type
            default: return type
            }
        }
        return nil
    }
}
