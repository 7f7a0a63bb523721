import SluiceCore
import SluiceMerge

/// Bootstraps: rows staged until all have arrived, then shown in one transaction.
extension Writer {
    /// - Parameters:
    ///   - types: the classes whose staged rows are kept for `stageKept`.
    ///   - checkpoint: the gateway's resume offer for those rows.
    func beginBootstrap(version: UInt64, keeping types: [Int], checkpoint: [UInt8]) throws(SluiceError) {
        for layout in layouts where layout.hasTable {
            if types.contains(layout.index) { try putAside(layout) } else { try dropStaging(layout) }
        }
        try dropNotes()
        // Cached statements may refer to the tables that were dropped or renamed.
        connection.forgetStatements()
        meta.checkpoint = checkpoint
        meta.bootstrapping = version
        if try connection.subscriptionState(version: version) == .pending {
            try setSubscriptionState(version: version, .bootstrapping)
        }
    }

    private func dropStaging() throws(SluiceError) {
        for layout in layouts where layout.hasTable { try dropStaging(layout) }
        try dropNotes()
        meta.checkpoint = []
    }

    func dropStaging(_ layout: TableLayout) throws(SluiceError) {
        try connection.execute("DROP TABLE IF EXISTS \(layout.staging); DROP TABLE IF EXISTS \(layout.earlier)")
    }

    private func dropNotes() throws(SluiceError) {
        try connection.execute("DELETE FROM _sluice_staged_removal; DELETE FROM _sluice_staged_kept; DELETE FROM _sluice_staged_times")
    }

    /// Moves the staged rows to the table of earlier ones. The latest row of a key wins.
    private func putAside(_ layout: TableLayout) throws(SluiceError) {
        guard try isStaged(layout) else { return }
        guard try isPutAside(layout) else { return try connection.execute("ALTER TABLE \(layout.staging) RENAME TO \(layout.earlier)") }
        let rows = "SELECT \(layout.columns) FROM \(layout.staging) WHERE true"
        try connection.execute("\(layout.upsert(values: rows, table: layout.earlier)); DROP TABLE \(layout.staging)")
    }

    private func isStaged(_ layout: TableLayout) throws(SluiceError) -> Bool { try hasTable("_sluice_staging_\(layout.type.name)") }

    private func isPutAside(_ layout: TableLayout) throws(SluiceError) -> Bool { try hasTable("_sluice_earlier_\(layout.type.name)") }

    private func hasTable(_ name: String) throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?")
        statement.bind(0, name)
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

    /// Records rows of these keys as unchanged, or restores those that were staged before the bootstrap was resumed.
    func stageKept(type: Int, keys: [Value]) throws(SluiceError) {
        let layout = try table(type)
        let isPutAside = try isPutAside(layout)
        if isPutAside, try !isStaged(layout) { try connection.execute(layout.creation(of: layout.staging)) }
        for key in keys {
            if isPutAside, try bringBack(key, layout) { continue }
            let statement = try connection.statement("INSERT OR IGNORE INTO _sluice_staged_kept VALUES (?, ?)")
            statement.bind(0, layout.type.name)
            layout.bindKey(key, at: 1, to: statement)
            try statement.run()
        }
    }

    /// - Returns: `true` if a staged row was restored.
    private func bringBack(_ key: Value, _ layout: TableLayout) throws(SluiceError) -> Bool {
        let row = "SELECT \(layout.columns) FROM \(layout.earlier) WHERE \(layout.keyColumn) = ?"
        let statement = try connection.statement(layout.upsert(values: row, table: layout.staging))
        layout.bindKey(key, at: 0, to: statement)
        try statement.run()
        return connection.changes > 0
    }

    /// Stages the write times of rows, merged with those staged earlier for the same row.
    /// - Parameter numbers: the numbers that they use for properties. Empty if they are the replica's own.
    func stageTimes(type: Int, _ times: [StagedTimes], numbers: [UInt32]) throws(SluiceError) {
        let layout = try table(type)
        for row in times {
            let known = try stagedTimes(layout, row.key)
            let new = row.times.isEmpty ? WriteTimes() : try WriteTimes(encoded: row.times).numbered(as: layout.type, from: numbers)
            let statement = try connection.statement("INSERT OR REPLACE INTO _sluice_staged_times VALUES (?, ?, ?, ?)")
            statement.bind(0, layout.type.name)
            layout.bindKey(row.key, at: 1, to: statement)
            statement.bind(2, (known.times?.followed(by: new) ?? new).encoded)
            statement.bind(3, max(row.commitTime, known.time ?? 0))
            try statement.run()
        }
    }

    /// Returns the staged write times and commit time of a row. Both are `nil` if none were staged.
    private func stagedTimes(_ layout: TableLayout, _ key: Value) throws(SluiceError) -> NewServerRow {
        let statement = try connection.statement("SELECT times, time FROM _sluice_staged_times WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        guard try statement.step() else { return NewServerRow() }
        return NewServerRow(times: try WriteTimes(encoded: Array(statement.bytes(0))), time: statement.int(1))
    }

    /// Drops staged rows of these keys and records the keys for removal at the end. A row that is staged later overrides the removal.
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

    /// Removes the recorded removals from the view, except objects that were staged again.
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
            // An object with pending changes loses only its server row; the merge decides whether it stays.
            if try takeServerRow(layout, key: key, NewServerRow(), leaving: .known(reason)) { continue }
            try remove(layout, key, reason)
        }
    }

    func remove(_ layout: TableLayout, _ key: Value, _ reason: LeftObject.Reason) throws(SluiceError) {
        guard try store.delete(type: layout.index, key: key) else { return }
        note(layout.index, key)
        noteLeft(layout, key, reason)
    }

    func endBootstrap(
        version: UInt64, lsn: LSN, types: [Int], held: [UInt8], taken: UInt64, completes: Bool
    ) throws(SluiceError) {
        // First: `takeServerRow` drops the pending changes up to this number.
        meta.taken = max(meta.taken, taken)
        let replaced = Set(types)
        let set = try connection.subscriptionSet(version: version)
        for layout in layouts where layout.hasTable {
            let staged = try isStaged(layout)
            try removeNamed(layout, isStaged: staged)
            if !staged && !replaced.contains(layout.index) { continue }
            if !staged { try connection.execute(layout.creation(of: layout.staging)) }
            // Objects with pending changes come first: the two steps after it skip those that keep a server row.
            try takePending(layout, set, replaces: replaced.contains(layout.index))
            if replaced.contains(layout.index) { try removeUnstaged(layout, LeavingReason(set, layout, in: store.schema)) }
            try showStaged(layout)
        }
        connection.forgetStatements()
        try dropStaging()
        // Live commits of the older view may have moved the position further.
        meta.applied = AppliedPosition(lsn: max(lsn, meta.applied.lsn), version: version)
        meta.bootstrapping = 0
        meta.held = held
        if completes { try setSubscriptionState(version: version, .complete) }
        // The rows shown now reflect these changesets, so their commits need not be awaited.
        try dropPending("p.acknowledged IS NOT NULL AND p.number <= ?1", taken, leaving: .unstaged(set))
        try dropApplied(leaving: .unstaged(set))
        try dropEmpty()
        try finishReset(leaving: .unstaged(set))
    }

    /// Stores the staged rows of objects with pending changes as their server rows, and shows the merge.
    private func takePending(_ layout: TableLayout, _ set: StoredSubscriptionSet, replaces: Bool) throws(SluiceError) {
        let kept = try connection.statement("SELECT key FROM _sluice_server WHERE type = ?")
        kept.bind(0, layout.type.name)
        var keys: [Value] = []
        while try kept.step() { keys.append(layout.readKey(kept)) }
        kept.reset()
        // The keys were read in full: `show` deletes from the table that the statement was reading.
        for key in keys {
            let statement = try connection.statement(
                "SELECT \(layout.columns) FROM \(layout.staging) WHERE \(layout.keyColumn) = ?")
            layout.bindKey(key, at: 0, to: statement)
            var buffer = RowBuffer()
            if try statement.step() {
                let row = layout.read(statement, into: &buffer)
                statement.reset()
                var new = try stagedTimes(layout, key)
                // The app sees these values from here on, and its later writes must win.
                meta.clock = max(meta.clock, new.times?.latest ?? .zero)
                new.row = named(buffer.withView(row) { Row($0) }, layout)
                _ = try takeServerRow(layout, key: key, new)
            } else {
                statement.reset()
                if replaces, try !isKept(layout, key) {
                    // The app's write to it may be rejected, which is not known yet.
                    try loseServerRow(layout, key: key)
                    try show(layout, key: key, leaving: .unstaged(set))
                }
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

    /// The objects with pending changes, whose server rows are stored apart.
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
