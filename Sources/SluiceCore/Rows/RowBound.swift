/// The largest row of one class, in bytes of a change log record. It follows the largest record that the class's topic accepts.
package struct RowBound: Hashable, Sendable {
    /// 0 to `Limits.rowBytes`.
    package let bytes: Int

    /// Creates the bound for a topic that accepts every record of the gateway.
    package init() { bytes = Limits.rowBytes }

    /// Creates the bound at which two rows and a frame fit into a record.
    /// - Parameter recordBytes: The size of the largest record that the topic accepts.
    package init(recordBytes: Int) { bytes = min(Limits.rowBytes, max(0, recordBytes - Limits.recordFrameBytes) / 2) }

    /// The smallest record bound, in bytes, that permits rows of `Limits.rowBytes`.
    package static let neededRecordBytes = 2 * Limits.rowBytes + Limits.recordFrameBytes

    /// The arena bytes up to which a row fits without measuring its values. In a record a value takes at most eight times its arena bytes
    /// and 24 more.
    package func unmeasuredBytes(properties: Int) -> Int { (bytes - 24 * properties) / 8 }

    /// The bound for messages: `9 MiB`, `480 KiB`, `100 bytes`.
    package var text: String {
        switch bytes {
        case let bytes where bytes >= 1 << 20 && bytes & (1 << 20 - 1) == 0: "\(bytes >> 20) MiB"
        case let bytes where bytes >= 1 << 10: "\(bytes >> 10) KiB"
        case let bytes: "\(bytes) bytes"
        }
    }
}

extension Value {
    /// An upper bound of the bytes that the value takes in a record of the change log.
    package var recordBytes: Int {
        switch self {
        case .null, .bool: 6
        case .int, .float, .double: 14
        case .decimal, .objectId, .uuid, .timestamp: 24
        case .string(let text): 14 + text.utf8.count
        case .binary(let bytes): 14 + bytes.count
        case .list(let elements): elements.reduce(14) { $0 + $1.recordBytes }
        case .dictionary(let entries): entries.reduce(14) { $0 + 14 + $1.key.utf8.count + $1.value.recordBytes }
        case .link(let type, let key): 28 + type.utf8.count + key.recordBytes
        }
    }
}

extension Row {
    /// An upper bound of the bytes that the row takes in a record of the change log. It also bounds groups of rows that are passed
    /// together.
    package var recordBytes: Int { values.reduce(0) { $0 + ($1?.recordBytes ?? 0) } }

    /// `true` if a record with two such rows may be too large for the change log.
    package func isLarger(than bound: RowBound) -> Bool { recordBytes > bound.bytes }
}

extension RowBuffer {
    /// `true` if a record with two such rows may be too large for the change log.
    package func isLarger(_ row: RowRef, than bound: RowBound) -> Bool {
        withView(row) { view in
            (0..<view.count).reduce(0) { $0 + (view.value($1)?.recordBytes ?? 0) } > bound.bytes
        }
    }
}
