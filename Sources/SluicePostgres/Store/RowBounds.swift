package import SluiceCore
import Synchronization

/// The bound of one class's rows. It may change while rows are read.
package final class SharedRowBound: Sendable {
    /// The size of the largest record that the topic accepts, in bytes.
    private let recordBytes = Atomic<Int>(RowBound.neededRecordBytes)

    package init() {}

    package var current: RowBound { RowBound(recordBytes: recordBytes.load(ordering: .relaxed)) }

    /// Sets the bound to the limit of a topic.
    ///
    /// - Parameter recordBytes: The size of the largest record that the topic accepts, in bytes.
    package func set(recordBytes: Int) { self.recordBytes.store(recordBytes, ordering: .relaxed) }
}

/// The bounds of the rows of all classes. Captures, bootstraps, uploads and the quarantine share it, so that they agree on each
/// row.
package final class RowBounds: Sendable {
    private let bounds = Mutex<[String: SharedRowBound]>([:])

    package init() {}

    /// Returns the bound of a class; always the same object.
    package subscript(type: String) -> SharedRowBound {
        bounds.withLock { bounds in
            if let known = bounds[type] { return known }
            let new = SharedRowBound()
            bounds[type] = new
            return new
        }
    }
}
