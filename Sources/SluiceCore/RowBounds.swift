import Synchronization

/// The largest row of one class, in bytes of a log record. It follows what the class's topic takes.
package final class RowBound: Sendable {
    private let value = Atomic<Int>(Limits.rowBytes)

    package init() {}

    package var bytes: Int { value.load(ordering: .relaxed) }

    /// Sets the bound to what a topic allows.
    /// - Parameter recordBytes: of the largest record that the topic takes.
    package func set(recordBytes: Int) { value.store(Self.rowBytes(recordBytes: recordBytes), ordering: .relaxed) }

    /// Bytes of the largest row, two of which and a frame fit into a record: at most `Limits.rowBytes`, at least 0.
    package static func rowBytes(recordBytes: Int) -> Int {
        min(Limits.rowBytes, max(0, recordBytes - Limits.recordFrameBytes) / 2)
    }

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

/// The largest row of each class. Captures, bootstraps, uploads and the quarantine share it, so that they agree on each row.
package final class RowBounds: Sendable {
    private let bounds = Mutex<[String: RowBound]>([:])

    package init() {}

    /// The bound of a class; always the same object.
    package subscript(type: String) -> RowBound {
        bounds.withLock { bounds in
            if let known = bounds[type] { return known }
            let new = RowBound()
            bounds[type] = new
            return new
        }
    }
}
