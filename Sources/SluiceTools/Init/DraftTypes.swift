import SluiceCore
import SluicePostgres

/// The types of properties for the types of PostgreSQL.
enum DraftTypes {
    private static let scalars: [String: PropertyType] = [
        "boolean": .bool, "smallint": .int, "integer": .int, "bigint": .int, "real": .float, "double precision": .double,
        "numeric": .decimal, "text": .string, "character varying": .string, "character": .string, "uuid": .uuid, "bytea": .binary,
        "timestamp with time zone": .timestamp, "timestamp without time zone": .timestamp, "date": .timestamp,
        "time without time zone": .string, "time with time zone": .string, "interval": .string, "jsonb": .mixed, "json": .mixed,
    ]

    /// The types that a primary key can have.
    private static let keys: [PropertyType] = [.int, .string, .uuid, .objectId]
    /// The types whose values have several texts, so that a text does not identify a row.
    private static let noKeys = ["time without time zone", "time with time zone", "interval"]

    /// Returns the type of a column's values, or of the elements of an array; nil if no property has it.
    static func type(of column: DatabaseSurvey.Column) -> PropertyType? {
        if column.declared == "sluice.objectid" { return .objectId }
        return column.isEnum ? .string : scalars[column.base]
    }

    /// `true` for a column that devices can give a value and look up by any value of its type.
    static func canBeKey(_ column: DatabaseSurvey.Column) -> Bool {
        !column.isArray && !column.isGenerated && !column.isArrayDomain && column.isNotNull && !noKeys.contains(column.base)
            && type(of: column).map(keys.contains) == true
    }

    /// Returns the property of a column.
    ///
    /// - Returns: nil if no property has its values.
    static func property(_ column: DatabaseSurvey.Column, name: String, id: Int) -> Property? {
        guard !column.isArrayDomain, let type = type(of: column) else { return nil }
        if column.isArray {
            // An array of arrays, and an array of any values, have no property.
            guard column.dimensions < 2, type != .mixed else { return nil }
            return Property(id: UInt32(id), name: name, type: type, collection: .list)
        }
        return Property(id: UInt32(id), name: name, type: type, isOptional: type == .mixed || !column.isNotNull)
    }

    /// Returns the reason why a column has no property.
    static func reason(_ column: DatabaseSurvey.Column) -> String {
        if column.isArrayDomain { return "Its type \(column.declared) is a domain over an array." }
        if column.isArray, column.dimensions > 1 { return "It is an array of \(column.dimensions) dimensions." }
        return "No property has the type \(column.declared)."
    }
}
