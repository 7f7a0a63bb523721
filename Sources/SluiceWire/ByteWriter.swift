/// The layout of a Protobuf field's content. The published formats use no groups (wire types 3 and 4).
package enum WireType: UInt8, Sendable {
    case varint = 0
    case fixed64 = 1
    case lengthDelimited = 2
    case fixed32 = 5
}

/// A growing buffer of Protobuf fields. Reuse it from message to message, so that the steady state allocates nothing.
///
/// Nested messages are written between `open` and `close`. `open` reserves one byte for the length. Content over 127 bytes is moved to
/// make room for a longer one. The result is the shortest encoding, byte for byte that of the generated code.
package struct ByteWriter: Sendable {
    package private(set) var bytes: [UInt8] = []

    /// - Parameter capacity: the bytes to reserve.
    package init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    package var count: Int { bytes.count }

    /// Removes the content and keeps the capacity.
    package mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// Removes everything after the first `count` bytes.
    package mutating func truncate(to count: Int) { bytes.removeSubrange(count...) }

    /// Returns the content and leaves the writer empty, without capacity.
    package mutating func take() -> [UInt8] {
        let taken = bytes
        bytes = []
        return taken
    }

    package func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try bytes.withUnsafeBufferPointer { buffer throws(E) in try body(UnsafeRawBufferPointer(buffer)) }
    }
}

extension ByteWriter {
    package mutating func byte(_ value: UInt8) { bytes.append(value) }

    package mutating func varint(_ value: UInt64) {
        if value < 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: value))
            return
        }
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    package mutating func fixed32(_ value: UInt32) {
        Swift.withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func fixed64(_ value: UInt64) {
        Swift.withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    package mutating func raw(_ content: UnsafeRawBufferPointer) { bytes.append(contentsOf: content) }
    package mutating func raw(_ content: [UInt8]) { bytes.append(contentsOf: content) }

    package mutating func tag(_ field: UInt32, _ type: WireType) {
        varint(UInt64(field) << 3 | UInt64(type.rawValue))
    }

    /// Begins a nested message and reserves a byte for its length. - Returns: the offset of its content, for `close`.
    package mutating func open(_ field: UInt32) -> Int {
        tag(field, .lengthDelimited)
        bytes.append(0)
        return bytes.count
    }

    /// Fills in the length of the message that `open` began. Messages close in reverse order.
    package mutating func close(_ start: Int) {
        let length = bytes.count - start
        if length < 0x80 {
            bytes[start - 1] = UInt8(length)
        } else {
            widen(start, length: length)
        }
    }

    private mutating func widen(_ start: Int, length: Int) {
        // One length byte is reserved already; a length of n bytes shifts the content by n - 1.
        let extra = ByteWriter.size(ofVarint: UInt64(length)) - 1
        bytes.append(contentsOf: repeatElement(0, count: extra))
        bytes.withUnsafeMutableBytes { buffer in
            guard let base = buffer.baseAddress else { return }
            (base + start + extra).copyMemory(from: base + start, byteCount: length)
            var rest = UInt64(length)
            for index in 0...extra {
                buffer[start - 1 + index] = UInt8(truncatingIfNeeded: rest & 0x7f) | (index == extra ? 0 : 0x80)
                rest >>= 7
            }
        }
    }

    /// Returns the size of a varint, 1 to 10 bytes.
    package static func size(ofVarint value: UInt64) -> Int {
        value == 0 ? 1 : (70 - value.leadingZeroBitCount) / 7
    }

    /// Returns the zigzag code of a number: small numbers of either sign get small codes.
    package static func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: (value << 1) ^ (value >> 63)) }
}

/// Whole fields. The `ifNot…` methods follow proto3 and omit a field that has its default.
extension ByteWriter {
    package mutating func field(_ number: UInt32, bytes content: UnsafeRawBufferPointer) {
        tag(number, .lengthDelimited)
        varint(UInt64(content.count))
        raw(content)
    }

    package mutating func field(_ number: UInt32, bytes content: [UInt8]) {
        content.withUnsafeBytes { field(number, bytes: $0) }
    }

    package mutating func field(_ number: UInt32, string: String) {
        var text = string
        text.withUTF8 { field(number, bytes: UnsafeRawBufferPointer($0)) }
    }

    package mutating func field(_ number: UInt32, varint value: UInt64) {
        tag(number, .varint)
        varint(value)
    }

    package mutating func field(_ number: UInt32, fixed64 value: UInt64) {
        tag(number, .fixed64)
        fixed64(value)
    }

    package mutating func ifNotZero(_ number: UInt32, varint value: UInt64) {
        if value != 0 { field(number, varint: value) }
    }

    package mutating func ifNotZero(_ number: UInt32, zigzag value: Int64) {
        if value != 0 { field(number, varint: ByteWriter.zigzag(value)) }
    }

    package mutating func ifNotZero(_ number: UInt32, fixed64 value: UInt64) {
        if value != 0 { field(number, fixed64: value) }
    }

    package mutating func ifNotEmpty(_ number: UInt32, string: String) {
        if !string.isEmpty { field(number, string: string) }
    }
}
