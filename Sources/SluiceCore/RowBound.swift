/// The largest row of one class, in bytes of a log record. It follows the records that the class's topic takes.
package struct RowBound: Hashable, Sendable {
    /// At most `Limits.rowBytes`, at least 0.
    package let bytes: Int

    /// The bound where the topic takes every record that the gateway makes.
    package init() { bytes = Limits.rowBytes }

    /// The largest row, two of which and a frame fit into a record.
    /// - Parameter recordBytes: of the largest record that the topic takes.
    package init(recordBytes: Int) { bytes = min(Limits.rowBytes, max(0, recordBytes - Limits.recordFrameBytes) / 2) }

    /// Bytes of the smallest record bound that leaves `Limits.rowBytes` as it is.
    package static let neededRecordBytes = 2 * Limits.rowBytes + Limits.recordFrameBytes

    /// Bytes in the arena that a row takes before its values are measured one by one. A value in a record takes at most eight times its
    /// bytes in the arena and 24 more.
    package func unmeasuredBytes(properties: Int) -> Int { (bytes - 24 * properties) / 8 }

    /// The bound as texts have it: `9 MiB`, `480 KiB`, `100 bytes`.
    package var text: String {
        switch bytes {
        case let bytes where bytes >= 1 << 20 && bytes & (1 << 20 - 1) == 0: "\(bytes >> 20) MiB"
        case let bytes where bytes >= 1 << 10: "\(bytes >> 10) KiB"
        case let bytes: "\(bytes) bytes"
        }
    }
}
