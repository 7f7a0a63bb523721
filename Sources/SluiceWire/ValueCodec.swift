package import SluiceCore
import SluiceValues

/// A hand-written codec of the `Value` message, for owning values. `RowCodec` does the same for rows in place.
package enum ValueCodec {
    /// Appends the content of a `Value` message, without key and length.
    package static func encode(_ value: Value, into writer: inout ByteWriter) {
        switch value {
        case .null: writer.field(ValueKind.null.rawValue, varint: 1)
        case .bool(let v): writer.field(ValueKind.bool.rawValue, varint: v ? 1 : 0)
        case .int(let v): writer.field(ValueKind.int.rawValue, varint: ByteWriter.zigzag(v))
        case .float(let v): writer.kind(.float, fixed32: v.bitPattern)
        case .double(let v): writer.field(ValueKind.double.rawValue, fixed64: v.bitPattern)
        case .decimal(let v): writer.kind(.decimal, high: v.high, low: v.low)
        case .string(let v): writer.field(ValueKind.string.rawValue, string: v)
        case .binary(let v): writer.field(ValueKind.binary.rawValue, bytes: v)
        case .timestamp(let v): writer.timestamp(v)
        case .objectId(let v): writer.objectId(high: v.high, low: v.low)
        case .uuid(let v): writer.kind(.uuid, high: v.high, low: v.low)
        case .list(let elements):
            let content = writer.open(ValueKind.list.rawValue)
            for element in elements { nested(1, element, into: &writer) }
            writer.close(content)
        case .dictionary(let entries): dictionary(entries, into: &writer)
        case .link(let type, let key):
            let content = writer.open(ValueKind.link.rawValue)
            writer.ifNotEmpty(1, string: type)
            nested(2, key, into: &writer)
            writer.close(content)
        }
    }

    /// Returns the content of a `Value` message.
    package static func encode(_ value: Value) -> [UInt8] {
        var writer = ByteWriter()
        encode(value, into: &writer)
        return writer.take()
    }

    /// Appends a field that holds a `Value`.
    package static func nested(_ field: UInt32, _ value: Value, into writer: inout ByteWriter) {
        let content = writer.open(field)
        encode(value, into: &writer)
        writer.close(content)
    }

    private static func dictionary(_ entries: [String: Value], into writer: inout ByteWriter) {
        let content = writer.open(ValueKind.dictionary.rawValue)
        for (key, value) in entries.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            let entry = writer.open(1)
            writer.field(1, string: key)
            nested(2, value, into: &writer)
            writer.close(entry)
        }
        writer.close(content)
    }

    /// Decodes the content of a `Value` message.
    /// - Throws: `badSyntax` for malformed bytes, a value without a kind, or nesting beyond `Limits.nestingDepth`.
    package static func decode(_ bytes: UnsafeRawBufferPointer) throws(SluiceError) -> Value {
        var rows = RowBuffer()
        return try decode(WireReader(bytes), scratch: &rows)
    }

    package static func decode(_ bytes: [UInt8]) throws(SluiceError) -> Value {
        try bytes.withUnsafeBufferPointer { buffer throws(SluiceError) in try decode(UnsafeRawBufferPointer(buffer)) }
    }

    /// Decodes with a buffer of the caller's, for loops. Its former content is removed.
    package static func decode(_ reader: WireReader, scratch: inout RowBuffer) throws(SluiceError) -> Value {
        scratch.removeAll()
        var decoder = CellDecoder(arena: scratch.arena)
        scratch.arena = []
        let cell: Cell
        do throws(SluiceError) {
            cell = try decoder.cell(reader, shape: .any)
        } catch {
            scratch.arena = decoder.arena
            throw error
        }
        scratch.arena = decoder.arena
        scratch.append(cell)
        return scratch.withView(RowRef(start: 0, count: 1)) { $0.value(0) } ?? .null
    }
}

/// Kinds with a layout of their own.
extension ByteWriter {
    mutating func kind(_ kind: ValueKind, fixed32 value: UInt32) {
        tag(kind.rawValue, .fixed32)
        fixed32(value)
    }

    /// Appends two words, big-endian.
    mutating func kind(_ kind: ValueKind, high: UInt64, low: UInt64) {
        tag(kind.rawValue, .lengthDelimited)
        byte(16)
        fixed64(high.byteSwapped)
        fixed64(low.byteSwapped)
    }

    mutating func objectId(high: UInt64, low: UInt32) {
        tag(ValueKind.objectId.rawValue, .lengthDelimited)
        byte(12)
        fixed64(high.byteSwapped)
        fixed32(low.byteSwapped)
    }

    mutating func timestamp(_ value: Timestamp) {
        let content = open(ValueKind.timestamp.rawValue)
        ifNotZero(1, zigzag: value.seconds)
        // sint32 has a zigzag code of its own width. Sign-extended to 64 bits, both codes are equal.
        ifNotZero(2, zigzag: Int64(value.nanoseconds))
        close(content)
    }
}
