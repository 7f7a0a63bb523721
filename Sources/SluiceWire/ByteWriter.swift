/// How a Protobuf field's content is laid out. Groups (3 and 4) are not part of the published formats.
package enum WireType: UInt8, Sendable {
    case varint = 0
    case fixed64 = 1
    case lengthDelimited = 2
    case fixed32 = 5
}

/// A growing buffer of Protobuf fields, reused from message to message so that the steady state allocates nothing.
///
/// Nested messages are written between `open` and `close`: one byte is kept for the length, and content longer than 127
/// bytes is moved by the missing ones, so the result is the shortest encoding, byte for byte the generated code's.
package struct ByteWriter: Sendable {
    package private(set) var bytes: [UInt8] = []

    /// - Parameter capacity: bytes to reserve at once.
    package init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    package var count: Int { bytes.count }

    /// Forgets the content and keeps the capacity.
    package mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// Takes back everything after the first `count` bytes.
    package mutating func truncate(to count: Int) { bytes.removeSubrange(count...) }

    /// Hands the content over and starts empty.
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

    /// Keeps the place of a nested message's length. - Returns: where its content starts, for `close`.
    package mutating func open(_ field: UInt32) -> Int {
        tag(field, .lengthDelimited)
        bytes.append(0)
        return bytes.count
    }

    /// Fills in the length of the message that `open` began.
    package mutating func close(_ start: Int) {
        let length = bytes.count - start
        if length < 0x80 {
            bytes[start - 1] = UInt8(length)
        } else {
            widen(start, length: length)
        }
    }

    private mutating func widen(_ start: Int, length: Int) {
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

    /// Bytes that a varint takes: 1 to 10.
    package static func size(ofVarint value: UInt64) -> Int {
        value == 0 ? 1 : (70 - value.leadingZeroBitCount) / 7
    }

    /// Zigzag: small numbers of either sign get small codes.
    package static func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: (value << 1) ^ (value >> 63)) }
}

/// Whole fields. Those with `ifNotZero` follow proto3's rule that a plain field with its default is left out.
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
