import SluiceCore
import SluicePorts

extension CaptureBatch {
    /// Returns the external deletes of the batch, the last one of each object. A row that only ceased to fit its class is not deleted.
    func externalDeletes(_ types: [ObjectType]) -> [ExternalDelete] {
        var objects: [String: [Value: ExternalDelete]] = [:]
        var classes: [ExternalDelete] = []
        var misfits: Set<Position>?
        // Deletes of clients have an origin, and are recorded with their changesets.
        for transaction in transactions where transaction.origin == nil {
            for change in changes[transaction.changes] {
                let type = types[Int(change.type)]
                var deletion = ExternalDelete(type: type.name, key: nil, lsn: transaction.lsn, commitTime: transaction.commitTime)
                switch change.operation {
                case .insert, .update: continue
                case .truncate: classes.append(deletion)
                case .delete:
                    // At the first delete only: most batches have none.
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
        // Sort by class and key text, as changesets do, so that the locks cannot deadlock with theirs.
        let ordered = objects.sorted { $0.key < $1.key }.flatMap { _, deletions in
            deletions.map { (PartitionKey.text(of: $0), $1) }.sorted { $0.0.lexicographicallyPrecedes($1.0) }.map(\.1)
        }
        return ordered + classes
    }
}
