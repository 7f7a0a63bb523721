import SluiceValues

/// Reads objects of one class from JSON into flat rows in one pass over the bytes, without a tree. An object of scalar values costs no
/// allocation.
///
/// It accepts the input of `JSON.parse` and `ExtendedJSON.values` with the same results, except for rare spellings (`1.0` for an integer,
/// escapes in keys). For those, and to report an error, the caller uses these functions.
package struct JSONRowReader: Sendable {
    /// The way in which a property's value is read.
    enum Form: Sendable {
        case bool, int, float, double, decimal, string, timestamp, objectId, uuid
        /// From a JSON tree of the value.
        case tree
    }

    struct Field: Sendable {
        /// The range of the property's name in `names`.
        var name: Range<Int>
        var form: Form
        var isNullable: Bool
        var isRequired: Bool
        /// The property's index in its class.
        var index: Int
    }

    private let type: ObjectType
    private let schema: Schema
    private let fields: [Field]
    private let names: [UInt8]
    /// The index + 1 of the field that last followed each field. The objects of one sender have their members in one order.
    private var following: [Int]

    package init(_ type: ObjectType, in schema: Schema) {
        self.type = type
        self.schema = schema
        // A property that the class does not find at its own index is shadowed by one with an equal name.
        var (fields, names): ([Field], [UInt8]) = ([], [])
        for (index, property) in type.properties.enumerated() where type.index(of: property.name) == index {
            let start = names.count
            names += property.name.utf8
            fields.append(
                Field(
                    name: start..<names.count, form: Self.form(of: property, in: schema), isNullable: property.isNullable,
                    isRequired: property.isRequired, index: index))
        }
        (self.fields, self.names) = (fields, names)
        following = Array(0...fields.count)
    }

    private static func form(of property: Property, in schema: Schema) -> Form {
        guard property.collection == .none else { return .tree }
        if case .link(let target) = property.type {
            guard let type = schema[target], let key = type.primaryKey else { return .tree }
            return form(of: type.properties[key].type)
        }
        return form(of: property.type)
    }

    private static func form(of type: PropertyType) -> Form {
        switch type {
        case .bool: .bool
        case .int: .int
        case .float: .float
        case .double: .double
        case .decimal: .decimal
        case .string: .string
        case .timestamp: .timestamp
        case .objectId: .objectId
        case .uuid: .uuid
        case .binary, .mixed, .link, .embedded: .tree
        }
    }

    /// Appends the object's row. A property that the object omits is absent.
    /// - Returns: Nil, with nothing appended, for a text that needs the general parser.
    package mutating func read(_ text: ArraySlice<UInt8>, into buffer: inout RowBuffer) -> RowRef? {
        let (cells, arena) = (buffer.cells.count, buffer.arena.count)
        let row = buffer.appendAbsent(count: type.properties.count)
        let isRead = text.withUnsafeBufferPointer { bytes in
            var cursor = JSONCursor(bytes)
            return object(&cursor, row, &buffer)
        }
        if isRead { return row }
        buffer.cells.removeSubrange(cells...)
        buffer.arena.removeSubrange(arena...)
        return nil
    }

    private mutating func object(_ cursor: inout JSONCursor, _ row: RowRef, _ buffer: inout RowBuffer) -> Bool {
        cursor.skipSpace()
        guard cursor.take(UInt8(ascii: "{")) else { return false }
        cursor.skipSpace()
        var last = -1
        if !cursor.take(UInt8(ascii: "}")) {
            repeat {
                cursor.skipSpace()
                guard let key = cursor.plainString(), let place = place(of: key, after: last) else { return false }
                last = place
                let cell = Int(row.start) + fields[place].index
                cursor.skipSpace()
                // A cell that is not absent means a repeated key, which `JSON.parse` rejects with its place.
                guard buffer.cells[cell].tag == .absent, cursor.take(UInt8(ascii: ":")) else { return false }
                cursor.skipSpace()
                guard let value = value(&cursor, fields[place], &buffer) else { return false }
                buffer.cells[cell] = value
                cursor.skipSpace()
            } while cursor.take(UInt8(ascii: ","))
            guard cursor.take(UInt8(ascii: "}")) else { return false }
        }
        cursor.skipSpace()
        return cursor.isAtEnd && fields.allSatisfy { !$0.isRequired || buffer.cells[Int(row.start) + $0.index].tag != .absent }
    }

    /// Returns the field of a key, tried first at the place where it followed the last field before.
    private mutating func place(of key: UnsafeBufferPointer<UInt8>, after last: Int) -> Int? {
        let likely = following[last + 1]
        if likely < fields.count, isName(of: fields[likely], key) { return likely }
        guard let found = fields.firstIndex(where: { isName(of: $0, key) }) else { return nil }
        following[last + 1] = found
        return found
    }

    private func isName(of field: Field, _ key: UnsafeBufferPointer<UInt8>) -> Bool {
        guard field.name.count == key.count else { return false }
        for index in key.indices where names[field.name.lowerBound + index] != key[index] { return false }
        return true
    }

    private func value(_ cursor: inout JSONCursor, _ field: Field, _ buffer: inout RowBuffer) -> Cell? {
        if cursor.take(word: "null") { return field.isNullable ? .null : nil }
        switch field.form {
        case .bool:
            if cursor.take(word: "true") { return Cell(tag: .bool, bits: 1) }
            return cursor.take(word: "false") ? Cell(tag: .bool) : nil
        case .int:
            guard case .int(let value)? = cursor.number() else { return nil }
            return Cell(tag: .int, bits: UInt64(bitPattern: value))
        case .double:
            guard let value = cursor.number()?.double else { return nil }
            return Cell(tag: .double, bits: value.bitPattern)
        case .float:
            guard let value = cursor.number()?.double else { return nil }
            let narrow = Float(value)
            return narrow.isFinite ? Cell(tag: .float, bits: UInt64(narrow.bitPattern)) : nil
        case .decimal: return decimal(&cursor).map { buffer.encode(.decimal($0)) }
        case .string: return cursor.string(into: &buffer)
        case .timestamp: return timestamp(&cursor).map { buffer.encode(.timestamp($0)) }
        case .objectId:
            return cursor.bytes(orMemberOf: "$oid").flatMap { ObjectIdentifierBytes(hex: $0) }.map { buffer.encode(.objectId($0)) }
        case .uuid: return cursor.bytes(orMemberOf: "$uuid").flatMap { UUIDBytes(utf8: $0) }.map { buffer.encode(.uuid($0)) }
        case .tree: return tree(&cursor, field, &buffer)
        }
    }

    private func decimal(_ cursor: inout JSONCursor) -> Decimal128? {
        switch cursor.current {
        case UInt8(ascii: "\""), UInt8(ascii: "{"): cursor.bytes(orMemberOf: "$numberDecimal").flatMap { Decimal128(utf8: $0) }
        default:
            switch cursor.number() {
            case .int(let value): Decimal128(value)
            case .double(let value): Decimal128(double: value)
            case nil: nil
            }
        }
    }

    private func timestamp(_ cursor: inout JSONCursor) -> Timestamp? {
        switch cursor.current {
        case UInt8(ascii: "\""), UInt8(ascii: "{"):
            guard let text = cursor.bytes(orMemberOf: "$date") else { return nil }
            return Timestamp(iso8601: text)
        default:
            guard case .int(let milliseconds)? = cursor.number() else { return nil }
            return Timestamp(milliseconds: milliseconds)
        }
    }

    private func tree(_ cursor: inout JSONCursor, _ field: Field, _ buffer: inout RowBuffer) -> Cell? {
        guard let text = cursor.extent(), let json = try? JSON.located(Array(text)) else { return nil }
        let reader = PropertyReader(owner: type.name, property: type.properties[field.index], schema: schema)
        return (try? reader.value(json)).map { buffer.encode($0) }
    }
}

extension Property {
    /// `true` if the property itself can be null. Nullable elements of a collection do not count.
    fileprivate var isNullable: Bool {
        guard collection == .none else { return false }
        switch type {
        case .mixed, .link, .embedded: return true
        default: return isOptional
        }
    }
}
