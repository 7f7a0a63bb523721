import SluiceCore

/// A message that contradicts its own format.
///
/// A type beside `PostgresError`: typed throws of 16 bytes keep the decoder of the WAL free of allocations and of copies of a large error.
package struct MalformedMessage: Error, Hashable, Sendable {
    package var reason: String
}

/// A reader of the big-endian fields of one message. It never reads past the message's end.
@safe
struct MessageReader {
    private var next: UnsafePointer<UInt8>?
    private(set) var left: Int

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe next = bytes.baseAddress
        left = bytes.count
    }

    @inline(__always)
    private mutating func take(_ count: Int) throws(MalformedMessage) -> UnsafePointer<UInt8> {
        guard count <= left, let start = unsafe next else {
            throw MalformedMessage(reason: "it ends \(count - left) bytes too early")
        }
        unsafe next = start + count
        left -= count
        return unsafe start
    }

    @inline(__always)
    mutating func byte() throws(MalformedMessage) -> UInt8 { unsafe try take(1).pointee }

    @inline(__always)
    mutating func uint16() throws(MalformedMessage) -> UInt16 {
        unsafe UInt16(bigEndian: UnsafeRawPointer(try take(2)).loadUnaligned(as: UInt16.self))
    }

    @inline(__always)
    mutating func uint32() throws(MalformedMessage) -> UInt32 {
        unsafe UInt32(bigEndian: UnsafeRawPointer(try take(4)).loadUnaligned(as: UInt32.self))
    }

    @inline(__always)
    mutating func uint64() throws(MalformedMessage) -> UInt64 {
        unsafe UInt64(bigEndian: UnsafeRawPointer(try take(8)).loadUnaligned(as: UInt64.self))
    }

    mutating func lsn() throws(MalformedMessage) -> LSN { LSN(rawValue: try uint64()) }

    @inline(__always)
    mutating func bytes(_ count: Int) throws(MalformedMessage) -> UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: try take(count), count: count)
    }

    /// Reads a text that ends in a zero byte.
    mutating func string() throws(MalformedMessage) -> String {
        guard let start = unsafe next else { throw MalformedMessage(reason: "a name has no end") }
        let rest = unsafe UnsafeBufferPointer(start: start, count: left)
        guard let length = unsafe rest.firstIndex(of: 0) else { throw MalformedMessage(reason: "a name has no end") }
        let text = unsafe String(decoding: rest[0..<length], as: UTF8.self)
        _ = unsafe try take(length + 1)
        return text
    }

    /// The unread bytes.
    var rest: UnsafeBufferPointer<UInt8> { unsafe UnsafeBufferPointer(start: next, count: left) }
}
