import SluiceCore
import SluiceMerge

/// A newer row of the server.
struct NewServerRow {
    /// `nil` if the object is not in the view.
    var row: [String: Value]?
    /// The write times received with it. `nil` for none.
    var times: WriteTimes?
    /// The time of its commit, in milliseconds since 1970. `nil` if unknown.
    var time: Int64?
}

/// The objects with pending changes. Their server rows are stored beside the table, which shows the merge of both.
struct OverlayStore: Sendable {
    let database: ReplicaDatabase
    private var connection: Connection { database.connection }

    // MARK: Reading

    /// Returns the server's state of an object. `nil` without pending changes: the table then has the server's row.
    private func serverObject(_ layout: TableLayout, key: Value) throws(SluiceError) -> ServerObject? {
        let statement = try connection.statement("SELECT row, clocks, time FROM _sluice_server WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        let row = statement.isNull(0) ? nil : try ChangeCoding.decodeRow(statement.bytes(0))
        let clocks = statement.isNull(1) ? nil : try layout.clocks(stored: statement.bytes(1))
        return ServerObject(row: row, clocks: clocks, rowTime: statement.isNull(2) ? 0 : statement.int(2))
    }

    /// `true` if any object has pending changes.
    func hasObjects() throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM _sluice_server LIMIT 1")
        defer { statement.reset() }
        return try statement.step()
    }

    func isKept(_ layout: TableLayout, key: Value) throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM _sluice_server WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        return try statement.step()
    }

    /// Returns the server's state of an object that is edited. Has neither row nor clocks if none is stored.
    func keptServerObject(_ layout: TableLayout, key: Value) throws(SluiceError) -> ServerObject {
        try serverObject(layout, key: key) ?? ServerObject(row: nil)
    }

    // MARK: Keeping

    /// Stores an object's row as its server row and returns it. Called before the first pending change, while the table has the server's
    /// row.
    func keepServerRow(_ layout: TableLayout, key: Value) throws(SluiceError) -> [String: Value]? {
        let row = try database.store.row(type: layout.index, key: key).map { layout.named($0) }
        try setServerObject(layout, key: key, ServerObject(row: row))
        return row
    }

    /// Stores the absence of a server row for a new object, unless its server state is stored already.
    func keepAbsence(_ layout: TableLayout, key: Value) throws(SluiceError) {
        if try isKept(layout, key: key) { return }
        try setServerObject(layout, key: key, ServerObject(row: nil))
    }

    private func setServerObject(_ layout: TableLayout, key: Value, _ object: ServerObject) throws(SluiceError) {
        let statement = try connection.statement(
            """
            INSERT INTO _sluice_server (type, key, row, clocks, time) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (type, key) DO UPDATE SET row = excluded.row, clocks = excluded.clocks, time = excluded.time
            """)
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        if let row = object.row { statement.bind(2, ChangeCoding.encode(row: row)) } else { statement.bindNull(2) }
        if let clocks = object.clocks { statement.bind(3, layout.stored(clocks)) } else { statement.bindNull(3) }
        statement.bind(4, object.rowTime)
        try statement.run()
    }

    /// Records that the server's row is no longer in the view.
    func loseServerRow(_ layout: TableLayout, key: Value) throws(SluiceError) {
        try setServerObject(layout, key: key, ServerObject(row: nil))
    }

    private func forgetServerRow(_ layout: TableLayout, key: Value) throws(SluiceError) {
        let statement = try connection.statement("DELETE FROM _sluice_server WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        try statement.run()
    }

    /// Stores the server's row of an object with pending changes and shows the merge.
    ///
    /// Drops the object's changes of changesets that the server's rows reflect. Keeping them until the acknowledgement would hide later
    /// writes of others.
    /// - Parameter leaving: the reason if the object is gone.
    /// - Returns: `false` if no change is pending for the object. The caller then changes the table itself.
    func takeServerRow(
        _ layout: TableLayout, key: Value, _ new: NewServerRow, leaving: Leaving = .untold
    ) throws(SluiceError) -> Bool {
        guard var object = try serverObject(layout, key: key) else { return false }
        object.replace(with: new.row, times: new.times, rowTime: new.time, type: layout.type)
        try setServerObject(layout, key: key, object)
        let taken = try connection.statement("DELETE FROM _sluice_pending_change WHERE type = ? AND key = ? AND number <= ?")
        taken.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: taken)
        taken.bind(2, database.meta.taken)
        try taken.run()
        try show(layout, key: key, leaving: leaving)
        return true
    }

    // MARK: Showing

    /// The client's number, which decides between writes of the same time.
    var client: ClientID { database.meta.identity?.client ?? Overlay.unnumbered }

    /// Returns the server's state of an object, merged with the pending changes and those of the open transaction.
    func overlaid(_ layout: TableLayout, key: Value, own: [ObjectChange]) throws(SluiceError) -> (server: ServerObject, state: ObjectState)
    {
        let server = try keptServerObject(layout, key: key)
        let pending = try pendingChanges(layout, key: key) + own.map { PendingChange(underWay: $0) }
        return (server, try Overlay.state(server: server, pending: pending, client: client, type: layout.type))
    }

    /// Makes the table show the server row merged with the pending changes. Drops the server row if no change is pending.
    /// - Parameter leaving: the reason if the object is gone.
    func show(_ layout: TableLayout, key: Value, leaving: Leaving) throws(SluiceError) {
        guard let server = try serverObject(layout, key: key) else { return }
        let changes = try pendingChanges(layout, key: key)
        // From here on the table has the server's row itself.
        if changes.isEmpty { try forgetServerRow(layout, key: key) }
        if var shown = try Overlay.apply(server: server, pending: changes, client: client, type: layout.type) {
            shown[layout.type.properties[layout.key].name] = key
            if try database.store.put(type: layout.index, layout.row(shown)) { database.note(layout.index, key) }
        } else {
            // Before the deletion: the reason may depend on the row.
            let reason = try reason(leaving, layout, key)
            // An object that the app deleted itself is no longer in the table.
            guard try database.store.delete(type: layout.index, key: key) else { return }
            database.note(layout.index, key)
            if let reason { database.noteLeft(layout, key, reason) }
        }
    }

    /// Shows every object with pending changes again, after their times have changed.
    func showAll(leaving: Leaving) throws(SluiceError) {
        let kept = try connection.statement("SELECT type, key FROM _sluice_server")
        var objects: [(TableLayout, Value)] = []
        while try kept.step() {
            if let layout = database.layout(named: kept.string(0)) { objects.append((layout, layout.readKey(kept, 1))) }
        }
        kept.reset()
        for (layout, key) in objects { try show(layout, key: key, leaving: leaving) }
    }

    private func reason(_ leaving: Leaving, _ layout: TableLayout, _ key: Value) throws(SluiceError) -> LeftObject.Reason? {
        switch leaving {
        case .untold: return nil
        case .known(let reason): return reason
        case .unstaged(let set):
            guard let row = try database.store.row(type: layout.index, key: key) else { return nil }
            return LeavingReason(set, layout, in: database.store.schema).of(row)
        }
    }

    /// Returns the changes that the server's row of an object does not reflect, oldest first.
    private func pendingChanges(_ layout: TableLayout, key: Value) throws(SluiceError) -> [PendingChange] {
        let statement = try connection.statement(
            """
            SELECT c.change, p.time, p.base FROM _sluice_pending_change c JOIN _sluice_pending p ON p.number = c.number
            WHERE c.type = ? AND c.key = ? ORDER BY c.number, c.ordinal
            """)
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        var changes: [PendingChange] = []
        while try statement.step() {
            changes.append(
                PendingChange(
                    try ChangeCoding.decode(statement.bytes(0)), time: HybridTime(rawValue: statement.unsigned(1)),
                    base: LSN(rawValue: statement.unsigned(2))))
        }
        return changes
    }
}

extension TableLayout {
    /// Returns the form in which clocks are stored: with the names of the properties, whose numbers an update of the app may change.
    fileprivate func stored(_ clocks: ObjectClocks) -> [UInt8] {
        var numbers: [String: Value] = [:]
        for property in type.properties { numbers[property.name] = .int(Int64(property.id)) }
        return ChangeCoding.encode(row: ["clocks": .binary(clocks.encoded), "numbers": .dictionary(numbers)])
    }

    /// Decodes stored clocks. Those of properties that the class no longer has are left out.
    /// - Throws: `replicaCorrupt` if they cannot be read.
    fileprivate func clocks(stored bytes: UnsafeRawBufferPointer) throws(SluiceError) -> ObjectClocks {
        let fields = try ChangeCoding.decodeRow(bytes)
        guard case .binary(let encoded)? = fields["clocks"], case .dictionary(let numbers)? = fields["numbers"] else {
            throw damagedClocks
        }
        do throws(SluiceError) {
            var clocks = try ObjectClocks(encoded: encoded)
            let known = clocks.properties
            clocks.properties = [:]
            for property in type.properties {
                guard case .int(let number)? = numbers[property.name], let id = UInt32(exactly: number) else { continue }
                clocks.properties[property.id] = known[id]
            }
            return clocks
        } catch {
            throw damagedClocks
        }
    }

    private var damagedClocks: SluiceError {
        SluiceError(.replicaCorrupt, "The clocks of a kept server row of \(type.name) in the local file cannot be read.")
    }
}
