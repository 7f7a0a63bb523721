import SluiceCore

/// The bytes of stored clocks: integers little-endian or LEB128, each different stamp once.
struct ClockWriter {
    private(set) var bytes: [UInt8] = []
    private(set) var stamps: [WriteStamp] = []
    private var places: [WriteStamp: UInt64] = [:]

    /// Writes the index of a stamp in the table.
    mutating func stamp(_ stamp: WriteStamp) {
        if let place = places[stamp] { return number(place) }
        places[stamp] = UInt64(stamps.count)
        number(UInt64(stamps.count))
        stamps.append(stamp)
    }

    mutating func text(_ text: String) {
        number(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    /// Writes the stamp table of another writer.
    mutating func table(of other: ClockWriter) {
        number(UInt64(other.stamps.count))
        for stamp in other.stamps {
            fixed(stamp.time.rawValue)
            number(stamp.client.rawValue)
        }
    }

    mutating func append(_ other: ClockWriter) { bytes.append(contentsOf: other.bytes) }

    mutating func byte(_ byte: UInt8) { bytes.append(byte) }

    mutating func fixed(_ value: UInt64) {
        for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func number(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

struct ClockReader {
    private let bytes: [UInt8]
    private var position = 0
    /// The stamp table. Empty before `readTable`.
    var stamps: [WriteStamp] = []

    init(bytes: [UInt8]) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }
    var damaged: SluiceError { SluiceError(.internalError, "The clocks of an object are damaged at byte \(position).") }

    mutating func byte() throws(SluiceError) -> UInt8 {
        guard position < bytes.count else { throw damaged }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func fixed() throws(SluiceError) -> UInt64 {
        guard bytes.count - position >= 8 else { throw damaged }
        defer { position += 8 }
        return bytes[position..<position + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    mutating func number() throws(SluiceError) -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            let byte = try self.byte()
            // The tenth byte has only the top bit of 64.
            if shift == 63, byte > 1 { throw damaged }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw damaged
    }

    mutating func readTable() throws(SluiceError) {
        for _ in 0..<(try count(of: 9)) {
            let time = HybridTime(rawValue: try fixed())
            stamps.append(WriteStamp(time: time, client: ClientID(rawValue: try number())))
        }
    }

    /// Returns a count of items of at least `size` bytes each.
    mutating func count(of size: Int) throws(SluiceError) -> Int {
        let count = try number()
        // Damaged bytes must not cause a long loop or a large allocation.
        guard count <= UInt64((bytes.count - position) / size) else { throw damaged }
        return Int(count)
    }

    mutating func text() throws(SluiceError) -> String {
        let count = try self.count(of: 1)
        defer { position += count }
        return String(decoding: bytes[position..<position + count], as: UTF8.self)
    }

    mutating func stamp() throws(SluiceError) -> WriteStamp {
        let index = try number()
        guard index < UInt64(stamps.count) else { throw damaged }
        return stamps[Int(index)]
    }
}
