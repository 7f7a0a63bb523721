package import SluiceCore
import Synchronization

/// The bound of one class's rows, which changes while rows are read.
package final class SharedRowBound: Sendable {
    /// Bytes of the largest record that the topic takes.
    private let recordBytes = Atomic<Int>(RowBound.neededRecordBytes)

    package init() {}

    package var current: RowBound { RowBound(recordBytes: recordBytes.load(ordering: .relaxed)) }

    /// Sets the bound to what a topic allows.
    /// - Parameter recordBytes: of the largest record that the topic takes.
    package func set(recordBytes: Int) { self.recordBytes.store(recordBytes, ordering: .relaxed) }
}

/// The bounds of the rows of all classes. Captures, bootstraps, uploads and the quarantine share it, so that they agree on each row.
package final class RowBounds: Sendable {
    private let bounds = Mutex<[String: SharedRowBound]>([:])

    package init() {}

    /// The bound of a class; always the same object.
    package subscript(type: String) -> SharedRowBound {
        bounds.withLock { bounds in
            if let known = bounds[type] { return known }
            let new = SharedRowBound()
            bounds[type] = new
            return new
        }
    }
}
