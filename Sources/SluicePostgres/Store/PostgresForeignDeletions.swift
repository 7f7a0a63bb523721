import SluiceCore
import SluiceMerge
package import SluicePorts

/// The store of external deletes.
package struct PostgresForeignDeletions: ExternalDeleteStore {
    private let memory: ForeignDeletionMemory

    package init(pool: PostgresPool) { memory = ForeignDeletionMemory(pool: pool) }

    package func remember(_ deletions: [ExternalDelete]) async throws {
        try await memory.remember(
            deletions.map { gone in
                let stamp = WriteStamp(time: HybridTime(milliseconds: gone.commitTime / 1_000), client: .server)
                // One below the commit: a client that has applied the commit has seen the deletion.
                let deletion = Deletion(stamp: stamp, lsn: LSN(rawValue: max(gone.lsn.rawValue, 1) - 1))
                return ForeignDeletionMemory.Entry(
                    type: gone.type, key: gone.key, clocks: ObjectClocks(deletion: deletion, isDeleted: true).encoded,
                    lsn: deletion.lsn, commitTime: gone.commitTime)
            })
    }
}
