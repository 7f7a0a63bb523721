package import SluiceCore

/// Compensating writes, and changesets that no upload can carry: both undo pending changes and are kept for the app.
package struct Compensations: Sendable {
    let database: ReplicaDatabase
    let overlays: OverlayStore
    package let reports: CompensationReports
    private var connection: Connection { database.connection }

    /// The number of the last compensation applied.
    package var last: UInt64 { database.meta.compensation }

    /// Undoes the named changesets' writes to the named objects. These show the server's state again, with later local writes.
    /// - Returns: the report for the app, with the intended values. `nil` if compensation `id` was applied before.
    package func apply(id: UInt64, writes: [CompensatingWrite]) throws(SluiceError) -> CompensationReport? {
        guard id > database.meta.compensation else { return nil }
        database.meta.compensation = id
        var reported = writes
        for (index, write) in writes.enumerated() {
            guard let layout = database.layout(named: write.object.type), layout.hasTable else { continue }
            // Before the deletion below: the intended values are read from the pending change.
            reported[index].values.merge(try wanted(layout, write)) { $1 }
            let statement = try connection.statement("DELETE FROM _sluice_pending_change WHERE number = ? AND type = ? AND key = ?")
            statement.bind(0, write.changeset)
            statement.bind(1, write.object.type)
            layout.bindKey(write.object.key, at: 2, to: statement)
            try statement.run()
            // The compensating write itself is reported.
            try overlays.show(layout, key: write.object.key, leaving: .untold)
        }
        return try reports.keep(reported)
    }

    /// Undoes a changeset that no message can carry. It stays, without changes, since the gateway expects numbers without gaps.
    /// Runs in a durable transaction.
    /// - Parameter error: `writeTooLarge`, for the app.
    /// - Returns: the report for the app. `nil` if the changeset has no changes left.
    package func setAside(changeset number: UInt64, _ error: SluiceError) throws(SluiceError) -> CompensationReport? {
        let objects = try connection.statement("SELECT DISTINCT type, key FROM _sluice_pending_change WHERE number = ?")
        objects.bind(0, number)
        var writes: [(layout: TableLayout, write: CompensatingWrite)] = []
        while try objects.step() {
            guard let layout = database.layout(named: objects.string(0)) else { continue }
            let object = ObjectKey(type: layout.type.name, key: layout.readKey(objects, 1))
            writes.append(
                (
                    layout,
                    CompensatingWrite(
                        changeset: number, object: object, code: error.code.rawValue, cause: RejectionCause.tooLarge.rawValue,
                        reason: error.message)
                ))
        }
        objects.reset()
        for index in writes.indices { writes[index].write.values = try wanted(writes[index].layout, writes[index].write) }
        for sql in ["DELETE FROM _sluice_pending_change WHERE number = ?", "UPDATE _sluice_pending SET bytes = 0 WHERE number = ?"] {
            let statement = try connection.statement(sql)
            statement.bind(0, number)
            try statement.run()
        }
        // The compensating write itself is reported.
        for (layout, write) in writes { try overlays.show(layout, key: write.object.key, leaving: .untold) }
        return try reports.keep(writes.map(\.write))
    }

    /// Returns the values that a changeset intended for an object: those that it set, and the edited properties as shown now. Empty if a
    /// later row of the object has already replaced the changes.
    private func wanted(_ layout: TableLayout, _ write: CompensatingWrite) throws(SluiceError) -> [String: Value] {
        let statement = try connection.statement(
            "SELECT change FROM _sluice_pending_change WHERE number = ? AND type = ? AND key = ? ORDER BY ordinal")
        statement.bind(0, write.changeset)
        statement.bind(1, write.object.type)
        layout.bindKey(write.object.key, at: 2, to: statement)
        defer { statement.reset() }
        var (values, edited): ([String: Value], Set<String>) = ([:], [])
        while try statement.step() {
            let change = try ChangeCoding.decode(statement.bytes(0))
            values.merge(change.values) { $1 }
            edited.formUnion(change.counters.keys)
            edited.formUnion(change.edits.map(\.property))
        }
        if !edited.isEmpty, let row = try database.store.row(type: layout.index, key: write.object.key) {
            for name in edited { if let index = layout.type.index(of: name) { values[name] = row[index] } }
        }
        return values
    }
}
