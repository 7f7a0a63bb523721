import SluiceCore
import SluiceMerge

/// Compensating writes, and changesets that no upload can carry: both undo pending changes and are kept for the app.
extension Writer {
    func applyCompensation(id: UInt64, writes: [CompensatingWrite]) throws(SluiceError) -> CompensationReport? {
        guard id > meta.compensation else { return nil }
        meta.compensation = id
        var refused = writes
        for (index, write) in writes.enumerated() {
            guard let layout = layout(named: write.object.type), layout.hasTable else { continue }
            // Before the deletion below: the intended values are read from the pending change.
            refused[index].values.merge(try wanted(layout, write)) { $1 }
            let statement = try connection.statement("DELETE FROM _sluice_pending_change WHERE number = ? AND type = ? AND key = ?")
            statement.bind(0, write.changeset)
            statement.bind(1, write.object.type)
            layout.bindKey(write.object.key, at: 2, to: statement)
            try statement.run()
            // The compensating write itself is reported.
            try show(layout, key: write.object.key, leaving: .untold)
        }
        return try keepRefusal(refused)
    }

    /// Undoes a changeset that no message can carry. It stays, without changes, since the gateway expects numbers without gaps.
    /// - Returns: the report for the app. `nil` if the changeset has no changes left.
    func setAside(_ number: UInt64, _ error: SluiceError) throws(SluiceError) -> CompensationReport? {
        let objects = try connection.statement("SELECT DISTINCT type, key FROM _sluice_pending_change WHERE number = ?")
        objects.bind(0, number)
        var writes: [(layout: TableLayout, write: CompensatingWrite)] = []
        while try objects.step() {
            guard let layout = layout(named: objects.string(0)) else { continue }
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
        for (layout, write) in writes { try show(layout, key: write.object.key, leaving: .untold) }
        return try keepRefusal(writes.map(\.write))
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
        if !edited.isEmpty, let row = try store.row(type: layout.index, key: write.object.key) {
            for name in edited { if let index = layout.type.index(of: name) { values[name] = row[index] } }
        }
        return values
    }

    /// The maximum number of unreported reports. The oldest are dropped first.
    static let keptRefusals: UInt64 = 1_000

    func keepRefusal(_ writes: [CompensatingWrite]) throws(SluiceError) -> CompensationReport? {
        if writes.isEmpty { return nil }
        let statement = try connection.statement("INSERT INTO _sluice_error (writes) VALUES (?) RETURNING id")
        statement.bind(0, ChangeCoding.encode(writes))
        guard try statement.step() else { return nil }
        let id = statement.unsigned(0)
        statement.reset()
        let oldest = try connection.statement("DELETE FROM _sluice_error WHERE id <= ?")
        oldest.bind(0, id - min(id, Writer.keptRefusals))
        try oldest.run()
        return CompensationReport(id: id, writes: writes)
    }

    func refusals() throws(SluiceError) -> [CompensationReport] {
        let statement = try connection.statement("SELECT id, writes FROM _sluice_error ORDER BY id")
        defer { statement.reset() }
        var refusals: [CompensationReport] = []
        while try statement.step() {
            refusals.append(CompensationReport(id: statement.unsigned(0), writes: ChangeCoding.decodeRefusals(statement.bytes(1))))
        }
        return refusals
    }

    func forgetRefusal(_ id: UInt64) throws(SluiceError) {
        let statement = try connection.statement("DELETE FROM _sluice_error WHERE id = ?")
        statement.bind(0, id)
        try statement.run()
    }
}
