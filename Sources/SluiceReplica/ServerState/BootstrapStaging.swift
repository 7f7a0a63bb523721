package import SluiceCore
import SluiceMerge

/// The rows of a bootstrap under way, staged until all have arrived.
package struct BootstrapStaging: Sendable {
    let database: ReplicaDatabase
    private var connection: Connection { database.connection }

    /// Drops the staged rows, except those of the classes of a bootstrap that is resumed, which are kept for `stageKept`.
    func begin(keeping types: [Int]) throws(SluiceError) {
        for layout in database.layouts where layout.hasTable {
            if types.contains(layout.index) { try putAside(layout) } else { try connection.dropStaging(layout) }
        }
        try dropNotes()
        // Cached statements may refer to the tables that were dropped or renamed.
        connection.forgetStatements()
    }

    /// Drops all staged rows.
    func end() throws(SluiceError) {
        for layout in database.layouts where layout.hasTable { try connection.dropStaging(layout) }
        try dropNotes()
        database.meta.checkpoint = []
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

    func isStaged(_ layout: TableLayout) throws(SluiceError) -> Bool { try hasTable("_sluice_staging_\(layout.type.name)") }

    private func isPutAside(_ layout: TableLayout) throws(SluiceError) -> Bool { try hasTable("_sluice_earlier_\(layout.type.name)") }

    private func hasTable(_ name: String) throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?")
        statement.bind(0, name)
        defer { statement.reset() }
        return try statement.step()
    }

    /// Gives a class its table of staged rows, unless it has one.
    func create(_ layout: TableLayout) throws(SluiceError) {
        if try !isStaged(layout) { try connection.execute(layout.creation(of: layout.staging)) }
    }

    /// Stages rows of one class until the end of the bootstrap. A row replaces a staged row with its key. Takes about 2 µs a row.
    /// - Parameters:
    ///   - type: the index in `Replica.schema.types`.
    ///   - rows: rows of `buffer`, with cells in the order of the class's properties. Absent cells read as the default.
    ///   - checkpoint: the resume offer that covers them. Empty keeps the last one.
    package func stage(type: Int, rows: [RowRef], of buffer: RowBuffer, checkpoint: [UInt8] = []) throws(SluiceError) {
        let layout = try database.table(type)
        try create(layout)
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
        if !checkpoint.isEmpty { database.meta.checkpoint = checkpoint }
    }

    /// Records objects of the view that stay as the replica has them, or restores those that were staged before the bootstrap was
    /// resumed. A row or a removal with the same key overrides this.
    package func stageKept(type: Int, keys: [Value]) throws(SluiceError) {
        let layout = try database.table(type)
        let isPutAside = try isPutAside(layout)
        if isPutAside { try create(layout) }
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

    /// Stages the write times of rows, for the objects with pending changes.
    /// - Parameters:
    ///   - rows: they are merged with those staged earlier for the same row.
    ///   - numbers: the numbers that they use for properties, in the order of the class's properties. Empty if they are its own.
    package func stageTimes(type: Int, _ rows: [StagedTimes], numbers: [UInt32] = []) throws(SluiceError) {
        let layout = try database.table(type)
        for row in rows {
            let known = try times(of: row.key, layout)
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
    func times(of key: Value, _ layout: TableLayout) throws(SluiceError) -> NewServerRow {
        let statement = try connection.statement("SELECT times, time FROM _sluice_staged_times WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        guard try statement.step() else { return NewServerRow() }
        return NewServerRow(times: try WriteTimes(encoded: Array(statement.bytes(0))), time: statement.int(1))
    }

    /// Drops staged rows of these keys and records the keys for removal at the end: objects that left the view during the bootstrap, or
    /// with the new set. A row that is staged later overrides the removal.
    /// - Parameter reasons: the reasons, in the order of the keys. Empty if unknown.
    package func stageRemoval(type: Int, keys: [Value], reasons: [LeftObject.Reason] = []) throws(SluiceError) {
        let layout = try database.table(type)
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

    /// Returns the objects recorded for removal, except those that were staged again.
    func removals(_ layout: TableLayout, isStaged: Bool) throws(SluiceError) -> [(key: Value, reason: LeftObject.Reason)] {
        let again = isStaged ? "AND key NOT IN (SELECT \(layout.keyColumn) FROM \(layout.staging))" : ""
        let named = try connection.statement("SELECT key, reason FROM _sluice_staged_removal WHERE type = ? \(again)")
        named.bind(0, layout.type.name)
        var removals: [(key: Value, reason: LeftObject.Reason)] = []
        while try named.step() {
            removals.append((layout.readKey(named), LeftObject.Reason(rawValue: named.int(1)) ?? .leftView))
        }
        named.reset()
        return removals
    }

    /// `true` if the object is recorded as unchanged.
    func isKept(_ layout: TableLayout, _ key: Value) throws(SluiceError) -> Bool {
        let statement = try connection.statement("SELECT 1 FROM _sluice_staged_kept WHERE type = ? AND key = ?")
        statement.bind(0, layout.type.name)
        layout.bindKey(key, at: 1, to: statement)
        defer { statement.reset() }
        return try statement.step()
    }
}

extension Connection {
    /// Drops the staged rows of a class.
    func dropStaging(_ layout: TableLayout) throws(SluiceError) {
        try execute("DROP TABLE IF EXISTS \(layout.staging); DROP TABLE IF EXISTS \(layout.earlier)")
    }
}
