package import SluiceCore

/// Where objects lie: a table for each class, a column for each property.
///
/// What the columns hold: in PostgreSQL `boolean`, `bigint` (or narrower), `real`, `double precision`, `numeric`, `text`, `bytea`,
/// `timestamptz`, `uuid`; an ObjectId as its 24 hexadecimal digits; a link as its target's key; lists and sets of those as arrays (NULL
/// reads as empty); everything else as `jsonb`. In SQLite integers, REAL (NaN and -0 as the big-endian bytes of their bit pattern), TEXT
/// of BINARY collation, and blobs, those of ids and times in the order of the values; decimals, collections, embedded objects and mixed
/// values as blobs that only equal NULL or not.
package struct SQLLayout: Sendable {
    package var dialect: SQLDialect
    package var schema: Schema
    /// By class. A class that is not in it has no table, and nothing is asked of it.
    package var tables: [String: SQLTable]

    package init(_ dialect: SQLDialect, schema: Schema, tables: [String: SQLTable]) {
        self.dialect = dialect
        self.schema = schema
        self.tables = tables
    }

    /// The name that a statement has to give the table of the rows it selects: `FROM table AS t0`.
    package static let row = "t0"
}

package struct SQLTable: Hashable, Sendable {
    /// Qualified and quoted.
    package var name: String
    /// Quoted, by property index.
    package var columns: [String]
    /// An expression of the rows' own order, which makes every order total: SQLite's `rowid`. Nil where rows have none.
    package var ownOrder: String?
    /// The links, by property index, that the database finds by their targets without reading the table; nil: all.
    package var linksBack: Set<Int>?

    package init(name: String, columns: [String], ownOrder: String? = nil, linksBack: Set<Int>? = nil) {
        self.name = name
        self.columns = columns
        self.ownOrder = ownOrder
        self.linksBack = linksBack
    }
}

extension SQLLayout {
    /// The type of what a column holds, or the elements of its arrays: a link is its target's key. Nil for what SQL has no type for.
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
