import SluiceCore

/// Live commits of the server.
extension Writer {
    // MARK: Live commits

    func apply(_ batch: ReplicaBatch) throws(SluiceError) {
        // One check per batch: without pending changes no row needs a lookup of its server row.
        let hasPending = try any("SELECT 1 FROM _sluice_server LIMIT 1")
        for commit in batch.commits where commit.lsn > meta.applied.lsn {
            meta.taken = max(meta.taken, commit.changeset)
            for change in batch.changes[commit.changes] { try apply(change, rows: batch.rows, hasPending: hasPending) }
            if commit.changeset > 0 { try dropEmpty() }
            if commit.time > 0 { observe(commit.time / 1_000 + 1) }
        }
        if batch.lsn > meta.applied.lsn {
            meta.applied.lsn = batch.lsn
            meta.applied.witness = batch.witness
        }
        try dropApplied(leaving: .known(.leftQuery))
    }

    /// Moves the clock forward: later writes get times after those seen, even if the device's clock is behind.
    func observe(_ milliseconds: Int64) { meta.clock = max(meta.clock, HybridTime(milliseconds: milliseconds)) }

    private func any(_ sql: String) throws(SluiceError) -> Bool {
        let statement = try connection.statement(sql)
        defer { statement.reset() }
        return try statement.step()
    }

    private func apply(_ change: ReplicaRowChange, rows: RowBuffer, hasPending: Bool) throws(SluiceError) {
        let layout = try table(change.type)
        switch change.event {
        case .entered, .updated:
            guard let row = change.row else {
                throw SluiceError(.badSyntax, "A change of \(layout.type.name) that enters the view has no row.")
            }
            try rows.withView(row) { view throws(SluiceError) in try put(view, layout, hasPending: hasPending) }
        case .deleted, .leftQuery, .lostPermission:
            guard let key = change.key else {
                throw SluiceError(.badSyntax, "A change of \(layout.type.name) that leaves the view has no key.")
            }
            if hasPending, try takeServerRow(layout, key: key, nil, leaving: .known(change.event.leaving)) { return }
            try remove(layout, key, change.event.leaving)
        }
    }

    private func put(_ view: RowView, _ layout: TableLayout, hasPending: Bool) throws(SluiceError) {
        let key = try key(of: view, layout)
        if hasPending, try takeServerRow(layout, key: key, named(Row(view), layout)) { return }
        let statement: Statement
        if let last = lastUpsert, last.type == layout.index {
            statement = last.statement
            statement.reset()
        } else {
            statement = try connection.statement(layout.upsert)
            lastUpsert = (layout.index, statement)
        }
        layout.bind(view, to: statement)
        try statement.run()
        if connection.changes > 0 { note(layout.index, key) }
    }

    private func key(of view: RowView, _ layout: TableLayout) throws(SluiceError) -> Value {
        guard let key = view.value(layout.key), !key.isNull else {
            throw SluiceError(.badSyntax, "A row of \(layout.type.name) has no primary key.")
        }
        return key
    }

    func table(_ type: Int) throws(SluiceError) -> TableLayout {
        guard layouts.indices.contains(type), layouts[type].hasTable else {
            throw SluiceError(.unknownType, "The type with index \(type) has no rows on the device.")
        }
        return layouts[type]
    }
}

extension ReplicaRowChange.Event {
    /// The reason that the object left. Events that enter or stay have none.
    fileprivate var leaving: LeftObject.Reason {
        switch self {
        case .deleted: .deleted
        case .lostPermission: .lostPermission
        case .leftQuery, .entered, .updated: .leftQuery
        }
    }
}
