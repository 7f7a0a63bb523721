import SluiceCore
import Synchronization

/// Stands in the fan-out for what decides on a view's members, and notes that it has changed. What it is sent, nobody reads.
final class MemberWatch: SessionChannel {
    /// Milliseconds after a change until the members are found again, so that a run of changes costs once.
    static let pause: UInt64 = 20

    private let stale = Atomic(false)
    private let closed = Atomic(false)
    private let onChange: @Sendable () -> Void

    /// - Parameter onChange: called once until `take`.
    init(onChange: @escaping @Sendable () -> Void) { self.onChange = onChange }

    var isStale: Bool { stale.load(ordering: .acquiring) }

    /// The fan-out has let it go, and it hears of nothing any more.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Forgets the change. - Returns: whether there was one.
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
