package import SluiceCore
import SluiceValues

extension ValueCodec {
    /// Appends the content of a `Value` message for a cell read in place. Containers are transcoded from the row's arena without building
    /// values. An absent cell, or a container with a malformed arena, is written as null.
    package static func encode(_ cell: Cell, of row: RowView, into writer: inout ByteWriter) {
        switch cell.tag {
        case .absent, .null: writer.field(ValueKind.null.rawValue, varint: 1)
        case .bool: writer.field(ValueKind.bool.rawValue, varint: cell.bits != 0 ? 1 : 0)
        case .int: writer.field(ValueKind.int.rawValue, varint: ByteWriter.zigzag(Int64(bitPattern: cell.bits)))
        case .float: writer.kind(.float, fixed32: UInt32(truncatingIfNeeded: cell.bits))
        case .double: writer.field(ValueKind.double.rawValue, fixed64: cell.bits)
        case .timestamp:
            writer.timestamp(Timestamp(seconds: Int64(bitPattern: cell.bits), nanoseconds: Int32(bitPattern: cell.length)))
        case .objectId: writer.objectId(high: cell.bits, low: cell.length)
        case .decimal: writer.field(ValueKind.decimal.rawValue, bytes: UnsafeRawBufferPointer(row.bytes(of: cell)))
        case .string: writer.field(ValueKind.string.rawValue, bytes: UnsafeRawBufferPointer(row.bytes(of: cell)))
        case .binary: writer.field(ValueKind.binary.rawValue, bytes: UnsafeRawBufferPointer(row.bytes(of: cell)))
        case .uuid: writer.field(ValueKind.uuid.rawValue, bytes: UnsafeRawBufferPointer(row.bytes(of: cell)))
        case .list, .dictionary, .link:
            let start = writer.count
            var arena = ArenaReader(UnsafeRawBufferPointer(row.bytes(of: cell)))
            if !arena.transcode(cell.tag, depth: 0, into: &writer) {
                writer.truncate(to: start)
                writer.field(ValueKind.null.rawValue, varint: 1)
            }
        }
    }
}

/// Transcodes a container from the arena's encoding (`ValueCoding`: tag bytes, little-endian integers, 32-bit counts) to Protobuf. Each
/// step returns `false` if the bytes are malformed.
private struct ArenaReader {
    let bytes: UnsafeRawBufferPointer
    var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count <= bytes.count - position else { return nil }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    mutating func fixed<T: FixedWidthInteger & BitwiseCopyable>(_: T.Type) -> T? {
        take(MemoryLayout<T>.size).map { T(littleEndian: $0.loadUnaligned(as: T.self)) }
    }

    mutating func counted() -> UnsafeRawBufferPointer? {
        guard let count = fixed(UInt32.self) else { return nil }
        return take(Int(count))
    }

    /// Transcodes a nested value with its tag, as field `number`.
    mutating func element(_ number: UInt32, depth: Int, into writer: inout ByteWriter) -> Bool {
        guard depth < Limits.nestingDepth, let byte = take(1)?.first, let tag = CellTag(rawValue: byte) else { return false }
        let content = writer.open(number)
        guard transcode(tag, depth: depth + 1, into: &writer) else { return false }
        writer.close(content)
        return true
    }

    mutating func transcode(_ tag: CellTag, depth: Int, into writer: inout ByteWriter) -> Bool {
        switch tag {
        case .absent: return false
        case .null: writer.field(ValueKind.null.rawValue, varint: 1)
        case .list: return list(depth: depth, into: &writer)
        case .dictionary: return dictionary(depth: depth, into: &writer)
        case .link: return link(depth: depth, into: &writer)
        case .string, .binary:
            guard let content = counted() else { return false }
            writer.field(tag == .string ? ValueKind.string.rawValue : ValueKind.binary.rawValue, bytes: content)
        case .decimal, .uuid:
            guard let content = take(16) else { return false }
            writer.field(tag == .uuid ? ValueKind.uuid.rawValue : ValueKind.decimal.rawValue, bytes: content)
        case .objectId:
            guard let content = take(12) else { return false }
            writer.field(ValueKind.objectId.rawValue, bytes: content)
        case .bool, .int, .float, .double, .timestamp: return scalar(tag, into: &writer)
        }
        return true
    }

    private mutating func scalar(_ tag: CellTag, into writer: inout ByteWriter) -> Bool {
        switch tag {
        case .bool:
            guard let v = take(1)?.first else { return false }
            writer.field(ValueKind.bool.rawValue, varint: v != 0 ? 1 : 0)
        case .int:
            guard let v = fixed(Int64.self) else { return false }
            writer.field(ValueKind.int.rawValue, varint: ByteWriter.zigzag(v))
        case .float:
            guard let v = fixed(UInt32.self) else { return false }
            writer.kind(.float, fixed32: v)
        case .double:
            guard let v = fixed(UInt64.self) else { return false }
            writer.field(ValueKind.double.rawValue, fixed64: v)
        case .timestamp:
            guard let seconds = fixed(Int64.self), let nanoseconds = fixed(Int32.self) else { return false }
            writer.timestamp(Timestamp(seconds: seconds, nanoseconds: nanoseconds))
        default: return false
        }
        return true
    }

    private mutating func list(depth: Int, into writer: inout ByteWriter) -> Bool {
        guard let count = fixed(UInt32.self), Int(count) <= bytes.count - position else { return false }
        let content = writer.open(ValueKind.list.rawValue)
        for _ in 0..<count {
            guard element(1, depth: depth, into: &writer) else { return false }
        }
        writer.close(content)
        return true
    }

    private mutating func dictionary(depth: Int, into writer: inout ByteWriter) -> Bool {
        guard let count = fixed(UInt32.self), Int(count) <= bytes.count - position else { return false }
        let content = writer.open(ValueKind.dictionary.rawValue)
        for _ in 0..<count {
            guard let key = counted() else { return false }
            let entry = writer.open(1)
            writer.field(1, bytes: key)
            guard element(2, depth: depth, into: &writer) else { return false }
            writer.close(entry)
        }
        writer.close(content)
        return true
    }

    private mutating func link(depth: Int, into writer: inout ByteWriter) -> Bool {
        guard let type = counted() else { return false }
        let content = writer.open(ValueKind.link.rawValue)
        if !type.isEmpty { writer.field(1, bytes: type) }
        guard element(2, depth: depth, into: &writer) else { return false }
        writer.close(content)
        return true
    }
}
