import SluiceCore
import SluiceValues

/// Decodes `Value` messages into cells. Content that does not fit a cell goes to the arena in the arena's encoding. Elements of
/// containers are transcoded the same way, so no `Value` is built.
struct CellDecoder {
    var arena: [UInt8]

    /// Decodes one value.
    /// - Throws: `badSyntax` for malformed bytes, `wrongValueType` for a kind that `shape` does not accept.
    mutating func cell(_ reader: WireReader, shape: ValueShape) throws(SluiceError) -> Cell {
        if let cell = try CellDecoder.scalar(reader, shape: shape) {
            guard cell.tag.isInArena else { return cell }
            let start = Int(cell.bits)
            return stored(cell.tag, reader.slice(start..<start + Int(cell.length)))
        }
        let (kind, place) = try CellDecoder.kind(of: reader)
        var field = WireReader(reader.buffer, place..<reader.end)
        let start = arena.count
        try container(kind, field.nested(try field.content()), elements: shape.elements, depth: 0)
        return Cell(tag: CellDecoder.tag(of: kind), length: UInt32(arena.count - start), bits: UInt64(start))
    }

    /// Decodes a scalar in place: the cell of a text, a binary, a UUID or a decimal refers to the buffer of the reader.
    /// - Returns: Nil for a container or a link.
    /// - Throws: `badSyntax` for malformed bytes, `wrongValueType` for a kind that `shape` does not accept.
    static func scalar(_ reader: WireReader, shape: ValueShape) throws(SluiceError) -> Cell? {
        let (kind, place) = try CellDecoder.kind(of: reader)
        guard shape.value.contains(kind) else { throw CellDecoder.wrong(kind) }
        var field = WireReader(reader.buffer, place..<reader.end)
        switch kind {
        case .null: return .null
        case .bool: return Cell(tag: .bool, bits: try field.varint() == 0 ? 0 : 1)
        case .int: return Cell(tag: .int, bits: UInt64(bitPattern: try field.zigzag()))
        case .float: return Cell(tag: .float, bits: UInt64(try field.fixed32()))
        case .double: return Cell(tag: .double, bits: try field.fixed64())
        case .timestamp:
            let time = try CellDecoder.timestamp(field.nested(try field.content()))
            return Cell(tag: .timestamp, length: UInt32(bitPattern: time.nanoseconds), bits: UInt64(bitPattern: time.seconds))
        case .objectId:
            let content = field.slice(try field.exactly(12))
            return Cell(
                tag: .objectId, length: UInt32(bigEndian: content.loadUnaligned(fromByteOffset: 8, as: UInt32.self)),
                bits: UInt64(bigEndian: content.loadUnaligned(as: UInt64.self)))
        case .decimal: return placed(.decimal, try field.exactly(16))
        case .uuid: return placed(.uuid, try field.exactly(16))
        case .string: return placed(.string, try field.text())
        case .binary: return placed(.binary, try field.content())
        case .list, .dictionary, .link: return nil
        }
    }

    private static func placed(_ tag: CellTag, _ range: Range<Int>) -> Cell {
        Cell(tag: tag, length: UInt32(range.count), bits: UInt64(range.lowerBound))
    }

    private mutating func stored(_ tag: CellTag, _ content: UnsafeRawBufferPointer) -> Cell {
        defer { arena.append(contentsOf: content) }
        return Cell(tag: tag, length: UInt32(content.count), bits: UInt64(arena.count))
    }

    /// Returns the kind of a value and the offset of its content. If several are present, the last one counts, as with every oneof.
    private static func kind(of reader: WireReader) throws(SluiceError) -> (ValueKind, place: Int) {
        var reader = reader
        var found: (ValueKind, place: Int)?
        while !reader.isAtEnd {
            let tag = try reader.tag()
            if let kind = ValueKind(rawValue: tag.field) {
                try reader.expect(tag, kind.wireType)
                found = (kind, reader.position)
            }
            try reader.skip(tag.type)
        }
        guard let found else { throw .malformed("a value is empty") }
        return found
    }

    private static func wrong(_ kind: ValueKind) -> SluiceError {
        SluiceError(.wrongValueType, "A value is a \(kind), which its property does not take.")
    }

    static func timestamp(_ reader: WireReader) throws(SluiceError) -> Timestamp {
        var reader = reader
        var (seconds, nanoseconds): (Int64, Int64) = (0, 0)
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .varint): seconds = try reader.zigzag()
            case (2, .varint): nanoseconds = try reader.zigzag()
            default: try reader.skip(tag.type)
            }
        }
        return try Timestamp(ofWire: seconds, nanoseconds)
    }

    static func tag(of kind: ValueKind) -> CellTag {
        switch kind {
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

/// Values inside containers, in the arena's encoding.
extension CellDecoder {
    private mutating func fixed(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { arena.append(contentsOf: $0) }
    }

    private mutating func counted(_ content: UnsafeRawBufferPointer) {
        fixed(UInt32(content.count))
        arena.append(contentsOf: content)
    }

    private mutating func element(_ reader: WireReader, takes: ValueKinds, depth: Int) throws(SluiceError) {
        guard depth < Limits.nestingDepth else { throw .malformed("a value is nested deeper than \(Limits.nestingDepth) levels") }
        let (kind, place) = try CellDecoder.kind(of: reader)
        guard takes.contains(kind) else { throw CellDecoder.wrong(kind) }
        arena.append(CellDecoder.tag(of: kind).rawValue)
        var field = WireReader(reader.buffer, place..<reader.end)
        switch kind {
        case .null: break
        case .bool: arena.append(try field.varint() == 0 ? 0 : 1)
        case .int: fixed(try field.zigzag())
        case .float: fixed(try field.fixed32())
        case .double: fixed(try field.fixed64())
        case .timestamp:
            let time = try CellDecoder.timestamp(field.nested(try field.content()))
            fixed(time.seconds)
            fixed(time.nanoseconds)
        case .objectId: arena.append(contentsOf: field.slice(try field.exactly(12)))
        case .decimal, .uuid: arena.append(contentsOf: field.slice(try field.exactly(16)))
        case .string: counted(field.slice(try field.text()))
        case .binary: counted(field.slice(try field.content()))
        case .list, .dictionary, .link:
            try container(kind, field.nested(try field.content()), elements: .any, depth: depth + 1)
        }
    }

    private mutating func container(_ kind: ValueKind, _ reader: WireReader, elements: ValueKinds, depth: Int) throws(SluiceError) {
        switch kind {
        case .list: try list(reader, elements: elements, depth: depth)
        case .dictionary: try dictionary(reader, elements: elements, depth: depth)
        default: try link(reader, depth: depth)
        }
    }

    private mutating func list(_ reader: WireReader, elements: ValueKinds, depth: Int) throws(SluiceError) {
        var reader = reader
        // The count is patched in after the elements: their number is unknown until the message ends.
        let place = arena.count
        fixed(UInt32(0))
        var count: UInt32 = 0
        while !reader.isAtEnd {
            let tag = try reader.tag()
            guard tag.field == 1 else {
                try reader.skip(tag.type)
                continue
            }
            try reader.expect(tag, .lengthDelimited)
            try element(reader.nested(try reader.content()), takes: elements, depth: depth)
            count += 1
        }
        patch(place, count)
    }

    private mutating func dictionary(_ reader: WireReader, elements: ValueKinds, depth: Int) throws(SluiceError) {
        var reader = reader
        let place = arena.count
        fixed(UInt32(0))
        var count: UInt32 = 0
        var previous: Range<Int>?
        var isAscending = true
        while !reader.isAtEnd {
            let tag = try reader.tag()
            guard tag.field == 1 else {
                try reader.skip(tag.type)
                continue
            }
            try reader.expect(tag, .lengthDelimited)
            let (key, value) = try entry(reader.nested(try reader.content()))
            if let previous { isAscending = isAscending && reader.slice(previous).lexicographicallyPrecedes(reader.slice(key)) }
            previous = key
            counted(reader.slice(key))
            try element(reader.nested(value), takes: elements, depth: depth)
            count += 1
        }
        patch(place, count)
        // Only an unsorted dictionary is decoded again; the common one stays in place.
        if !isAscending { try sort(from: place) }
    }

    private func entry(_ reader: WireReader) throws(SluiceError) -> (key: Range<Int>, value: Range<Int>) {
        var reader = reader
        var key = reader.position..<reader.position
        var value: Range<Int>?
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): key = try reader.text()
            case (2, .lengthDelimited): value = try reader.content()
            default: try reader.skip(tag.type)
            }
        }
        guard let value else { throw .malformed("a dictionary entry has no value") }
        return (key, value)
    }

    /// Sorts the entries and removes repeated keys. Other writers may send any order; in memory, keys ascend and are unique.
    private mutating func sort(from start: Int) throws(SluiceError) {
        let value = arena.withUnsafeBufferPointer { ValueCoding.decode(UnsafeBufferPointer(rebasing: $0[start...]), as: .dictionary) }
        guard let value else { throw .malformed("a dictionary is not well formed") }
        arena.removeSubrange(start...)
        arena.append(contentsOf: ValueCoding.encode(value))
    }

    private mutating func link(_ reader: WireReader, depth: Int) throws(SluiceError) {
        var reader = reader
        var type = reader.position..<reader.position
        var key: Range<Int>?
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): type = try reader.text()
            case (2, .lengthDelimited): key = try reader.content()
            default: try reader.skip(tag.type)
            }
        }
        guard let key else { throw .malformed("a link has no key") }
        counted(reader.slice(type))
        try element(reader.nested(key), takes: ValueKinds(.int, .string, .objectId, .uuid), depth: depth)
    }

    private mutating func patch(_ place: Int, _ count: UInt32) {
        arena.withUnsafeMutableBytes { $0.storeBytes(of: count.littleEndian, toByteOffset: place, as: UInt32.self) }
    }
}

extension WireReader {
    /// Reads the content of a field with a fixed length.
    mutating func exactly(_ count: Int) throws(SluiceError) -> Range<Int> {
        let range = try content()
        guard range.count == count else { throw .malformed("an identifier has \(range.count) bytes instead of \(count)") }
        return range
    }
}
