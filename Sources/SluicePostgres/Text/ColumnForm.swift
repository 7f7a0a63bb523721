package import SluiceCore
import SluiceValues

/// The reason why a table's value does not fit its property, or a row does not fit the change log.
///
/// A type beside `PostgresError`: a misfit is quarantined and not reported, and the decoder of rows throws 16 bytes as a type.
package struct Misfit: Error, Hashable, Sendable {
    package var reason: String

    /// Returns the misfit of a row that is larger than the change log accepts.
    static func tooLarge(_ bound: RowBound) -> Misfit {
        let limit = "the row takes more than the \(bound.text) that an object may have in the log"
        return Misfit(reason: bound.bytes < Limits.rowBytes ? "\(limit) (max.message.bytes of its topic limits it)" : limit)
    }
}

/// The form of a property in its column: the column's type, and the conversion between PostgreSQL's text and cells.
///
/// - bool, int, float, double: `boolean`, `bigint`, `real`, `double precision`.
/// - decimal, string, binary, date, uuid: `numeric`, `text`, `bytea`, `timestamp with time zone`, `uuid`.
/// - objectId: `sluice.objectid`, text of 24 lower-case hexadecimal digits.
/// - link: The type of the target's primary key.
/// - list and set of these: An array; NULL reads as empty.
/// - mixed, embedded, dictionary, list of mixed or embedded: `jsonb` with `ExtendedJSON`; a NULL dictionary or list reads as empty.
package struct ColumnForm: Sendable {
    enum Code: UInt8, Sendable {
        case bool, int, float, double, decimal, string, binary, timestamp, objectId, uuid
        /// Kinds of existing columns only (`ColumnStorage`).
        case character, date, localTime, time, zonedTime, interval
        case array, set, json
    }

    package let property: Property
    /// The kind of a value's text.
    let code: Code
    /// The kind of an array's elements; equal to `code` for scalars.
    let element: Code
    /// `true` if the column (for arrays, its elements) must not be NULL.
    let isRequired: Bool
    private let schema: Schema?
    /// The form of the column, if the table exists.
    let storage: ColumnStorage
    /// `true` if PostgreSQL computes the column. It is read and never written.
    package let isGenerated: Bool

    package init(_ property: Property, in schema: Schema, _ facts: ColumnFacts = ColumnFacts()) {
        self.property = property
        storage = facts.storage
        isGenerated = facts.isGenerated
        element = storage.code(Self.code(of: property.type, in: schema, depth: 0))
        switch property.collection {
        case .none: code = element
        case .list: code = element == .json ? .json : .array
        case .set: code = element == .json ? .json : .set
        case .dictionary: code = .json
        }
        isRequired = property.collection == .none ? property.isRequired : !property.isOptional
        self.schema = code == .json ? schema : nil
    }

    private static func code(of type: PropertyType, in schema: Schema, depth: Int) -> Code {
        switch type {
        case .bool: return .bool
        case .int: return .int
        case .float: return .float
        case .double: return .double
        case .decimal: return .decimal
        case .string: return .string
        case .binary: return .binary
        case .timestamp: return .timestamp
        case .objectId: return .objectId
        case .uuid: return .uuid
        case .mixed, .embedded: return .json
        case .link(let target):
            // The schema's own checks reject a link whose target is unknown or keyed by a link; text holds any key.
            guard depth < 2, let type = schema[target], let key = type.primaryKey else { return .string }
            return code(of: type.properties[key].type, in: schema, depth: depth + 1)
        }
    }

    /// The column's type as `CREATE TABLE` writes it.
    package var columnType: String {
        switch code {
        case .array, .set: element.typeName + "[]"
        default: code.typeName
        }
    }

    /// The type to which a parameter for the column is cast.
    var castType: String {
        switch code {
        case .array, .set: storage.castType(element) + "[]"
        default: storage.castType(code)
        }
    }

    /// Returns a quoted column as conditions compare it, with a table's alias before it or without.
    func compared(_ column: String) -> String {
        storage.comparedType(isArray: code == .array || code == .set).map { "\(column)::\($0)" } ?? column
    }

    /// Returns a quoted column as statements compare it with keys of the type `lookupType`.
    func lookedUp(_ column: String) -> String { storage.lookupType.map { "\(column)::\($0)" } ?? column }

    /// The type of the keys that `lookedUp` is compared with.
    var lookupType: String { storage.lookupType ?? castType }

    /// Returns the cell of NULL.
    ///
    /// - Throws: `Misfit` if the property has no null.
    @inline(__always)
    func null(into buffer: inout RowBuffer) throws(Misfit) -> Cell {
        if property.collection == .none {
            if isRequired { throw misfit("it is NULL and the property is required") }
            return .null
        }
        return buffer.encode(property.collection == .dictionary ? .dictionary([:]) : .list([]))
    }

    func json(_ bytes: UnsafeBufferPointer<UInt8>, into buffer: inout RowBuffer) throws(Misfit) -> Cell {
        do {
            let json = unsafe try JSON.parse(Array(bytes))
            // JSON's null reads like NULL in the column of a collection.
            if json == .null, property.collection != .none { return try null(into: &buffer) }
            return buffer.encode(try ExtendedJSON.value(json, property: property, schema: schema))
        } catch {
            throw Misfit(reason: (error as? Misfit)?.reason ?? "\(property.name): \((error as? SluiceError)?.message ?? "\(error)")")
        }
    }

    /// Returns a misfit that names the property.
    func misfit(_ reason: String) -> Misfit { Misfit(reason: "\(property.name): \(reason)") }

    func misfit(_ code: Code, _ bytes: UnsafeBufferPointer<UInt8>) -> Misfit {
        let text = unsafe String(decoding: bytes.prefix(60), as: UTF8.self) + (bytes.count > 60 ? "…" : "")
        return misfit("expected \(code.typeName), found '\(text)'")
    }
}

extension ColumnForm.Code {
    /// The SQL type, without its collation.
    var typeName: String {
        switch self {
        case .bool: "boolean"
        case .int: "bigint"
        case .float: "real"
        case .double: "double precision"
        case .decimal: "numeric"
        case .string: "text"
        case .binary: "bytea"
        case .timestamp: "timestamp with time zone"
        case .objectId: "sluice.objectid"
        case .uuid: "uuid"
        case .character: "character"
        case .date: "date"
        case .localTime: "timestamp without time zone"
        case .time: "time without time zone"
        case .zonedTime: "time with time zone"
        case .interval: "interval"
        case .array, .set: "text[]"
        case .json: "jsonb"
        }
    }

    /// `true` if a column may return another text than was written to it.
    var changesTexts: Bool { self == .character || textsOfValues != nil }

    /// The texts that such a column keeps, for messages; nil for a column that keeps any.
    var textsOfValues: String? {
        switch self {
        case .time: "a time such as 12:30:00"
        case .zonedTime: "a time with an offset such as 12:30:00+02"
        case .interval: "an ISO 8601 duration such as P1DT2H30M"
        default: nil
        }
    }

    /// The types of existing columns, besides `typeName`, that hold values of this kind. Narrower integer columns are accepted: a
    /// value that is too large is rejected when it is written.
    var alsoAccepted: [String] {
        switch self {
        case .int: ["integer", "smallint"]
        case .string: ["character varying"]
        case .objectId: ["text", "character varying", "character"]
        default: []
        }
    }
}
