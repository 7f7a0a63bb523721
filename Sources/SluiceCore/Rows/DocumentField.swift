import SluiceValues

/// A property as `DocumentRowReader` finds it and reads its scalar values.
struct DocumentField: Sendable {
    enum Form: Sendable {
        case bool, int, float, double, decimal, string, timestamp, objectId, uuid, binary
        /// Through a tree.
        case tree
    }

    /// The range of the property's name in the reader's names.
    let name: Range<Int>
    /// The property's index in its class.
    let index: Int
    let isRequired: Bool
    private let form: Form
    private let isNullable: Bool

    init(_ property: Property, index: Int, name: Range<Int>, in schema: Schema) {
        self.name = name
        self.index = index
        form = property.collection == .none ? Self.form(property.type, in: schema) : .tree
        isRequired = property.isRequired
        isNullable = property.collection == .none && !property.isRequired
    }

    private static func form(_ type: PropertyType, in schema: Schema, depth: Int = 0) -> Form {
        switch type {
        case .bool: return .bool
        case .int: return .int
        case .float: return .float
        case .double: return .double
        case .decimal: return .decimal
        case .string: return .string
        case .timestamp: return .timestamp
        case .objectId: return .objectId
        case .uuid: return .uuid
        case .binary: return .binary
        case .mixed, .embedded: return .tree
        case .link(let target):
            // A key is no link, so one step suffices.
            guard depth == 0, let type = schema[target], let key = type.primaryKey else { return .tree }
            return form(type.properties[key].type, in: schema, depth: 1)
        }
    }

    /// Returns the cell of a scalar value; nil for an element that only the general way can read or reject.
    ///
    /// - Throws: `DocumentMisfit` for text that cannot be stored.
    @inline(__always)
    func cell(_ element: BSONElement, into buffer: inout RowBuffer) throws(DocumentMisfit) -> Cell? {
        if element.type == .null { return isNullable ? .null : nil }
        switch (form, element.type) {
        case (.string, .string):
            guard DocumentText.isPlain(element.content) else { return nil }
            return buffer.stored(.string, element.content)
        case (.int, .int32): return Cell(tag: .int, bits: UInt64(bitPattern: Int64(element.int32)))
        case (.int, .int64): return Cell(tag: .int, bits: element.bits64)
        case (.double, .double): return Cell(tag: .double, bits: element.bits64)
        case (.double, .int32): return Cell(tag: .double, bits: Double(element.int32).bitPattern)
        case (.bool, .bool): return Cell(tag: .bool, bits: element.bool ? 1 : 0)
        case (.timestamp, .date):
            let time = Timestamp(milliseconds: element.int64)
            return StorableValue.seconds.contains(time.seconds) ? buffer.encode(.timestamp(time)) : nil
        case (.objectId, .objectId): return buffer.encode(.objectId(element.objectId))
        case (.float, .double):
            let narrow = Float(element.double)
            guard narrow.isFinite else { return nil }
            return Cell(tag: .float, bits: UInt64(narrow.bitPattern))
        case (.decimal, .decimal128): return buffer.encode(.decimal(element.decimal))
        case (.uuid, .binary): return element.uuid.map { buffer.encode(.uuid($0)) }
        case (.binary, .binary): return buffer.stored(.binary, element.content)
        default: return nil
        }
    }
}

extension RowBuffer {
    /// Returns the cell of bytes that are copied into the arena.
    @inline(__always)
    fileprivate mutating func stored(_ tag: CellTag, _ bytes: UnsafeRawBufferPointer) -> Cell {
        let cell = Cell(tag: tag, length: UInt32(truncatingIfNeeded: bytes.count), bits: UInt64(arena.count))
        arena.append(contentsOf: bytes)
        return cell
    }
}

/// Checks of text in place.
enum DocumentText {
    /// `true` for ASCII without NUL, eight bytes at a time, and for other well-formed UTF-8 without NUL.
    static func isPlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (low, high): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        var index = 0
        while index + 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            // A high bit means a byte beyond ASCII, or a NUL.
            if (word | (word &- low) & ~word) & high != 0 { return isWellFormed(bytes) }
            index += 8
        }
        while index < bytes.count {
            if bytes[index] == 0 || bytes[index] >= 0x80 { return isWellFormed(bytes) }
            index += 1
        }
        return true
    }

    private static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
        !bytes.contains(0) && String(validating: bytes, as: UTF8.self) != nil
    }
}
