import SluiceCore
import SluiceMerge

/// The server's rows of objects that have pending changes, kept beside the table, which shows both merged.
extension Writer {
    // MARK: Reading

    /// The server's state of an object; nil when nothing is pending for it: the table holds the server's row.
    private func serverObject(_ layout: TableLayout, key: Value) throws(SluiceError) -> ServerObject? {
        let statement = try connection.statement("SELECT row, clocks, time FROM _sluice_server WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        guard try statement.step() else { return nil }
        let row = statement.isNull(0) ? nil : try ChangeCoding.decodeRow(statement.bytes(0))
        let clocks = statement.isNull(1) ? nil : try layout.clocks(stored: Array(statement.bytes(1)))
        return ServerObject(row: row, clocks: clocks, rowTime: statement.isNull(2) ? 0 : statement.int(2))
    }

    func isKept(_ layout: TableLayout, key: Value) throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM _sluice_server WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        return try statement.step()
    }

    /// The server's state of an object that is edited: with neither row nor clocks when it is not kept.
    func keptServerObject(_ layout: TableLayout, key: Value) throws(SluiceError) -> ServerObject {
        try serverObject(layout, key: key) ?? ServerObject(row: nil)
    }

    // MARK: Keeping

    /// Before the first pending change of an object: keeps its row, which is the server's, and says what it is.
    func keepServerRow(_ layout: TableLayout, key: Value) throws(SluiceError) -> [String: Value]? {
        let row = try store.row(type: layout.index, key: key).map { named($0, layout) }
        try setServerObject(layout, key: key, ServerObject(row: row))
        return row
    }

    /// The same for an object that was just made: the server had none, unless it is known what it had.
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

    /// Notes that the server's row is not in the view any more.
    func loseServerRow(_ layout: TableLayout, key: Value) throws(SluiceError) {
        try setServerObject(layout, key: key, ServerObject(row: nil))
    }

    private func forgetServerRow(_ layout: TableLayout, key: Value) throws(SluiceError) {
        let statement = try connection.statement("DELETE FROM _sluice_server WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        try statement.run()
    }

    func named(_ row: Row, _ layout: TableLayout) -> [String: Value] {
        var values: [String: Value] = [:]
        for (index, property) in layout.type.properties.enumerated() { values[property.name] = row[index] }
        return values
    }

    func row(_ values: [String: Value], _ layout: TableLayout) -> Row {
        Row(layout.type.properties.map { values[$0.name] })
    }

    /// A newer row of the server's.
    struct NewServerRow {
        /// Nil: not in the view.
        var row: [String: Value]?
        /// The write times that came with it; nil for none.
        var times: WriteTimes?
        /// When it was committed, milliseconds since 1970; nil when that is not known.
        var time: Int64?
    }

    /// Takes note of the server's row of an object with pending changes and shows the outcome.
    /// What changesets that the server's rows have did to the object goes now, and not with the acknowledgement, which may come later: others
    /// have written over it since.
    /// - Parameter leaving: why there is none any more.
    /// - Returns: false when nothing is pending for the object; the caller then changes the table itself.
    func takeServerRow(
        _ layout: TableLayout, key: Value, _ new: NewServerRow, leaving: Leaving = .untold
    ) throws(SluiceError) -> Bool {
        guard var object = try serverObject(layout, key: key) else { return false }
        object.replace(with: new.row, times: new.times, rowTime: new.time, type: layout.type)
        try setServerObject(layout, key: key, object)
        let taken = try connection.statement("DELETE FROM _sluice_pending_change WHERE type = ? AND key = ? AND number <= ?")
        taken.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: taken)
        taken.bind(2, meta.taken)
        try taken.run()
        try show(layout, key: key, leaving: leaving)
        return true
    }

    // MARK: Showing

    /// The number that decides between writes of one time.
    var client: ClientID { meta.identity?.client ?? Overlay.unnumbered }

    /// The server's state of an object with the changes in the file, and those of the transaction under way.
    func overlaid(_ layout: TableLayout, key: Value, own: [ObjectChange]) throws(SluiceError) -> (server: ServerObject, state: ObjectState)
    {
        let server = try keptServerObject(layout, key: key)
        let pending = try pendingChanges(layout, key: key) + own.map { PendingChange(underWay: $0) }
        return (server, try Overlay.state(server: server, pending: pending, client: client, type: layout.type))
    }

    /// Makes the table show server row ⊕ pending changes; forgets the server row when nothing is pending any more.
    /// - Parameter leaving: why the object goes, if that is the outcome.
    func show(_ layout: TableLayout, key: Value, leaving: Leaving) throws(SluiceError) {
        guard let server = try serverObject(layout, key: key) else { return }
        let changes = try pendingChanges(layout, key: key)
        if changes.isEmpty { try forgetServerRow(layout, key: key) }
        if var shown = try Overlay.apply(server: server, pending: changes, client: client, type: layout.type) {
            shown[layout.type.properties[layout.key].name] = key
            if try store.put(type: layout.index, row(shown, layout)) { note(layout.index, key) }
        } else {
            let reason = try reason(leaving, layout, key)
            // What the app has deleted itself is not in the table any more.
            guard try store.delete(type: layout.index, key: key) else { return }
            note(layout.index, key)
            if let reason { noteLeft(layout, key, reason) }
        }
    }

    /// Shows every object with pending changes anew: their times are others.
    func showPending(leaving: Leaving) throws(SluiceError) {
        let kept = try connection.statement("SELECT type, key FROM _sluice_server")
        var objects: [(TableLayout, Value)] = []
        while try kept.step() {
            if let layout = layout(named: kept.string(0)) { objects.append((layout, layout.readKey(kept, 1))) }
        }
        kept.reset()
        for (layout, key) in objects { try show(layout, key: key, leaving: leaving) }
    }

    private func reason(_ leaving: Leaving, _ layout: TableLayout, _ key: Value) throws(SluiceError) -> LeftObject.Reason? {
        switch leaving {
        case .untold: return nil
        case .known(let reason): return reason
        case .unstaged(let set):
            guard let row = try store.row(type: layout.index, key: key) else { return nil }
            return LeavingReason(set, layout).of(row)
        }
    }

    /// What the server's row of an object does not have, oldest first.
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
    /// Stands for the numbers of the properties, by which clocks are stored.
    private var numbering: UInt64 {
        ValueHash(.list(type.properties.flatMap { [.int(Int64($0.id)), .string($0.name)] })).rawValue
    }

    fileprivate func stored(_ clocks: ObjectClocks) -> [UInt8] {
        withUnsafeBytes(of: numbering.littleEndian) { Array($0) } + clocks.encoded
    }

    /// Nil for clocks that were stored when the class had other properties: what is pending counts as later then.
    fileprivate func clocks(stored bytes: [UInt8]) throws(SluiceError) -> ObjectClocks? {
        guard bytes.prefix(8).elementsEqual(withUnsafeBytes(of: numbering.littleEndian) { Array($0) }) else { return nil }
        do throws(SluiceError) {
            return try ObjectClocks(encoded: Array(bytes.dropFirst(8)))
        } catch {
            throw SluiceError(.replicaCorrupt, "The clocks of a kept server row of \(type.name) in the local file cannot be read.")
        }
    }
}
