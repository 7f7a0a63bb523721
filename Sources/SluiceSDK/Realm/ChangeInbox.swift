import SluiceReplica
import Synchronization

/// The changes since a Realm last notified its observers. Changes that concern the same observers are merged.
///
/// Written by the committing thread and emptied on the Realm's scheduler.
final class ChangeInbox: Sendable {
    struct Entry: Sendable {
        var change: ReplicaChange
        /// The observers that do not receive the change.
        var silenced: Set<ObjectIdentifier>
    }

    private struct State {
        var entries: [Entry] = []
        var isScheduled = false
        var silenced: Set<ObjectIdentifier> = []
        /// The version at which the newest observer started. Changes up to it are not merged with later ones.
        var boundary: UInt64 = 0
        /// `true` while an observer is starting. Its version is unknown until then, so no two commits are merged.
        var isHeld = false
        /// The number of consecutive `take` calls that found a commit without its change.
        var waits = 0

        /// `true` if a change may be merged into an entry: the same observers receive both.
        func continues(_ entry: Entry, with change: ReplicaChange) -> Bool {
            // An observer ignores changes up to its start. A change across the boundary could not be ignored in part.
            !isHeld && entry.silenced == silenced && (entry.change.version > boundary || change.version <= boundary)
        }
    }

    private let state = Mutex(State())
    /// The most entries kept. Later changes are merged into the last entry, which silenced observers then receive too.
    private static let entryLimit = 64
    /// The number of consecutive waits after which `take` delivers the known changes.
    /// A change from another process may never arrive, and a writer without pauses must not starve the observers.
    private static let waitLimit = 16

    /// The result of `take`.
    enum Taking {
        /// All changes up to the snapshot; may be empty.
        case entries([Entry])
        /// The snapshot contains a commit whose change has not arrived. Its arrival schedules a delivery.
        case later
        /// The inbox has changes of a newer snapshot. The caller should advance first.
        case behind
    }

    /// Adds a change.
    /// - Returns: `true` if the caller must schedule a delivery.
    func put(_ change: ReplicaChange) -> Bool {
        state.withLock { state in
            // A bound, since a Realm whose scheduler is blocked takes nothing.
            let isFull = state.entries.count >= ChangeInbox.entryLimit
            if let last = state.entries.indices.last, isFull || state.continues(state.entries[last], with: change) {
                state.entries[last].change.merge(change)
                // A notification too many is harmless; one too few would leave an observer behind.
                if isFull { state.entries[last].silenced = [] }
            } else {
                state.entries.append(Entry(change: change, silenced: state.silenced))
            }
            // One delivery takes all changes that arrive before it.
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    /// Excludes observers from the changes that arrive until the next call.
    func silence(_ observers: Set<ObjectIdentifier>) { state.withLock { $0.silenced = observers } }

    /// Keeps all commits separate until `separate` or `take`.
    func hold() { state.withLock { $0.isHeld = true } }

    /// Keeps the changes up to a version apart from later ones.
    func separate(at version: UInt64) { state.withLock { ($0.boundary, $0.isHeld) = (version, false) } }

    /// Removes and returns the changes up to a snapshot.
    ///
    /// A change arrives shortly after its commit becomes visible. A delivery in between would report the last commit twice.
    /// - Parameters:
    ///   - version: The version that the Realm shows.
    ///   - isLast: `true` to return changes of newer snapshots too.
    func take(at version: UInt64, isLast: Bool) -> Taking {
        state.withLock { state in
            let newest = state.entries.lazy.map(\.change.version).max() ?? version
            // Nothing is removed yet: changes are delivered with a snapshot that contains them.
            if newest > version, !isLast { return .behind }
            // Reset under the lock: a change that arrives after this schedules a delivery of its own.
            (state.isScheduled, state.isHeld) = (false, false)
            // The committing thread is between its commit and `put`, which schedules a delivery now that none is scheduled.
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

    /// Cancels a scheduled delivery that had no effect. The next change schedules another.
    func postpone() { state.withLock { $0.isScheduled = false } }
}
