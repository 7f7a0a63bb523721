/// A privilege of PostgreSQL on a table.
package enum TablePrivilege: String, CaseIterable, Hashable, Sendable {
    case select = "SELECT"
    case insert = "INSERT"
    case update = "UPDATE"
    case delete = "DELETE"
    case trigger = "TRIGGER"
}

/// A table that a gateway uses, with the privileges that it needs there.
package struct NeededTable: Hashable, Sendable {
    package let mapping: TableMapping
    package let privileges: Set<TablePrivilege>
    /// `true` if devices read the table, so that its changes are published with their old rows.
    package let isPublished: Bool

    package init(_ mapping: TableMapping, _ privileges: Set<TablePrivilege>, isPublished: Bool) {
        self.mapping = mapping
        self.privileges = privileges
        self.isPublished = isPublished
    }

    /// The privileges in the order of `TablePrivilege`.
    var ordered: [TablePrivilege] { TablePrivilege.allCases.filter(privileges.contains) }
}

/// The rights and preparations that a gateway needs in its database.
package struct DatabaseNeeds: Sendable {
    /// The role; nil for that of the connection.
    package var role: String?
    package var tables: [NeededTable]
    package var customData: CustomDataTable.Place?
    /// The id of the app, which names its publication.
    package var app: String

    package init(role: String? = nil, app: String, tables: [NeededTable], customData: CustomDataTable.Place? = nil) {
        self.role = role
        self.app = app
        self.tables = tables
        self.customData = customData
    }
}

/// One right, or one preparation of the database, with the statement that a database administrator runs for it.
package struct DatabaseGrant: Hashable, Sendable {
    /// The object that the statement changes.
    package enum Kind: Hashable, Sendable {
        /// The role, which does not exist.
        case role
        /// The role's attributes and its right to connect.
        case access
        /// The schema `sluice` with its tables and sequences.
        case companion
        /// A schema of the app's tables.
        case schema
        /// A table of the app, or its replica identity.
        case table
        case sequence, publication, customData
    }

    package var kind: Kind
    /// `true` if the statement need not be run.
    package var isMet: Bool
    /// The lack in words, such as `The role lacks UPDATE on shop.orders`.
    package var lack: String
    /// The statement, without a semicolon.
    package var statement: String

    init(_ kind: Kind, isMet: Bool, lack: String, statement: String) {
        self.kind = kind
        self.isMet = isMet
        self.lack = lack
        self.statement = statement
    }
}
