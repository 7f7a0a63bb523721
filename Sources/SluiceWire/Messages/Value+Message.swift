#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
package import SluiceCore
package import SluiceValues
import SwiftProtobuf

extension PBValue {
    package init(_ value: Value) {
        self.init()
        kind =
            switch value {
            case .null: .null(true)
            case .bool(let v): .bool(v)
            case .int(let v): .int(v)
            case .float(let v): .float(v)
            case .double(let v): .double(v)
            case .decimal(let v): .decimal(Data(v.bytes))
            case .string(let v): .string(v)
            case .binary(let v): .binary(Data(v))
            case .timestamp(let v): .timestamp(PBTimestamp(v))
            case .objectId(let v): .objectID(Data(v.bytes))
            case .uuid(let v): .uuid(Data(v.bytes))
            case .list(let v): .list(PBListValue.with { $0.elements = v.map { PBValue($0) } })
            case .dictionary(let v): .dictionary(PBDictionaryValue.with { $0.entries = v.mapValues { PBValue($0) } })
            case .link(let type, let key):
                .link(
                    PBLinkValue.with {
                        $0.type = type
                        $0.key = PBValue(key)
                    })
            }
    }
}

extension PBTimestamp {
    package init(_ value: Timestamp) {
        self.init()
        seconds = value.seconds
        nanoseconds = value.nanoseconds
    }
}

extension Timestamp {
    /// - Throws: `badSyntax` if the parts are no valid time.
    init(ofWire seconds: Int64, _ nanoseconds: Int64) throws(SluiceError) {
        guard let time = Timestamp(seconds: seconds, checking: nanoseconds) else {
            throw .malformed("a time has \(seconds) seconds and \(nanoseconds) nanoseconds, which is none")
        }
        self = time
    }
}

extension Value {
    /// - Throws: `badSyntax` for a value without a kind, an identifier of the wrong length, an invalid time, or nesting beyond
    ///   `Limits.nestingDepth`.
    package init(_ message: PBValue) throws(SluiceError) { try self.init(message, depth: 0) }

    private init(_ message: PBValue, depth: Int) throws(SluiceError) {
        guard depth <= Limits.nestingDepth else { throw .malformed("a value is nested deeper than \(Limits.nestingDepth) levels") }
        switch message.kind {
        case nil: throw .malformed("a value is empty")
        case .null: self = .null
        case .bool(let v): self = .bool(v)
        case .int(let v): self = .int(v)
        case .float(let v): self = .float(v)
        case .double(let v): self = .double(v)
        case .decimal(let v): self = .decimal(Decimal128(bytes: try Value.exactly(16, v)))
        case .string(let v): self = .string(v)
        case .binary(let v): self = .binary(Array(v))
        case .timestamp(let v): self = .timestamp(try Timestamp(ofWire: v.seconds, Int64(v.nanoseconds)))
        case .objectID(let v): self = .objectId(ObjectIdentifierBytes(bytes: try Value.exactly(12, v)))
        case .uuid(let v): self = .uuid(UUIDBytes(bytes: try Value.exactly(16, v)))
        case .list(let v):
            self = .list(try v.elements.map { element throws(SluiceError) in try Value(element, depth: depth + 1) })
        case .dictionary(let v):
            var entries: [String: Value] = [:]
            for (key, entry) in v.entries { entries[key] = try Value(entry, depth: depth + 1) }
            self = .dictionary(entries)
        case .link(let v): self = .link(type: v.type, key: try Value(v.key, depth: depth + 1))
        }
    }

    private static func exactly(_ count: Int, _ bytes: Data) throws(SluiceError) -> Data {
        guard bytes.count == count else { throw .malformed("an identifier has \(bytes.count) bytes instead of \(count)") }
        return bytes
    }
}

extension PBRow {
    /// The properties that the row has, ascending by number.
    package init(_ row: Row, type: ObjectType) {
        self.init()
        for (index, property) in type.properties.enumerated() {
            guard let value = row[index] else { continue }
            fields.append(PBField(property: property.id, value))
        }
        fields.sort { $0.property < $1.property }
    }

    /// - Throws: `unknownProperty` for a name that the class does not have.
    package init(_ values: [String: Value], type: ObjectType) throws(SluiceError) {
        self.init()
        for (name, value) in values { fields.append(PBField(property: try type.number(of: name), value)) }
        fields.sort { $0.property < $1.property }
    }
}

extension PBField {
    package init(property: UInt32, _ value: Value) {
        self.init()
        self.property = property
        self.value = PBValue(value)
    }
}

extension Row {
    /// Skips numbers that the class does not have. Properties that are missing become absent.
    /// - Throws: `badSyntax`, or `wrongValueType` for a value that its property does not accept.
    package init(_ message: PBRow, type: ObjectType) throws(SluiceError) {
        self.init([Value?](repeating: nil, count: type.properties.count))
        for field in message.fields {
            guard let index = type.index(ofID: field.property) else { continue }
            self[index] = try type.properties[index].checked(try Value(field.value), type: type)
        }
    }
}

extension ObjectType {
    /// Returns the number of a property in messages. The number 0 marks a property that the peer does not have.
    /// - Throws: `unknownProperty`.
    package func number(of name: String) throws(SluiceError) -> UInt32 {
        guard let property = self[name], property.id > 0 else {
            throw SluiceError(.unknownProperty, "\(self.name) has no property \(name).")
        }
        return property.id
    }

    /// Returns the property with this number.
    /// - Throws: `unknownProperty`.
    package func property(number: UInt32) throws(SluiceError) -> Property {
        guard let index = index(ofID: number) else {
            throw SluiceError(.unknownProperty, "\(name) has no property with the number \(number).")
        }
        return properties[index]
    }
}

extension Property {
    /// Returns the value if the property accepts its kind. Null is always accepted (see `ValueKinds`).
    /// - Throws: `wrongValueType`.
    package func checked(_ value: Value, type: ObjectType) throws(SluiceError) -> Value {
        let shape = ValueShape(of: self)
        var fits = shape.value.contains(value.kind)
        if collection != .none {
            switch value {
            case .list(let elements): fits = fits && elements.allSatisfy { shape.elements.contains($0.kind) }
            case .dictionary(let entries): fits = fits && entries.values.allSatisfy { shape.elements.contains($0.kind) }
            default: break
            }
        }
        guard fits else {
            throw SluiceError(.wrongValueType, "\(type.name).\(name) does not take this \(value.typeName).")
        }
        return value
    }
}

extension Property {
    /// Returns the value if the schema lets a client write it: `checked`, no null element where elements are required, and links with the
    /// key type of their class. A null value passes: the database rejects it together with its object.
    /// - Throws: `wrongValueType`.
    func written(_ value: Value, type: ObjectType, in schema: Schema) throws(SluiceError) -> Value {
        let value = try checked(value, type: type)
        switch value {
        case .list(let elements) where collection != .none:
            for element in elements { try checkElement(element, type: type, in: schema) }
        case .dictionary(let entries) where collection != .none:
            for element in entries.values { try checkElement(element, type: type, in: schema) }
        case .null: break
        default: try checkTarget(value, type: type, in: schema)
        }
        return value
    }

    func checkElement(_ element: Value, type: ObjectType, in schema: Schema) throws(SluiceError) {
        guard element.isNull else { return try checkTarget(element, type: type, in: schema) }
        switch self.type {
        case .mixed, .link, .embedded: return
        default: if !isOptional { throw SluiceError(.wrongValueType, "An element of \(type.name).\(name) cannot be null.") }
        }
    }

    private func checkTarget(_ value: Value, type: ObjectType, in schema: Schema) throws(SluiceError) {
        guard case .link(let target) = self.type, let key = schema[target].flatMap({ type in type.primaryKey.map { type.properties[$0] } }),
            !ValueKinds(of: key.type).contains(value.kind)
        else { return }
        throw SluiceError(
            .wrongValueType, "\(type.name).\(name) links to \(target), whose keys are of type \(key.type.name), not \(value.typeName).")
    }
}

extension Value {
    package var kind: ValueKind {
        switch self {
        case .null: .null
        case .bool: .bool
        case .int: .int
        case .float: .float
        case .double: .double
        case .decimal: .decimal
        case .string: .string
        case .binary: .binary
        case .timestamp: .timestamp
        case .objectId: .objectId
        case .uuid: .uuid
        case .list: .list
        case .dictionary: .dictionary
        case .link: .link
        }
    }
}
