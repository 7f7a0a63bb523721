package import SluiceCore

/// Rows of a class that a transaction of another program deleted.
package struct ForeignDeletion: Equatable, Sendable {
    package var type: String
    /// Nil: all rows, by TRUNCATE.
    package var keys: [Value]?
    /// Of the commit record.
    package var lsn: LSN
    /// Microseconds since 1970, UTC.
    package var commitTime: Int64

    package init(type: String, keys: [Value]?, lsn: LSN, commitTime: Int64) {
        (self.type, self.keys, self.lsn, self.commitTime) = (type, keys, lsn, commitTime)
    }
}

/// Keeps where other programs deleted objects that devices had written: PostgreSQL forgets a row that is gone, and merging has to know
/// who has seen that it went (CR-2).
package protocol ForeignDeletionStore: Sendable {
    /// Deletions that are remembered already, and of objects that were written again since, are left out. May be called again with
    /// the same ones.
    func remember(_ deletions: [ForeignDeletion]) async throws
}

extension CaptureBatch {
    /// What programs other than gateways deleted. A row that merely ceased to fit its class is not deleted.
    func foreignDeletions(_ types: [ObjectType]) -> [ForeignDeletion] {
        var deletions: [ForeignDeletion] = []
        var misfits: Set<Position>?
        for transaction in transactions where transaction.origin == nil {
            var keys: [Int: [Value]] = [:]
            for change in changes[transaction.changes] {
                let type = Int(change.type)
                switch change.operation {
                case .insert, .update: continue
                case .truncate:
                    deletions.append(
                        ForeignDeletion(type: types[type].name, keys: nil, lsn: transaction.lsn, commitTime: transaction.commitTime))
                case .delete:
                    let those = misfits ?? Set(unfit.lazy.filter { $0.reason != nil }.map(\.position))
                    misfits = those
                    guard !those.contains(change.position), let before = change.before, let property = types[type].primaryKey,
                        let key = rows.withView(before, { $0.value(property) })
                    else { continue }
                    keys[type, default: []].append(key)
                }
            }
            for (type, keys) in keys.sorted(by: { $0.key < $1.key }) {
                // In the order in which changesets lock objects.
                let sorted = keys.map { (PartitionKey.text(of: $0), $0) }.sorted { $0.0.lexicographicallyPrecedes($1.0) }
                deletions.append(
                    ForeignDeletion(
                        type: types[type].name, keys: sorted.map(\.1), lsn: transaction.lsn, commitTime: transaction.commitTime))
            }
        }
        return deletions
    }
}
