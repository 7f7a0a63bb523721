package import SluiceCore

/// The stored form: about nine bytes for a property and ten for each different stamp.
///
/// Version byte 1, flag byte, stamp table, then creation, deletion and properties, which name stamps by their index in the
/// table. Counts, numbers and indices are LEB128; hashes, times and LSNs are eight bytes, little-endian.
extension ObjectClocks {
    private static let version: UInt8 = 1

    private enum Flag {
        static let created: UInt8 = 1
        static let deletion: UInt8 = 2
        static let isDeleted: UInt8 = 4
    }

    private enum PropertyFlag {
        static let isDefault: UInt8 = 1
        static let additions: UInt8 = 2
    }

    package var encoded: [UInt8] {
        let ordered = properties.sorted { $0.key < $1.key }
        var stamps = StampTable()
        if let created { stamps.note(created) }
        if let deletion { stamps.note(deletion.stamp) }
        for (_, clock) in ordered {
            stamps.note(clock.stamp)
            for addition in clock.additions { stamps.note(addition.stamp) }
        }
        var writer = ByteWriter()
        writer.byte(ObjectClocks.version)
        writer.byte(
            (created == nil ? 0 : Flag.created) | (deletion == nil ? 0 : Flag.deletion) | (isDeleted ? Flag.isDeleted : 0))
        writer.number(UInt64(stamps.all.count))
        for stamp in stamps.all {
            writer.fixed(stamp.time.rawValue)
            writer.number(stamp.client.rawValue)
        }
        if let created { writer.number(stamps.index(of: created)) }
        if let deletion {
            writer.number(stamps.index(of: deletion.stamp))
            writer.fixed(deletion.lsn.rawValue)
        }
        writer.number(UInt64(ordered.count))
        for (id, clock) in ordered {
            writer.number(UInt64(id))
            ObjectClocks.write(clock, stamps: stamps, into: &writer)
        }
        return writer.bytes
    }

    private static func write(_ clock: PropertyClock, stamps: StampTable, into writer: inout ByteWriter) {
        writer.byte((clock.isDefault ? PropertyFlag.isDefault : 0) | (clock.additions.isEmpty ? 0 : PropertyFlag.additions))
        writer.number(stamps.index(of: clock.stamp))
        writer.fixed(clock.valueHash.rawValue)
        guard !clock.additions.isEmpty else { return }
        writer.number(UInt64(clock.additions.count))
        for addition in clock.additions {
            writer.number(stamps.index(of: addition.stamp))
            writer.fixed(UInt64(bitPattern: addition.amount))
        }
    }

    /// - Throws: `internalError` when the bytes are damaged or of a later version.
    package init(encoded bytes: [UInt8]) throws(SluiceError) {
        var reader = ByteReader(bytes: bytes)
        let version = try reader.byte()
        guard version == ObjectClocks.version else {
            throw SluiceError(
                .internalError, "The clocks of an object have version \(version), this release knows \(ObjectClocks.version).",
                fix: "Run the release that wrote them, or a newer one.")
        }
        let flags = try reader.byte()
        var stamps: [WriteStamp] = []
        for _ in 0..<(try reader.count(of: 9)) {
            let time = HybridTime(rawValue: try reader.fixed())
            stamps.append(WriteStamp(time: time, client: ClientID(rawValue: try reader.number())))
        }
        self.init(isDeleted: flags & Flag.isDeleted != 0)
        if flags & Flag.created != 0 { created = try reader.element(of: stamps) }
        if flags & Flag.deletion != 0 {
            let stamp = try reader.element(of: stamps)
            deletion = Deletion(stamp: stamp, lsn: LSN(rawValue: try reader.fixed()))
        }
        for _ in 0..<(try reader.count(of: 11)) {
            guard let id = UInt32(exactly: try reader.number()) else { throw reader.damaged }
            properties[id] = try ObjectClocks.clock(&reader, stamps: stamps)
        }
        guard reader.isAtEnd else { throw reader.damaged }
    }

    private static func clock(_ reader: inout ByteReader, stamps: [WriteStamp]) throws(SluiceError) -> PropertyClock {
        let flags = try reader.byte()
        let stamp = try reader.element(of: stamps)
        let hash = ValueHash(rawValue: try reader.fixed())
        var clock = PropertyClock(stamp: stamp, isDefault: flags & PropertyFlag.isDefault != 0, valueHash: hash)
        guard flags & PropertyFlag.additions != 0 else { return clock }
        for _ in 0..<(try reader.count(of: 9)) {
            let stamp = try reader.element(of: stamps)
            clock.additions.append(PropertyClock.Addition(stamp: stamp, amount: Int64(bitPattern: try reader.fixed())))
        }
        return clock
    }
}

/// Each different stamp once, in the order met.
private struct StampTable {
    private(set) var all: [WriteStamp] = []
    private var places: [WriteStamp: UInt64] = [:]

    mutating func note(_ stamp: WriteStamp) {
        guard places[stamp] == nil else { return }
        places[stamp] = UInt64(all.count)
        all.append(stamp)
    }

    func index(of stamp: WriteStamp) -> UInt64 { places[stamp] ?? 0 }
}

private struct ByteWriter {
    var bytes: [UInt8] = []

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

private struct ByteReader {
    let bytes: [UInt8]
    var position = 0

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
            if shift == 63, byte > 1 { throw damaged }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
        }
        throw damaged
    }

    /// A count of things that have at least `size` bytes each.
    mutating func count(of size: Int) throws(SluiceError) -> Int {
        let count = try number()
        guard count <= UInt64((bytes.count - position) / size) else { throw damaged }
        return Int(count)
    }

    mutating func element(of stamps: [WriteStamp]) throws(SluiceError) -> WriteStamp {
        let index = try number()
        guard index < UInt64(stamps.count) else { throw damaged }
        return stamps[Int(index)]
    }
}
