import SluiceCore
import SluicePipeline
import Synchronization

/// The discarded changes of the changesets on their way to the session, whose messages have none.
final class BridgeCompletion: ChangesetCompletion {
    private let waiting = Mutex<[UInt64: [[String: DiscardedChanges]]]>([:])

    func add(_ changesets: [Changeset]) {
        waiting.withLock { waiting in
            for changeset in changesets where changeset.changes.contains(where: { !$0.discarded.isEmpty }) {
                waiting[changeset.number] = changeset.changes.map(\.discarded)
            }
        }
    }

    func complete(_ changeset: inout Changeset) {
        guard let discarded = waiting.withLock({ $0.removeValue(forKey: changeset.number) }), discarded.count == changeset.changes.count
        else { return }
        for index in changeset.changes.indices { changeset.changes[index].discarded = discarded[index] }
    }
}
