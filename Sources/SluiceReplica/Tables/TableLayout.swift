package import SluiceCore
import SluiceQuery
import SluiceValues

/// The storage of a property's values in its column. Part of the file format.
///
/// - bool, int: INTEGER.
/// - float, double: REAL. NaN and -0, which SQLite would lose, as the 4 or 8 big-endian bytes of the bit pattern.
/// - string: TEXT with BINARY collation.
/// - binary, decimal, objectId, uuid: BLOB.
/// - timestamp: BLOB of 12 bytes whose byte order is the order in time.
/// - coded: BLOB in `StoredValue` form, for collections, embedded objects and mixed values.
enum ColumnKind: String {
    case bool, int, float, double, string, binary, timestamp, decimal, objectId, uuid, coded

    init(_ property: Property, schema: Schema) {
        guard property.collection == .none else {
            self = .coded
            return
        }
        switch property.type {
        case .bool: self = .bool
        case .int: self = .int
        case .float: self = .float
        case .double: self = .double
        case .decimal: self = .decimal
        case .string: self = .string
        case .binary: self = .binary
        case .timestamp: self = .timestamp
        case .objectId: self = .objectId
        case .uuid: self = .uuid
        case .mixed, .embedded: self = .coded
        case .link(let target):
            // A link is stored as the target's key. A chain of keys that are links has no end and is coded.
            guard let type = schema[target], let key = type.primaryKey, case let property = type.properties[key] else {
                self = .coded
                return
            }
            if case .link = property.type { self = .coded } else { self = ColumnKind(property, schema: schema) }
        }
    }

    var declaration: String {
        switch self {
        case .bool, .int: "INTEGER"
        case .float, .double: "REAL"
        case .string: "TEXT"
        case .binary, .timestamp, .decimal, .objectId, .uuid, .coded: "BLOB"
        }
    }
}

/// A class's table and its statements. A reference type, since copying its parts would cost more than their use.
package final class TableLayout: Sendable {
    package let type: ObjectType
    /// The index of the class in the schema.
    package let index: Int
    let kinds: [ColumnKind]
    /// The value that an absent cell of each property reads as.
    let defaults: [Value]
    let table: String
    let staging: String
    /// The table of rows that were staged before a bootstrap was resumed.
    let earlier: String
    let columns: String
    let keyColumn: String
    /// SQLite's name for the row number that no property uses.
    let rowid: String
    /// The index of the primary key among the properties.
    package let key: Int

    /// Returns one layout per class, also for those without a table (embedded and asymmetric ones).
    ///
    /// The clocks of a property are kept by its number, and an app's classes have none. So the replica numbers them by their order.
    static func all(of schema: Schema) throws(SluiceError) -> [TableLayout] {
        let schema = schema.numbered { _, index in UInt32(index + 1) }
        var layouts: [TableLayout] = []
        for (index, type) in schema.types.enumerated() { layouts.append(try TableLayout(type, index: index, schema: schema)) }
        return layouts
    }

    private init(_ type: ObjectType, index: Int, schema: Schema) throws(SluiceError) {
        if type.kind != .embedded && type.primaryKey == nil {
            throw SluiceError(.invalidSchemaChange, "The class \(type.name) has no primary key.", fix: "Give it a primary key `_id`.")
        }
        if type.name.lowercased().hasPrefix("_sluice") || type.name.lowercased().hasPrefix("sqlite") {
            throw SluiceError(.invalidSchemaChange, "The class name \(type.name) is reserved.", fix: "Rename the class.")
        }
        let names = Set(type.properties.map { $0.name.lowercased() })
        guard names.count == type.properties.count else {
            throw SluiceError(
                .invalidSchemaChange, "Two properties of \(type.name) differ in case only.", fix: "Rename one of them.")
        }
        self.type = type
        self.index = index
        key = type.primaryKey ?? 0
        kinds = type.properties.map { ColumnKind($0, schema: schema) }
        defaults = zip(type.properties, kinds).map { TableLayout.absent($0, kind: $1) }
        guard let rowid = ["rowid", "_rowid_", "oid"].first(where: { !names.contains($0) }) else {
            throw SluiceError(
                .invalidSchemaChange, "\(type.name) has properties of all the names that SQLite has for a row's number.",
                fix: "Rename one of rowid, _rowid_ and oid.")
        }
        self.rowid = rowid
        table = SQLQuote.identifier(type.name)
        earlier = SQLQuote.identifier("_sluice_earlier_\(type.name)")
        staging = SQLQuote.identifier("_sluice_staging_\(type.name)")
        columns = type.properties.map { SQLQuote.identifier($0.name) }.joined(separator: ", ")
        keyColumn = type.properties.isEmpty ? "" : SQLQuote.identifier(type.properties[key].name)
        let parameters = kinds.map { _ in "?" }.joined(separator: ", ")
        insertion = "INSERT INTO \(table) (\(columns)) VALUES (\(parameters)) ON CONFLICT (\(keyColumn)) DO NOTHING"
        placeholders = "VALUES (\(parameters))"
        let others = type.properties.indices.filter { [key] in $0 != key }.map { SQLQuote.identifier(type.properties[$0].name) }
        let assignments = others.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        resolution = "ON CONFLICT (\(keyColumn)) DO \(others.isEmpty ? "NOTHING" : "UPDATE SET \(assignments)")"
        let differs = others.map { [table] in "\(table).\($0) IS NOT excluded.\($0)" }.joined(separator: " OR ")
        ownResolution = resolution + (others.isEmpty ? "" : " WHERE \(differs)")
        upsert = "INSERT INTO \(table) (\(columns)) \(placeholders) \(ownResolution)"
    }

    /// Returns the tables as SQL conditions see them. Omits classes with a link whose target's key is itself a link: SQL has no such
    /// form.
    static func sql(_ layouts: [TableLayout], schema: Schema, links: LinkIndex) -> SQLLayout {
        var tables: [String: SQLTable] = [:]
        for layout in layouts where layout.hasTable {
            let properties = layout.type.properties
            let isCoded = properties.indices.contains { index in
                guard case .link = properties[index].type, properties[index].collection == .none else { return false }
                return layout.kinds[index] == .coded
            }
            if isCoded { continue }
            tables[layout.type.name] = SQLTable(
                name: layout.table, columns: properties.map { SQLQuote.identifier($0.name) }, ownOrder: layout.rowid,
                linksBack: Set(properties.indices.filter { links.covers(layout.index, $0) }))
        }
        return SQLLayout(.sqlite, schema: schema, tables: tables)
    }

    /// The primary key of a class that declares none, which only local files allow: a number that no other object of the class has had.
    /// It follows the class's properties.
    package static let hiddenKey = Property(id: 0, name: "_sluice_key", type: .int)

    /// `true` if the key is SQLite's row number, as a single integer key is.
    var keyIsRowid: Bool { kinds[key] == .int }

    var hasTable: Bool { type.kind == .topLevel }

    /// Returns the value of an absent cell.
    private static func absent(_ property: Property, kind: ColumnKind) -> Value {
        switch property.collection {
        case .list, .set: return .list([])
        case .dictionary: return .dictionary([:])
        case .none: break
        }
        if property.isOptional { return .null }
        if case .link = property.type { return .null }
        switch kind {
        case .bool: return .bool(false)
        case .int: return .int(0)
        case .float: return .float(0)
        case .double: return .double(0)
        case .string: return .string("")
        case .binary: return .binary([])
        case .timestamp: return .timestamp(Timestamp(seconds: 0))
        // Zero with exponent 0 in the binary integer encoding.
        case .decimal: return .decimal(Decimal128(high: 0x3040_0000_0000_0000, low: 0))
        case .objectId: return .objectId(ObjectIdentifierBytes(high: 0, low: 0))
        case .uuid: return .uuid(UUIDBytes(high: 0, low: 0))
        case .coded: return .null
        }
    }

    func creation(of table: String) -> String {
        let definitions = type.properties.indices.map { index in
            let name = SQLQuote.identifier(type.properties[index].name)
            guard index == key else { return "\(name) \(kinds[index].declaration)" }
            // AUTOINCREMENT: SQLite keeps the highest number even when its row is deleted.
            let isHidden = type.properties[index].name == TableLayout.hiddenKey.name
            return "\(name) \(kinds[index].declaration) PRIMARY KEY \(isHidden ? "AUTOINCREMENT " : "")NOT NULL"
        }
        return "CREATE TABLE IF NOT EXISTS \(table) (\(definitions.joined(separator: ", ")))"
    }

    /// Inserts or updates. Equal rows are left unchanged and do not count as changed.
    let upsert: String
    private let resolution: String
    private let ownResolution: String

    /// Inserts. Does nothing if the key exists.
    let insertion: String

    let placeholders: String

    func upsert(values: String, table: String) -> String {
        "INSERT INTO \(table) (\(columns)) \(values) \(table == self.table ? ownResolution : resolution)"
    }
}

extension TableLayout {
    /// Returns the values of a row by property name.
    func named(_ row: Row) -> [String: Value] {
        var values: [String: Value] = [:]
        for (index, property) in type.properties.enumerated() { values[property.name] = row[index] }
        return values
    }

    /// Returns the row of values by property name.
    func row(_ values: [String: Value]) -> Row { Row(type.properties.map { values[$0.name] }) }
}
