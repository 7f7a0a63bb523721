import SluiceCore

/// The relations of a database as its catalog has them at one moment.
package struct DatabaseSurvey: Hashable, Sendable {
    /// In the order of schema and name, byte by byte.
    package var relations: [Relation]

    package init(relations: [Relation]) { self.relations = relations }

    /// The kind of a relation, by `pg_class.relkind`.
    package enum Kind: String, CaseIterable, Sendable {
        case table = "r"
        case partitioned = "p"
        case view = "v"
        case materializedView = "m"
        case foreignTable = "f"
    }

    package struct Relation: Hashable, Sendable {
        package var schema: String
        package var name: String
        package var kind = Kind.table
        /// The extension that owns the relation; nil for none.
        package var owner: String?
        /// `true` for a table whose changes are not in the WAL.
        package var isUnlogged = false
        /// `true` for a table that other tables inherit from, which are no partitions of it.
        package var hasChildren = false
        package var hasRowSecurity = false
        package var columns: [Column] = []
        /// The unique indexes of columns, valid, immediate and without a condition. The primary key is first.
        package var keys: [Key] = []
        /// The first column of each index, in the order of the catalog.
        package var indexed: [String] = []
        package var references: [Reference] = []
        /// The columns of a partitioned table that alone are unique in each partition.
        package var uniqueInPartitions: [String] = []

        package init(schema: String, name: String, kind: Kind = .table) {
            self.schema = schema
            self.name = name
            self.kind = kind
        }

        /// The quoted name for statements.
        package var sqlName: String { "\(SQLQuote.identifier(schema)).\(SQLQuote.identifier(name))" }
        /// The name for people.
        package var displayName: String { "\(schema).\(name)" }

        package func column(_ name: String) -> Column? { columns.first { $0.name == name } }
    }

    package struct Column: Hashable, Sendable {
        package var name: String
        /// The type as declared, with its modifiers: `numeric(10,2)`.
        package var declared: String
        /// The type behind domains and without modifiers; of an array, that of its elements.
        package var base: String
        package var isArray = false
        /// The declared dimensions of an array. PostgreSQL does not enforce them.
        package var dimensions = 0
        package var isEnum = false
        /// `true` for a domain over an array, also by way of other domains. `TableCheck` does not resolve it.
        package var isArrayDomain = false
        /// `true` if the column or its domain is NOT NULL.
        package var isNotNull = false
        package var isGenerated = false
        package var identity = Identity.none
        /// `true` if the column or its domain has a default.
        package var hasDefault = false

        package init(_ name: String, _ declared: String, base: String? = nil, isNotNull: Bool = false) {
            self.name = name
            self.declared = declared
            self.base = base ?? declared
            self.isNotNull = isNotNull
        }

        /// The quoted name for statements.
        package var sqlName: String { SQLQuote.identifier(name) }

        /// `true` if PostgreSQL gives a value to a row that has none.
        package var hasValue: Bool { hasDefault || isGenerated || identity != .none }
    }

    /// The form of an identity column, by `pg_attribute.attidentity`.
    package enum Identity: String, CaseIterable, Sendable {
        case none = ""
        case always = "a"
        case byDefault = "d"
    }

    package struct Key: Hashable, Sendable {
        package var columns: [String]
        package var isPrimary: Bool

        package init(_ columns: [String], isPrimary: Bool = false) {
            self.columns = columns
            self.isPrimary = isPrimary
        }
    }

    /// A foreign key.
    package struct Reference: Hashable, Sendable {
        package var columns: [String]
        package var schema: String
        package var table: String
        package var targets: [String]

        package init(_ columns: [String], to schema: String, _ table: String, _ targets: [String]) {
            self.columns = columns
            self.schema = schema
            self.table = table
            self.targets = targets
        }
    }
}
