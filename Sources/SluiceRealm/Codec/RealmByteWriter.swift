package import SluiceCore
import SluiceValues

/// Writes the parts of a changeset that need no table of strings. `RealmByteReader` has the form of integers.
struct RealmByteWriter {
    private(set) var bytes: [UInt8] = []

    mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }

    /// Removes the bytes and keeps the capacity.
    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// Removes everything after the first `count` bytes.
    mutating func truncate(to count: Int) { bytes.removeSubrange(count...) }

    /// Writes the bytes of another writer.
    mutating func raw(_ other: RealmByteWriter) { bytes.append(contentsOf: other.bytes) }

    mutating func integer(_ value: Int64) {
        // Most integers have one byte.
        if value >= 0, value < 0x40 { return bytes.append(UInt8(truncatingIfNeeded: value)) }
        unsigned(UInt64(bitPattern: value < 0 ? ~value : value), isNegative: value < 0)
    }

    private mutating func unsigned(_ value: some UnsignedInteger & FixedWidthInteger, isNegative: Bool) {
        var rest = value
        while rest >> 6 != 0 {
            bytes.append(0x80 | UInt8(truncatingIfNeeded: rest & 0x7F))
            rest >>= 7
        }
        bytes.append((isNegative ? 0x40 : 0) | UInt8(truncatingIfNeeded: rest))
    }

    /// Writes a length and the bytes.
    private mutating func counted(_ content: [UInt8]) {
        integer(Int64(content.count))
        bytes += content
    }

    /// Writes a length in bytes and the text.
    mutating func counted(_ text: String) {
        integer(Int64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func type(_ tag: RealmTypeTag) { integer(tag.rawValue) }

    /// Writes a primary key of any type except string.
    /// - Throws: `internalError` for another value.
    mutating func key(_ key: Value) throws(SluiceError) {
        switch key {
        case .null, .int, .objectId, .uuid: try value(key)
        default: throw RealmChangesetWriter.failure("a primary key is of the type '\(key.typeName)'")
        }
    }

    /// Writes null or a scalar.
    /// - Throws: `internalError` for a collection or a link.
    mutating func value(_ value: Value) throws(SluiceError) {
        switch value {
        case .null: type(.null)
        case .bool(let value): number(.bool, value ? 1 : 0)
        case .int(let value): number(.int, value)
        case .float(let value): word(.float, value.bitPattern)
        case .double(let value): word(.double, value.bitPattern)
        case .decimal(let value): decimal(value)
        case .string(let value):
            type(.string)
            counted(value)
        case .binary(let value):
            type(.binary)
            counted(value)
        case .timestamp(let value):
            number(.timestamp, value.seconds)
            integer(Int64(value.nanoseconds))
        case .objectId(let value): raw(.objectId, value.bytes)
        case .uuid(let value): raw(.uuid, value.bytes)
        case .list, .dictionary, .link: throw RealmChangesetWriter.failure("a value is of the type '\(value.typeName)'")
        }
    }

    /// Writes a scalar from its cell.
    /// - Returns: `false` for null, a collection or a link. Nothing is written then.
    mutating func value(_ cell: Cell, of row: RowView) -> Bool {
        switch cell.tag {
        case .bool: number(.bool, cell.bits != 0 ? 1 : 0)
        case .int: number(.int, Int64(bitPattern: cell.bits))
        case .float: word(.float, UInt32(truncatingIfNeeded: cell.bits))
        case .double: word(.double, cell.bits)
        case .decimal: decimal(Decimal128(bytes: row.bytes(of: cell)))
        case .string: counted(.string, row.bytes(of: cell))
        case .binary: counted(.binary, row.bytes(of: cell))
        case .timestamp:
            number(.timestamp, Int64(bitPattern: cell.bits))
            integer(Int64(Int32(bitPattern: cell.length)))
        case .objectId: raw(.objectId, ObjectIdentifierBytes(high: cell.bits, low: cell.length).bytes)
        case .uuid:
            type(.uuid)
            bytes.append(contentsOf: row.bytes(of: cell))
        case .absent, .null, .list, .dictionary, .link: return false
        }
        return true
    }

    private mutating func counted(_ tag: RealmTypeTag, _ content: UnsafeBufferPointer<UInt8>) {
        type(tag)
        integer(Int64(content.count))
        bytes.append(contentsOf: content)
    }

    private mutating func number(_ tag: RealmTypeTag, _ value: Int64) {
        type(tag)
        integer(value)
    }

    private mutating func raw(_ tag: RealmTypeTag, _ content: [UInt8]) {
        type(tag)
        bytes += content
    }

    /// Writes a word, little-endian.
    private mutating func word<Word: FixedWidthInteger>(_ tag: RealmTypeTag, _ word: Word) {
        type(tag)
        withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func decimal(_ value: Decimal128) {
        let (coefficient, exponent, isNegative) = value.realmParts
        type(.decimal)
        unsigned(coefficient, isNegative: false)
        integer(exponent)
        integer(isNegative ? 1 : 0)
    }
}

/// A primary key outside of a changeset, as error messages to clients name it.
package enum RealmKeyForm {
    /// Returns the Base64 of the key's type and value. A string has its length before it.
    /// - Throws: `internalError` for a value that is no primary key.
    package static func base64(_ key: Value) throws(SluiceError) -> String {
        var writer = RealmByteWriter()
        if case .string = key { try writer.value(key) } else { try writer.key(key) }
        return Base64.encode(writer.bytes)
    }
}
