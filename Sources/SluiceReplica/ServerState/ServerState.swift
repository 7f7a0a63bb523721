import SluiceCore
import SluiceMerge

/// Live commits of the server.
extension Writer {
    // MARK: Live commits

    func apply(_ batch: ReplicaBatch) throws(SluiceError) {
        // One check per batch: without pending changes no row needs a lookup of its server row.
        let hasPending = try any("SELECT 1 FROM _sluice_server LIMIT 1")
        for commit in batch.commits where commit.lsn > meta.applied.lsn {
            meta.taken = max(meta.taken, commit.changeset)
            for change in batch.changes[commit.changes] { try apply(change, of: commit, batch, hasPending: hasPending) }
            if commit.changeset > 0 { try dropEmpty() }
            if commit.time > 0 { observe(commit.time / 1_000 + 1) }
            // Another device's clock may be ahead of the server's.
            meta.clock = max(meta.clock, commit.writeTime)
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

    private func apply(
        _ change: ReplicaRowChange, of commit: ReplicaCommit, _ batch: ReplicaBatch, hasPending: Bool
    ) throws(SluiceError) {
        let layout = try table(change.type)
        switch change.event {
        case .entered, .updated:
            guard let row = change.row else {
                throw SluiceError(.badSyntax, "A change of \(layout.type.name) that enters the view has no row.")
            }
            try batch.rows.withView(row) { view throws(SluiceError) in
                let key = try key(of: view, layout)
                if hasPending, try isKept(layout, key: key) {
                    let new = NewServerRow(
                        row: named(Row(view), layout), times: try batch.times(of: change, layout.type), time: commit.milliseconds)
                    _ = try takeServerRow(layout, key: key, new)
                } else {
                    try put(view, key, layout)
                }
            }
        case .deleted, .leftQuery, .lostPermission:
            guard let key = change.key else {
                throw SluiceError(.badSyntax, "A change of \(layout.type.name) that leaves the view has no key.")
            }
            if hasPending, try isKept(layout, key: key) {
                let new = NewServerRow(row: nil, times: try batch.times(of: change, layout.type), time: commit.milliseconds)
                _ = try takeServerRow(layout, key: key, new, leaving: .known(change.event.leaving))
            } else {
                try remove(layout, key, change.event.leaving)
            }
        }
    }

    private func put(_ view: RowView, _ key: Value, _ layout: TableLayout) throws(SluiceError) {
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

extension ReplicaCommit {
    /// The commit's time in milliseconds, rounded as PostgreSQL does where the gateway merges. `nil` if unknown.
    fileprivate var milliseconds: Int64? { time > 0 ? (min(time, .max - 500) + 500) / 1_000 : nil }
}

extension ReplicaBatch {
    /// The write times of a change, in the numbers of the replica's class. `nil` for SQL.
    fileprivate func times(of change: ReplicaRowChange, _ type: ObjectType) throws(SluiceError) -> WriteTimes? {
        guard !change.times.isEmpty else { return nil }
        let bytes = Array(rows.arena[Int(change.times.lowerBound)..<Int(change.times.upperBound)])
        return try WriteTimes(encoded: bytes).numbered(as: type, from: numbers.indices.contains(change.type) ? numbers[change.type] : [])
    }
}
