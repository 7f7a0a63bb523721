import SluiceCore
import SluiceMerge

/// The server's rows of objects with pending changes, and the rows that the file shows.
extension Writer {
    /// The server's row of an object that has pending changes.
    private enum ServerRow {
        /// Nothing is pending: the table holds the server's row.
        case notKept
        case kept([String: Value]?)
    }

    private func serverRow(_ layout: TableLayout, key: Value) throws(SluiceError) -> ServerRow {
        let statement = try connection.statement("SELECT row FROM _sluice_server WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        guard try statement.step() else { return .notKept }
        return .kept(statement.isNull(0) ? nil : try ChangeCoding.decodeRow(statement.bytes(0)))
    }

    func isKept(_ layout: TableLayout, key: Value) throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM _sluice_server WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        return try statement.step()
    }

    /// Before the first pending change of an object: keeps its row, which is the server's, and says what it is.
    func keepServerRow(_ layout: TableLayout, key: Value) throws(SluiceError) -> [String: Value]? {
        let row = try store.row(type: layout.index, key: key).map { named($0, layout) }
        try setServerRow(layout, key: key, row)
        return row
    }

    /// The same for an object that was just made: the server had none, unless it is known what it had.
    func keepAbsence(_ layout: TableLayout, key: Value) throws(SluiceError) {
        if try isKept(layout, key: key) { return }
        try setServerRow(layout, key: key, nil)
    }

    /// What the server has of an object, once it is kept; nil for nothing.
    func keptServerRow(_ layout: TableLayout, key: Value) throws(SluiceError) -> [String: Value]? {
        if case .kept(let row) = try serverRow(layout, key: key) { row } else { nil }
    }

    func setServerRow(_ layout: TableLayout, key: Value, _ row: [String: Value]?) throws(SluiceError) {
        let statement = try connection.statement(
            "INSERT INTO _sluice_server VALUES (?, ?, ?) ON CONFLICT (type, key) DO UPDATE SET row = excluded.row")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        if let row { statement.bind(2, ChangeCoding.encode(row: row)) } else { statement.bindNull(2) }
        try statement.run()
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

    /// Takes note of the server's row (nil: not in the view) of an object with pending changes and shows the outcome.
    /// What changesets that the server's rows have did to the object goes now, and not with the acknowledgement, which may come later: others
    /// have written over it since.
    /// - Parameter leaving: why there is none any more.
    /// - Returns: false when nothing is pending for the object; the caller then changes the table itself.
    func takeServerRow(
        _ layout: TableLayout, key: Value, _ row: [String: Value]?, leaving: Leaving = .untold
    ) throws(SluiceError) -> Bool {
        guard try isKept(layout, key: key) else { return false }
        try setServerRow(layout, key: key, row)
        try dropTaken(layout, key: key)
        try show(layout, key: key, leaving: leaving)
        return true
    }

    // MARK: Showing

    /// Makes the table show server row ⊕ pending changes; forgets the server row when nothing is pending any more.
    /// - Parameter leaving: why the object goes, if that is the outcome.
    func show(_ layout: TableLayout, key: Value, leaving: Leaving) throws(SluiceError) {
        guard case .kept(let server) = try serverRow(layout, key: key) else { return }
        let changes = try pendingChanges(layout, key: key)
        if changes.isEmpty { try forgetServerRow(layout, key: key) }
        if var shown = try Overlay.apply(server: server, pending: changes, type: layout.type) {
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

    private func reason(_ leaving: Leaving, _ layout: TableLayout, _ key: Value) throws(SluiceError) -> LeftObject.Reason? {
        switch leaving {
        case .untold: return nil
        case .known(let reason): return reason
        case .unstaged(let set):
            guard let row = try store.row(type: layout.index, key: key) else { return nil }
            return LeavingReason(set, layout).of(row)
        }
    }

    func pendingChanges(_ layout: TableLayout, key: Value) throws(SluiceError) -> [ObjectChange] {
        let statement = try connection.statement(
            "SELECT change FROM _sluice_pending_change WHERE type = ? AND key = ? ORDER BY number, ordinal")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        var changes: [ObjectChange] = []
        while try statement.step() { changes.append(try ChangeCoding.decode(statement.bytes(0))) }
        return changes
    }
}
