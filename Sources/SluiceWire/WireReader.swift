package import SluiceCore

/// Reads Protobuf fields in place from borrowed bytes. Every access is bounds-checked. Malformed input throws `badSyntax` and never
/// traps.
///
/// Returned ranges are offsets into `buffer`, also those of a nested reader. A caller can keep them and slice the same bytes later.
package struct WireReader {
    package let buffer: UnsafeRawBufferPointer
    package private(set) var position: Int
    package let end: Int

    package init(_ buffer: UnsafeRawBufferPointer) {
        self.init(buffer, 0..<buffer.count)
    }

    /// - Precondition: `range` is within `buffer`.
    package init(_ buffer: UnsafeRawBufferPointer, _ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= buffer.count, "the range \(range) is outside the buffer")
        self.buffer = buffer
        position = range.lowerBound
        end = range.upperBound
    }

    package var isAtEnd: Bool { position >= end }

    /// Returns the bytes of a range that this reader returned.
    package func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[range]) }

    package func nested(_ range: Range<Int>) -> WireReader { WireReader(buffer, range) }
}

extension WireReader {
    package struct Tag: Hashable {
        package var field: UInt32
        package var type: WireType

        package init(field: UInt32, type: WireType) {
            self.field = field
            self.type = type
        }
    }

    package mutating func varint() throws(SluiceError) -> UInt64 {
        if position < end, buffer[position] < 0x80 {
            defer { position += 1 }
            return UInt64(buffer[position])
        }
        return try longVarint()
    }

    private mutating func longVarint() throws(SluiceError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < end {
            let byte = buffer[position]
            position += 1
            if shift == 63, byte > 1 { throw .malformed("a varint has more than 64 bits") }
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw .malformed("a varint is cut off")
    }

    package mutating func zigzag() throws(SluiceError) -> Int64 {
        let value = try varint()
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }

    package mutating func fixed64() throws(SluiceError) -> UInt64 {
        guard end - position >= 8 else { throw .malformed("a fixed64 is cut off") }
        defer { position += 8 }
        return UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }

    package mutating func fixed32() throws(SluiceError) -> UInt32 {
        guard end - position >= 4 else { throw .malformed("a fixed32 is cut off") }
        defer { position += 4 }
        return UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: position, as: UInt32.self))
    }

    package mutating func tag() throws(SluiceError) -> Tag {
        let key = try varint()
        guard key <= UInt64(UInt32.max), key >> 3 > 0 else { throw .malformed("\(key) is no field key") }
        guard let type = WireType(rawValue: UInt8(key & 7)) else { throw .malformed("wire type \(key & 7) is not in use") }
        return Tag(field: UInt32(key >> 3), type: type)
    }

    /// Reads a field of a key and a number that have one byte each; nil if the next bytes are others.
    mutating func small(_ key: UInt8) -> UInt8? {
        guard end - position >= 2, buffer[position] == key, buffer[position + 1] < 0x80 else { return nil }
        position += 2
        return buffer[position - 1]
    }

    /// Reads a key of one byte. Returns `false` if the next byte is another.
    mutating func next(_ key: UInt8) -> Bool {
        guard position < end, buffer[position] == key else { return false }
        position += 1
        return true
    }

    /// Reads a length-delimited field and returns its content as a range of `buffer`.
    package mutating func content() throws(SluiceError) -> Range<Int> {
        let length = try varint()
        guard length <= UInt64(end - position) else { throw .malformed("a field of \(length) bytes is cut off") }
        let start = position
        position += Int(length)
        return start..<position
    }

    package mutating func skip(_ type: WireType) throws(SluiceError) {
        switch type {
        case .varint: _ = try varint()
        case .fixed64: _ = try fixed64()
        case .fixed32: _ = try fixed32()
        case .lengthDelimited: _ = try content()
        }
    }

    /// Checks that a field of a known number has the format's wire type.
    package func expect(_ tag: Tag, _ type: WireType) throws(SluiceError) {
        if tag.type != type { throw .malformed("field \(tag.field) is a \(tag.type), not a \(type)") }
    }

    /// Reads a string and returns its bytes, which are valid UTF-8.
    package mutating func text() throws(SluiceError) -> Range<Int> {
        let range = try content()
        try checkText(range)
        return range
    }

    package mutating func string() throws(SluiceError) -> String {
        let range = try text()
        return String(decoding: slice(range), as: UTF8.self)
    }

    private func checkText(_ range: Range<Int>) throws(SluiceError) {
        let bytes = slice(range).bindMemory(to: UInt8.self)
        do {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            throw .malformed("a string of \(range.count) bytes is not UTF-8")
        }
    }
}

extension SluiceError {
    /// An error for bytes of a peer, the log or a file that are no valid message.
    package static func malformed(_ what: String) -> SluiceError { SluiceError(.badSyntax, "Malformed message: \(what).") }
}
