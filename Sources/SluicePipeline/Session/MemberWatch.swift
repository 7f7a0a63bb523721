import SluiceCore
import SluicePorts
import Synchronization

/// A subscriber of the fan-out for the changes that affect a view's members. It only records that a change has passed.
final class MemberWatch: SessionChannel {
    /// The delay from a change to the next search of the members, in milliseconds. It combines the changes of a burst.
    static let pause: UInt64 = 20

    private let stale = Atomic(false)
    private let closed = Atomic(false)
    private let onChange: @Sendable () -> Void

    /// Creates a watch.
    /// - Parameter onChange: Called at the first change, and again at the first change after each `take`.
    init(onChange: @escaping @Sendable () -> Void) { self.onChange = onChange }

    /// `true` if a change has passed since the last `take`.
    var isStale: Bool { stale.load(ordering: .acquiring) }

    /// `true` if the fan-out has removed the subscriber. It receives no further changes.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Clears the recorded change.
    /// - Returns: `true` if there was one.
    func take() -> Bool { stale.exchange(false, ordering: .acquiringAndReleasing) }

    func send(_ frames: [Frame]) {
        if !stale.exchange(true, ordering: .acquiringAndReleasing) { onChange() }
    }

    var bufferedBytes: Int { 0 }
    func drained(below bytes: Int) async {}
    func close(_ error: SluiceError?) {
        closed.store(true, ordering: .releasing)
        send([])
    }
}
