import SluiceCore

/// What the server says.
extension Writer {
    // MARK: Live commits

    func apply(_ batch: ReplicaBatch) throws(SluiceError) {
        let hasPending = try any("SELECT 1 FROM _sluice_server LIMIT 1")
        for commit in batch.commits where commit.lsn > meta.applied.lsn {
            for change in batch.changes[commit.changes] { try apply(change, rows: batch.rows, hasPending: hasPending) }
            // Not with the acknowledgement, which may come later: what others have written over it since is in the batch too.
            if commit.changeset > 0 { try dropPending(upTo: commit.changeset) }
            if commit.time > 0 { observe(commit.time / 1_000 + 1) }
        }
        if batch.lsn > meta.applied.lsn {
            meta.applied.lsn = batch.lsn
            meta.applied.witness = batch.witness
        }
        try dropApplied()
    }

    /// What is written from now on is later than what was seen, however far behind the device's clock is.
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
            if hasPending, try takeServerRow(layout, key: key, nil) { return }
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

    private func table(_ type: Int) throws(SluiceError) -> TableLayout {
        guard layouts.indices.contains(type), layouts[type].hasTable else {
            throw SluiceError(.unknownType, "The type with index \(type) has no rows on the device.")
        }
        return layouts[type]
    }

    // MARK: Bootstraps

    func beginBootstrap(version: UInt64) throws(SluiceError) {
        try dropStaging()
        meta.bootstrapping = version
        if try subscriptionState(version: version) == .pending {
            try setSubscriptionState(version: version, .bootstrapping)
        }
    }

    private func dropStaging() throws(SluiceError) {
        for layout in layouts where layout.hasTable {
            try connection.execute("DROP TABLE IF EXISTS \(layout.staging)")
        }
        try connection.execute("DELETE FROM _sluice_staged_removal; DELETE FROM _sluice_staged_kept")
    }

    private func isStaged(_ layout: TableLayout) throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?")
        statement.bind(0, "_sluice_staging_\(layout.type.name)")
        defer { statement.reset() }
        return try statement.step()
    }

    func stage(type: Int, rows: [RowRef], of buffer: RowBuffer) throws(SluiceError) {
        let layout = try table(type)
        if try !isStaged(layout) { try connection.execute(layout.creation(of: layout.staging)) }
        let statement = try connection.statement(layout.upsert(values: layout.placeholders, table: layout.staging))
        try buffer.withBase { cells, arena throws(SluiceError) in
            for row in rows {
                let view = RowView(cells: cells + Int(row.start), count: Int(row.count), arena: arena)
                guard view[layout.key].tag != .absent, view[layout.key].tag != .null else {
                    throw SluiceError(.badSyntax, "A row of \(layout.type.name) has no primary key.")
                }
                layout.bind(view, to: statement)
                try statement.run()
            }
        }
    }

    /// Rows of these keys stay as the file has them.
    func stageKept(type: Int, keys: [Value]) throws(SluiceError) {
        let layout = try table(type)
        let statement = try connection.statement("INSERT OR IGNORE INTO _sluice_staged_kept VALUES (?, ?)")
        for key in keys {
            statement.bind(0, layout.type.name)
            layout.bindKey(key, at: 1, to: statement)
            try statement.run()
        }
    }

    /// Rows of these keys that are staged are not to be shown, those that the file has are to go at the end; a row that is
    /// staged later counts again.
    func stageRemoval(type: Int, keys: [Value], reasons: [LeftObject.Reason]) throws(SluiceError) {
        let layout = try table(type)
        let isStaged = try isStaged(layout)
        for (index, key) in keys.enumerated() {
            if isStaged {
                let unstage = try connection.statement("DELETE FROM \(layout.staging) WHERE \(layout.keyColumn) = ?")
                layout.bindKey(key, at: 0, to: unstage)
                try unstage.run()
            }
            let unkept = try connection.statement("DELETE FROM _sluice_staged_kept WHERE type = ? AND key = ?")
            unkept.bind(0, layout.type.name)
            layout.bindKey(key, at: 1, to: unkept)
            try unkept.run()
            let statement = try connection.statement("INSERT OR REPLACE INTO _sluice_staged_removal VALUES (?, ?, ?)")
            statement.bind(0, layout.type.name)
            layout.bindKey(key, at: 1, to: statement)
            let reason = reasons.count == keys.count ? reasons[index] : .leftView
            statement.bind(2, reason.rawValue)
            try statement.run()
        }
    }

    /// Takes the removals named out of the view, except for objects that were staged again.
    private func removeNamed(_ layout: TableLayout, isStaged: Bool) throws(SluiceError) {
        let again = isStaged ? "AND key NOT IN (SELECT \(layout.keyColumn) FROM \(layout.staging))" : ""
        let named = try connection.statement("SELECT key, reason FROM _sluice_staged_removal WHERE type = ? \(again)")
        named.bind(0, layout.type.name)
        var removals: [(key: Value, reason: LeftObject.Reason)] = []
        while try named.step() {
            removals.append((layout.readKey(named), LeftObject.Reason(rawValue: named.int(1)) ?? .leftView))
        }
        named.reset()
        for (key, reason) in removals {
            if try takeServerRow(layout, key: key, nil) { continue }
            try remove(layout, key, reason)
        }
    }

    private func remove(_ layout: TableLayout, _ key: Value, _ reason: LeftObject.Reason) throws(SluiceError) {
        guard try store.delete(type: layout.index, key: key) else { return }
        note(layout.index, key)
        noteLeft(layout, key, reason)
    }

    func endBootstrap(
        version: UInt64, lsn: LSN, types: [Int], held: [UInt8], taken: UInt64, completes: Bool
    ) throws(SluiceError) {
        let replaced = Set(types)
        for layout in layouts where layout.hasTable {
            let staged = try isStaged(layout)
            try removeNamed(layout, isStaged: staged)
            if !staged && !replaced.contains(layout.index) { continue }
            if !staged { try connection.execute(layout.creation(of: layout.staging)) }
            try takePending(layout, replaces: replaced.contains(layout.index))
            if replaced.contains(layout.index) { try removeUnstaged(layout, LeavingReason(try subscriptionSet(version: version), layout)) }
            try showStaged(layout)
        }
        connection.forgetStatements()
        try dropStaging()
        meta.applied = AppliedPosition(lsn: max(lsn, meta.applied.lsn), version: version)
        meta.bootstrapping = 0
        meta.held = held
        if completes { try setSubscriptionState(version: version, .complete) }
        try dropPending(upTo: taken)
        try dropApplied()
        try finishReset()
    }

    /// The staged rows of objects with pending changes become their server rows; they are shown under the changes.
    private func takePending(_ layout: TableLayout, replaces: Bool) throws(SluiceError) {
        let kept = try connection.statement("SELECT key FROM _sluice_server WHERE type = ?")
        kept.bind(0, layout.type.name)
        var keys: [Value] = []
        while try kept.step() { keys.append(layout.readKey(kept)) }
        kept.reset()
        for key in keys {
            let statement = try connection.statement(
                "SELECT \(layout.columns) FROM \(layout.staging) WHERE \(layout.keyColumn) = ?")
            layout.bindKey(key, at: 0, to: statement)
            var buffer = RowBuffer()
            if try statement.step() {
                let row = layout.read(statement, into: &buffer)
                statement.reset()
                _ = try takeServerRow(layout, key: key, named(buffer.withView(row) { Row($0) }, layout))
            } else {
                statement.reset()
                if replaces, try !isKept(layout, key) { _ = try takeServerRow(layout, key: key, nil) }
            }
        }
    }

    private func isKept(_ layout: TableLayout, _ key: Value) throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM _sluice_staged_kept WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        return try statement.step()
    }

    /// Objects with pending changes, whose server rows are kept apart.
    private static let pendingKeys = "(SELECT key FROM _sluice_server WHERE type = ?1)"

    private func removeUnstaged(_ layout: TableLayout, _ reason: LeavingReason) throws(SluiceError) {
        let statement = try connection.statement(
            """
            DELETE FROM \(layout.table) WHERE \(layout.keyColumn) NOT IN (SELECT \(layout.keyColumn) FROM \(layout.staging))
            AND \(layout.keyColumn) NOT IN (SELECT key FROM _sluice_staged_kept WHERE type = ?1)
            AND \(layout.keyColumn) NOT IN \(Writer.pendingKeys) RETURNING \(layout.columns)
            """)
        statement.bind(0, layout.type.name)
        var buffer = RowBuffer()
        while try statement.step() {
            buffer.removeAll()
            let row = layout.read(statement, into: &buffer)
            let (key, why) = buffer.withView(row) { ($0.value(layout.key) ?? .null, reason.of($0)) }
            note(layout.index, key)
            noteLeft(layout, key, why)
        }
        statement.reset()
    }

    private func showStaged(_ layout: TableLayout) throws(SluiceError) {
        let rows = """
            SELECT \(layout.columns) FROM \(layout.staging) WHERE \(layout.keyColumn) NOT IN \(Writer.pendingKeys) ORDER BY \(layout.rowid)
            """
        try noteKeys("\(layout.upsert(values: rows, table: layout.table)) RETURNING \(layout.keyColumn)", layout)
    }

    private func noteKeys(_ sql: String, _ layout: TableLayout) throws(SluiceError) {
        let statement = try connection.statement(sql)
        statement.bind(0, layout.type.name)
        while try statement.step() { note(layout.index, layout.readKey(statement)) }
        statement.reset()
    }
}

extension ReplicaRowChange.Event {
    /// Why the object left; those that enter or stay never do.
    fileprivate var leaving: LeftObject.Reason {
        switch self {
        case .deleted: .deleted
        case .lostPermission: .lostPermission
        case .leftQuery, .entered, .updated: .leftQuery
        }
    }
}
