package import SluiceCore
import SluicePorts
import Synchronization

/// Keeps the fan-out in step with the sessions in this process, whose views do more for a message than a socket does.
///
/// Several commits in one message cost little more than one. If the fan-out went on at once, a busy gateway would make a message of each
/// commit. So it waits until most of these sessions have taken their last messages, and commits gather meanwhile.
package final class LocalPace: Sendable {
    /// The longest wait, in milliseconds. A slow session delays the others by no more.
    static let mostMilliseconds = 20

    /// The extent at one time.
    struct Mark: Sendable {
        fileprivate let sent: UInt64
        fileprivate let taken: UInt64
    }

    /// Counts the times that a session without messages has got some.
    private let sent = Atomic<UInt64>(0)
    /// Counts the times that a session has taken all of its messages.
    private let taken: AsyncEvent

    package init(environment: any Environment) { taken = AsyncEvent(environment: environment) }

    /// Records that a session without messages has got some.
    package func sessionBegan() { sent.add(1, ordering: .relaxed) }

    /// Records that a session has taken all of its messages.
    package func sessionEnded() { taken.fire() }

    var mark: Mark { Mark(sent: sent.load(ordering: .relaxed), taken: taken.count) }

    /// Waits until three of four sessions that have got messages since a mark have taken them, or the time is over.
    func caughtUp(since mark: Mark) async {
        let count = sent.load(ordering: .relaxed) - mark.sent
        if count > 0 { await taken.wait(until: mark.taken + count - count / 4, milliseconds: Self.mostMilliseconds) }
    }
}
