package import SluiceCore
import SluicePorts
import SluiceQuery

/// Completes the changesets of a writer in this process with what no message carries.
package protocol ChangesetCompletion: Sendable {
    func complete(_ changeset: inout Changeset)
}

/// The access of a reader in this process, which keeps no rows of its own.
extension Session {
    /// Forgets the rows that the client has. The next bootstrap that begins sends all of its view.
    package func forgetRows() {
        replica.held = nil
        replica.offer = nil
    }

    /// Stores the asymmetric objects of changesets, behind the batches before them.
    ///
    /// Returns once the batch has a place in the window. The acknowledgement follows when the objects are durable, behind a compensating
    /// write for each changeset with rejected objects. The number is recorded with them, so the caller sends no changeset up to it again.
    /// - Parameter number: The last changeset of the objects. Batches have increasing numbers.
    package func ingest(_ objects: [(changeset: UInt64, change: ObjectChange)], number: UInt64) async {
        while machine.isOpen, machine.ingest.isFull, let taking = tasks.taking { await taking.value }
        guard machine.isOpen, !channel.isClosed else { return }
        let batch = WaitingBatch(number: number, objects: objects.map(\.change), changesets: objects.map(\.changeset))
        perform(machine.handle(.ingest(batch)))
    }

    /// Returns the current rows of objects, as the client may see them. An object outside of the view is absent.
    ///
    /// The view is the last one of which the reader may have the end. The session itself takes it for live a little later.
    ///
    /// The rows may be newer than the commits that were delivered, and never older: a commit is in the log before it is visible.
    package func visibleRows(of objects: Set<ObjectKey>) async throws -> [ObjectKey: Row] {
        let (schema, known) = (services.authority.current().schema, machine.views.known)
        var rows: [ObjectKey: Row] = [:]
        for (name, keys) in Dictionary(grouping: objects, by: \.type) {
            guard let index = schema.index(of: name), let view = known.type(index) else { continue }
            for start in stride(from: 0, to: keys.count, by: Limits.bootstrapRows) {
                let piece = keys[start..<min(start + Limits.bootstrapRows, keys.count)].map(\.key)
                let stored = try await SnapshotPatience.retry(services.environment) { patience in
                    let (objects, start) = try await services.snapshots.stored(schema.types[index], keys: piece)
                    return patience.accepts(start) ? objects : nil
                }
                for (key, object) in stored {
                    rows[ObjectKey(type: name, key: key)] = object.row.flatMap { view.visible($0) }
                }
            }
        }
        return rows
    }
}

extension TypeView {
    /// Returns the properties of a row that the session may read; nil if the row is not in the view.
    fileprivate func visible(_ row: Row) -> Row? {
        var buffer = RowBuffer()
        let place = buffer.append(row)
        guard buffer.withView(place, { predicate.matches($0) }) else { return nil }
        guard let mask else { return row }
        return Row(row.values.enumerated().map { mask.indices.contains($0) && mask[$0] ? $1 : nil })
    }
}
