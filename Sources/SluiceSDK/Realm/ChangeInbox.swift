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
        /// An observer has begun here: what led to this version is none of its changes.
        var boundary: UInt64 = 0
        /// An observer is about to begin: until it is known where, no two commits become one entry, as it might begin between them.
        var isHeld = false
        /// How often in a row `take` found that news were on their way.
        var waits = 0

        /// Whether all who hear of an entry hear of a change too.
        func continues(_ entry: Entry, with change: ReplicaChange) -> Bool {
            !isHeld && entry.silenced == silenced && (entry.change.version > boundary || change.version <= boundary)
        }
    }

    private let state = Mutex(State())
    /// Beyond this many all are told everything.
    private static let entryLimit = 64
    /// After this many waits for news in a row what there is has to do: another process's news may stay away, and a writer that
    /// commits without a pause must not keep observers from hearing.
    private static let waitLimit = 16

    /// What can be told at a state.
    enum Taking {
        /// All that changed up to it, or nothing.
        case entries([Entry])
        /// The state contains a commit whose news come in a moment, and schedule a delivery.
        case later
        /// There are news of a newer state.
        case behind
    }

    /// - Returns: whether a delivery has to be scheduled.
    func put(_ change: ReplicaChange) -> Bool {
        state.withLock { state in
            let isFull = state.entries.count >= ChangeInbox.entryLimit
            if let last = state.entries.indices.last, isFull || state.continues(state.entries[last], with: change) {
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

    /// Keeps all commits apart until `separate` or `take`.
    func hold() { state.withLock { $0.isHeld = true } }

    /// Keeps apart what led to a version and what comes after it.
    func separate(at version: UInt64) { state.withLock { ($0.boundary, $0.isHeld) = (version, false) } }

    /// News of a commit come a moment after it can be seen. Who was told of a state then would be told of its last commit twice.
    /// - Parameters:
    ///   - version: of the state that the Realm shows.
    ///   - isLast: whether news of a newer state are to be told too.
    func take(at version: UInt64, isLast: Bool) -> Taking {
        state.withLock { state in
            let newest = state.entries.lazy.map(\.change.version).max() ?? version
            if newest > version, !isLast { return .behind }
            (state.isScheduled, state.isHeld) = (false, false)
            if newest < version, state.waits < ChangeInbox.waitLimit {
                state.waits += 1
                return .later
            }
            state.waits = 0
            defer { state.entries = [] }
            return .entries(state.entries)
        }
    }

    var isEmpty: Bool { state.withLock { $0.entries.isEmpty } }

    /// A delivery that was scheduled has come to nothing: the next change schedules another.
    func postpone() { state.withLock { $0.isScheduled = false } }
}
