import SluiceReplica
import Synchronization

/// What has changed since a Realm last told its observers; changes that all observers hear of become one.
final class ChangeInbox: Sendable {
    struct Entry: Sendable {
        var change: ReplicaChange
        /// The observers that do not hear of it.
        var silenced: Set<ObjectIdentifier>
    }

    private struct State {
        var entries: [Entry] = []
        var isScheduled = false
        var silenced: Set<ObjectIdentifier> = []
    }

    private let state = Mutex(State())
    /// Beyond this many all are told everything.
    private static let entryLimit = 64

    /// - Returns: whether a delivery has to be scheduled.
    func put(_ change: ReplicaChange) -> Bool {
        state.withLock { state in
            let isFull = state.entries.count >= ChangeInbox.entryLimit
            if let last = state.entries.indices.last, isFull || state.entries[last].silenced == state.silenced {
                state.entries[last].change.merge(change)
                if isFull { state.entries[last].silenced = [] }
            } else {
                state.entries.append(Entry(change: change, silenced: state.silenced))
            }
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    /// Observers that are not to hear of the changes that come until the next call.
    func silence(_ observers: Set<ObjectIdentifier>) { state.withLock { $0.silenced = observers } }

    func take() -> [Entry] {
        state.withLock { state in
            defer { (state.entries, state.isScheduled) = ([], false) }
            return state.entries
        }
    }

    var isEmpty: Bool { state.withLock { $0.entries.isEmpty } }

    /// A delivery that was scheduled has come to nothing: the next change schedules another.
    func postpone() { state.withLock { $0.isScheduled = false } }
}
