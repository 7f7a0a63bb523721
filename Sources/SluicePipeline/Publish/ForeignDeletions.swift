package import SluiceCore

/// What a transaction of another program deleted: an object, or all of a class.
package struct ForeignDeletion: Equatable, Sendable {
    package var type: String
    /// Nil: all objects, by TRUNCATE.
    package var key: Value?
    /// Of the commit record.
    package var lsn: LSN
    /// Microseconds since 1970, UTC.
    package var commitTime: Int64

    package init(type: String, key: Value?, lsn: LSN, commitTime: Int64) {
        (self.type, self.key, self.lsn, self.commitTime) = (type, key, lsn, commitTime)
    }
}

/// Keeps where other programs deleted objects that devices had written: PostgreSQL forgets a row that is gone, and merging has to know
/// who has seen that it went (CR-2).
package protocol ForeignDeletionStore: Sendable {
    /// Deletions that are remembered already, and of objects that were written again since, are left out. May be called again with
    /// the same ones.
    /// - Parameter deletions: each object once, in the order in which changesets lock objects; then the classes.
    func remember(_ deletions: [ForeignDeletion]) async throws
}

extension CaptureBatch {
    /// What programs other than gateways deleted, of an object the last time. A row that merely ceased to fit its class is not deleted.
    func foreignDeletions(_ types: [ObjectType]) -> [ForeignDeletion] {
        var objects: [String: [Value: ForeignDeletion]] = [:]
        var classes: [ForeignDeletion] = []
        var misfits: Set<Position>?
        for transaction in transactions where transaction.origin == nil {
            for change in changes[transaction.changes] {
                let type = types[Int(change.type)]
                var deletion = ForeignDeletion(type: type.name, key: nil, lsn: transaction.lsn, commitTime: transaction.commitTime)
                switch change.operation {
                case .insert, .update: continue
                case .truncate: classes.append(deletion)
                case .delete:
                    let those = misfits ?? Set(unfit.lazy.filter { $0.reason != nil }.map(\.position))
                    misfits = those
                    guard !those.contains(change.position), let before = change.before, let property = type.primaryKey,
                        let key = rows.withView(before, { $0.value(property) })
                    else { continue }
                    deletion.key = key
                    objects[type.name, default: [:]][key] = deletion
                }
            }
        }
        let ordered = objects.sorted { $0.key < $1.key }.flatMap { _, deletions in
            deletions.map { (PartitionKey.text(of: $0), $1) }.sorted { $0.0.lexicographicallyPrecedes($1.0) }.map(\.1)
        }
        return ordered + classes
    }
}
