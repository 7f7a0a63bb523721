import SluiceCore

/// The logical message with the write times of a changeset's objects. It precedes their rows in the WAL.
///
/// The times are opaque here. Each entry is a name (the class, a zero byte and the key's text) and the times. Both follow their
/// length in four bytes, little-endian.
enum WriteTimesMessage {
    static let prefix = "sluice-times"

    /// Returns the name of an entry: the class, a zero byte and the key's text.
    static func name(_ type: String, _ key: Value) -> String { "\(type)\0\(StoreText.key(key))" }

    static func encode(_ times: [(object: ObjectKey, times: [UInt8])]) -> [UInt8] {
        var bytes: [UInt8] = []
        for (object, times) in times {
            append(Array(name(object.type, object.key).utf8), to: &bytes)
            append(times, to: &bytes)
        }
        return bytes
    }

    private static func append(_ part: [UInt8], to bytes: inout [UInt8]) {
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: part.count >> shift)) }
        bytes.append(contentsOf: part)
    }

    /// Returns the times by `name`. If the message is damaged, the result has as much as can be read.
    static func decode(_ bytes: [UInt8]) -> [String: ArraySlice<UInt8>] {
        var times: [String: ArraySlice<UInt8>] = [:]
        var rest = bytes[...]
        while let name = part(&rest), let value = part(&rest) { times[String(decoding: name, as: UTF8.self)] = value }
        return times
    }

    private static func part(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard rest.count >= 4 else { return nil }
        let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(4)
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}
