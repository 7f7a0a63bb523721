package import SluiceCore
import SluiceMerge

/// The server's state in a replica: identity and position, bootstraps, live commits and client resets.
package final class ServerState: @unchecked Sendable {  // Sendable because: it is used like its database.
    package let staging: BootstrapStaging
    package let reset: ClientReset
    private let database: ReplicaDatabase
    private let local: LocalChanges
    private let subscriptions: SubscriptionStore
    private var overlays: OverlayStore { local.overlays }
    private var connection: Connection { database.connection }
    /// The statement of the last row. Rows of one class often arrive in a row; a lookup by text would cost a tenth of each.
    private var lastUpsert: (type: Int, statement: Statement)?

    init(_ database: ReplicaDatabase, _ local: LocalChanges, _ subscriptions: SubscriptionStore, _ ingest: IngestQueue, owner: String?) {
        self.database = database
        self.local = local
        self.subscriptions = subscriptions
        staging = BootstrapStaging(database: database)
        reset = ClientReset(database: database, local: local, subscriptions: subscriptions, ingest: ingest, owner: owner)
    }

    // MARK: Identity and position

    /// The identity that the gateway allotted. `nil` before the first session.
    package var identity: ReplicaIdentity? { database.meta.identity }

    /// `true` if the file contains writes of another user than the one who opened it. That user may never have had a session with it.
    package var isForeign: Bool { reset.owner.map { $0 != database.meta.owner } ?? false }

    /// The position that the replica is complete for.
    package var applied: AppliedPosition { database.meta.applied }

    /// The client view record of the last bootstrap. Empty if there was none, or the replica's classes have changed.
    package var held: [UInt8] { database.meta.held }

    /// The resume offer of an unfinished bootstrap. Empty if no staged rows can be resumed.
    package var checkpoint: [UInt8] { database.meta.checkpoint }

    /// Stores the identity of the first `Welcome`. Runs in a durable transaction.
    package func setIdentity(_ identity: ReplicaIdentity) { database.meta.identity = identity }

    /// Records the server's clock, in milliseconds since 1970. Later local writes get times that are not behind it, even if the device's
    /// clock is.
    package func observe(_ milliseconds: Int64) { database.meta.clock = max(database.meta.clock, HybridTime(milliseconds: milliseconds)) }

    // MARK: Bootstraps

    /// Begins to stage a bootstrap. The set `version` becomes bootstrapping if it was pending. Drops staged rows of other classes.
    /// - Parameters:
    ///   - types: the classes whose earlier staged rows are kept for `stageKept`.
    ///   - checkpoint: the gateway's resume offer for those rows.
    package func beginBootstrap(version: UInt64, keeping types: [Int] = [], checkpoint: [UInt8] = []) throws(SluiceError) {
        try staging.begin(keeping: types)
        database.meta.checkpoint = checkpoint
        database.meta.bootstrapping = version
        if try subscriptions.state(version: version) == .pending { try subscriptions.setState(version: version, .bootstrapping) }
    }

    /// Shows the staged rows in one transaction. Objects of `types` that were neither staged nor kept leave the view. The replica is then
    /// at `lsn` for the set `version`. The set becomes complete, unless `completes` is `false` and the caller sets the state later.
    /// - Parameters:
    ///   - held: the gateway's client view record, which the next session receives.
    ///   - taken: the staged rows and removals reflect pending changesets up to this number. Their changes are no longer applied on top
    ///     of these objects. Changes to other objects wait for the acknowledgement, as the gateway may reject them.
    package func endBootstrap(
        version: UInt64, lsn: LSN, types: [Int], held: [UInt8] = [], taken: UInt64 = 0, completes: Bool = true
    ) throws(SluiceError) {
        // First: `takeServerRow` drops the pending changes up to this number.
        database.meta.taken = max(database.meta.taken, taken)
        let replaced = Set(types)
        let set = try subscriptions.set(version: version)
        for layout in database.layouts where layout.hasTable {
            let isStaged = try staging.isStaged(layout)
            try removeNamed(layout, isStaged: isStaged)
            if !isStaged && !replaced.contains(layout.index) { continue }
            if !isStaged { try staging.create(layout) }
            // Objects with pending changes come first: the two steps after it skip those that keep a server row.
            try takePending(layout, set, replaces: replaced.contains(layout.index))
            if replaced.contains(layout.index) { try removeUnstaged(layout, LeavingReason(set, layout, in: database.store.schema)) }
            try showStaged(layout)
        }
        connection.forgetStatements()
        try staging.end()
        // Live commits of the older view may have moved the position further.
        database.meta.applied = AppliedPosition(lsn: max(lsn, database.meta.applied.lsn), version: version)
        database.meta.bootstrapping = 0
        database.meta.held = held
        if completes { try subscriptions.setState(version: version, .complete) }
        // The rows shown now reflect these changesets, so their commits need not be awaited.
        try local.dropAcknowledged(upTo: taken, leaving: .unstaged(set))
        try local.dropApplied(leaving: .unstaged(set))
        try local.dropEmpty()
        try reset.finish(leaving: .unstaged(set))
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
                var new = try staging.times(of: key, layout)
                // The app sees these values from here on, and its later writes must win.
                database.meta.clock = max(database.meta.clock, new.times?.latest ?? .zero)
                new.row = layout.named(buffer.withView(row) { Row($0) })
                _ = try overlays.takeServerRow(layout, key: key, new)
            } else {
                statement.reset()
                if replaces, try !staging.isKept(layout, key) {
                    // The app's write to it may be rejected, which is not known yet.
                    try overlays.loseServerRow(layout, key: key)
                    try overlays.show(layout, key: key, leaving: .unstaged(set))
                }
            }
        }
    }

    /// Removes the recorded removals from the view, except objects that were staged again.
    private func removeNamed(_ layout: TableLayout, isStaged: Bool) throws(SluiceError) {
        for (key, reason) in try staging.removals(layout, isStaged: isStaged) {
            // An object with pending changes loses only its server row; the merge decides whether it stays.
            if try overlays.takeServerRow(layout, key: key, NewServerRow(), leaving: .known(reason)) { continue }
            try remove(layout, key, reason)
        }
    }

    /// The objects with pending changes, whose server rows are stored apart.
    private static let pendingKeys = "(SELECT key FROM _sluice_server WHERE type = ?1)"

    private func removeUnstaged(_ layout: TableLayout, _ reason: LeavingReason) throws(SluiceError) {
        // Permissions may be the reason for some rows.
        try database.erase()
        let statement = try connection.statement(
            """
            DELETE FROM \(layout.table) WHERE \(layout.keyColumn) NOT IN (SELECT \(layout.keyColumn) FROM \(layout.staging))
            AND \(layout.keyColumn) NOT IN (SELECT key FROM _sluice_staged_kept WHERE type = ?1)
            AND \(layout.keyColumn) NOT IN \(ServerState.pendingKeys) RETURNING \(layout.columns)
            """)
        statement.bind(0, layout.type.name)
        var buffer = RowBuffer()
        while try statement.step() {
            buffer.removeAll()
            let row = layout.read(statement, into: &buffer)
            let (key, why) = buffer.withView(row) { ($0.value(layout.key) ?? .null, reason.of($0)) }
            database.note(layout.index, key)
            database.noteLeft(layout, key, why)
        }
        statement.reset()
    }

    private func showStaged(_ layout: TableLayout) throws(SluiceError) {
        let rows = """
            SELECT \(layout.columns) FROM \(layout.staging) WHERE \(layout.keyColumn) NOT IN \(ServerState.pendingKeys) ORDER BY \(layout.rowid)
            """
        try noteKeys("\(layout.upsert(values: rows, table: layout.table)) RETURNING \(layout.keyColumn)", layout)
    }

    private func noteKeys(_ sql: String, _ layout: TableLayout) throws(SluiceError) {
        let statement = try connection.statement(sql)
        statement.bind(0, layout.type.name)
        while try statement.step() { database.note(layout.index, layout.readKey(statement)) }
        statement.reset()
    }

    // MARK: Live commits

    /// Applies server transactions, all or none. Skips commits at or before the applied position. Changes of the replica's own changesets
    /// to objects that their commits do not name wait for the acknowledgement, as the gateway may reject them.
    package func apply(_ batch: ReplicaBatch) throws(SluiceError) {
        // One check per batch: without pending changes no row needs a lookup of its server row.
        let hasPending = try overlays.hasObjects()
        for commit in batch.commits where commit.lsn > database.meta.applied.lsn {
            database.meta.taken = max(database.meta.taken, commit.changeset)
            for change in batch.changes[commit.changes] { try apply(change, of: commit, batch, hasPending: hasPending) }
            if commit.changeset > 0 { try local.dropEmpty() }
            if commit.time > 0 { observe(commit.time / 1_000 + 1) }
            // Another device's clock may be ahead of the server's.
            database.meta.clock = max(database.meta.clock, commit.writeTime)
        }
        if batch.lsn > database.meta.applied.lsn {
            database.meta.applied.lsn = batch.lsn
            database.meta.applied.witness = batch.witness
        }
        try local.dropApplied(leaving: .known(.leftQuery))
    }

    private func apply(
        _ change: ReplicaRowChange, of commit: ReplicaCommit, _ batch: ReplicaBatch, hasPending: Bool
    ) throws(SluiceError) {
        let layout = try database.table(change.type)
        switch change.event {
        case .entered, .updated:
            guard let row = change.row else {
                throw SluiceError(.badSyntax, "A change of \(layout.type.name) that enters the view has no row.")
            }
            try batch.rows.withView(row) { view throws(SluiceError) in
                let key = try key(of: view, layout)
                if hasPending, try overlays.isKept(layout, key: key) {
                    let new = NewServerRow(
                        row: layout.named(Row(view)), times: try batch.times(of: change, layout.type), time: commit.milliseconds)
                    _ = try overlays.takeServerRow(layout, key: key, new)
                } else {
                    try put(view, key, layout)
                }
            }
        case .deleted, .leftQuery, .lostPermission:
            guard let key = change.key else {
                throw SluiceError(.badSyntax, "A change of \(layout.type.name) that leaves the view has no key.")
            }
            if hasPending, try overlays.isKept(layout, key: key) {
                let new = NewServerRow(row: nil, times: try batch.times(of: change, layout.type), time: commit.milliseconds)
                _ = try overlays.takeServerRow(layout, key: key, new, leaving: .known(change.event.leaving))
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
        if connection.changes > 0 { database.note(layout.index, key) }
    }

    private func key(of view: RowView, _ layout: TableLayout) throws(SluiceError) -> Value {
        guard let key = view.value(layout.key), !key.isNull else {
            throw SluiceError(.badSyntax, "A row of \(layout.type.name) has no primary key.")
        }
        return key
    }

    private func remove(_ layout: TableLayout, _ key: Value, _ reason: LeftObject.Reason) throws(SluiceError) {
        if reason == .lostPermission { try database.erase() }
        guard try database.store.delete(type: layout.index, key: key) else { return }
        database.note(layout.index, key)
        database.noteLeft(layout, key, reason)
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
