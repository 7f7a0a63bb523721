package import SluiceCore
import SluiceMerge

/// An upload cursor: the last changeset and the last asymmetric object at a point in time.
package struct UploadCursor: Hashable, Sendable {
    package var changeset: UInt64
    package var object: UInt64
}

/// The local changes of a replica, from a write transaction to their acknowledgement.
package final class LocalChanges: @unchecked Sendable {  // Sendable because: it is used like its database.
    /// `false` for a file without a server: nothing is kept for upload, and writing needs no subscription.
    let isSynced: Bool
    /// The bound of a changeset. `nil` if none is uploaded.
    let uploadBound: UploadBound?
    package let compensations: Compensations
    let overlays: OverlayStore
    private let database: ReplicaDatabase
    private let environment: any Environment
    private var connection: Connection { database.connection }
    var schema: Schema { database.store.schema }
    /// By class: the last number given to an object without a declared key, also in transactions that were rolled back.
    private var hiddenKeys: [Int: Int64] = [:]
    /// The objects that the last transaction, if it was an app's, edited inside of values, and the database's generation then.
    private var edited: (objects: [ObjectKey: EditedObject], generation: UInt64)?

    init(
        _ database: ReplicaDatabase, _ reports: CompensationReports, isSynced: Bool, uploadBound: UploadBound?,
        environment: any Environment
    ) {
        self.database = database
        let overlays = OverlayStore(database: database)
        self.overlays = overlays
        compensations = Compensations(database: database, overlays: overlays, reports: reports)
        self.isSynced = isSynced
        self.uploadBound = uploadBound
        self.environment = environment
    }

    // MARK: Numbers

    /// Returns the time of a write: later than all earlier writes of the replica, and than all times that it has seen.
    private func tick() -> HybridTime {
        var clock = HybridClock(last: database.meta.clock)
        database.meta.clock = clock.tick(now: environment.wallMilliseconds())
        return database.meta.clock
    }

    /// Returns a number that no list element of this replica has had.
    func nextTag() -> UInt64 {
        database.meta.tag += 1
        return database.meta.tag
    }

    /// Returns a primary key that no object of a class with `TableLayout.hiddenKey` has had.
    /// - Parameter isFirst: `true` for the first one of a transaction, which compares with those that other processes gave.
    func nextHiddenKey(_ layout: TableLayout, isFirst: Bool) throws(SluiceError) -> Int64 {
        if isFirst {
            let statement = try connection.statement("SELECT seq FROM sqlite_sequence WHERE name = ?")
            statement.bind(0, layout.type.name)
            let last = try statement.step() ? statement.int(0) : 0
            statement.reset()
            hiddenKeys[layout.index] = max(last, hiddenKeys[layout.index] ?? 0)
        }
        hiddenKeys[layout.index, default: 0] += 1
        return hiddenKeys[layout.index] ?? 0
    }

    // MARK: Edited objects

    /// Keeps the objects that the transaction just committed has edited. The next one need not replay all pending changes.
    func keep(edited objects: [ObjectKey: EditedObject]) { edited = (objects, database.generation) }

    /// Returns the kept objects at the start of a transaction. Empty if another transaction came in between, or a commit of another
    /// process: its changes are not in these objects.
    func takeEdited() -> [ObjectKey: EditedObject] {
        defer { edited = nil }
        guard let edited, database.generation == edited.generation + 1 else { return [:] }
        return edited.objects
    }

    // MARK: Pending changesets

    /// Stores a local transaction as a pending changeset. The server rows of its objects are stored already.
    func record(_ changes: [ObjectChange]) throws(SluiceError) {
        if changes.isEmpty { return }
        let time = tick()
        database.meta.changeset += 1
        let encoded = changes.map { ChangeCoding.encode($0) }
        let bytes = encoded.reduce(0) { $0 + $1.count }
        let changeset = Changeset(number: database.meta.changeset, time: time, base: database.meta.applied.lsn, changes: changes)
        // A failure rolls back the transaction, and with it the number and the time.
        try uploadBound?.check(changeset, stored: bytes)
        let header = try connection.statement("INSERT INTO _sluice_pending VALUES (?, ?, ?, ?, NULL)")
        header.bind(0, database.meta.changeset)
        header.bind(1, time.rawValue)
        header.bind(2, database.meta.applied.lsn.rawValue)
        header.bind(3, Int64(bytes))
        try header.run()
        for (ordinal, change) in changes.enumerated() {
            guard let layout = database.layout(named: change.object.type) else { continue }
            let statement = try connection.statement("INSERT INTO _sluice_pending_change VALUES (?, ?, ?, ?, ?)")
            statement.bind(0, database.meta.changeset)
            statement.bind(1, Int64(ordinal))
            statement.bind(2, change.object.type)
            layout.bindKey(change.object.key, at: 3, to: statement)
            statement.bind(4, encoded[ordinal])
            try statement.run()
        }
        database.news.local = true
    }

    /// Returns the unacknowledged changesets numbered above `number`, ascending.
    /// - Parameter maximumBytes: the bound on their stored size. The first one is returned even if it is larger.
    package func unacknowledged(after number: UInt64, maximumBytes: Int) throws(SluiceError) -> [Changeset] {
        let headers = try connection.statement(
            "SELECT number, time, base, bytes FROM _sluice_pending WHERE number > ? AND acknowledged IS NULL ORDER BY number")
        headers.bind(0, number)
        var changesets: [Changeset] = []
        var bytes: Int64 = 0
        while try headers.step() {
            bytes += headers.int(3)
            if !changesets.isEmpty && bytes > maximumBytes { break }
            changesets.append(
                Changeset(
                    number: headers.unsigned(0), time: HybridTime(rawValue: headers.unsigned(1)),
                    base: LSN(rawValue: headers.unsigned(2)), changes: []))
        }
        headers.reset()
        for index in changesets.indices { changesets[index].changes = try changes(of: changesets[index].number) }
        return changesets
    }

    private func changes(of number: UInt64) throws(SluiceError) -> [ObjectChange] {
        let statement = try connection.statement("SELECT change FROM _sluice_pending_change WHERE number = ? ORDER BY ordinal")
        statement.bind(0, number)
        defer { statement.reset() }
        var changes: [ObjectChange] = []
        while try statement.step() { changes.append(try ChangeCoding.decode(statement.bytes(0))) }
        return changes
    }

    /// Renumbers the changesets to upload if the gateway's last changeset `last`, made at `time`, is not this file's.
    ///
    /// A file that was restored from a backup, or copied, has another changeset of that number, or none yet. Its changesets get numbers
    /// above, so that the gateway does not mistake them for uploaded ones.
    /// - Parameter time: zero if unknown.
    package func renumber(after last: UInt64, time: HybridTime) throws(SluiceError) {
        // The number belongs to this replica: no backup was restored.
        if last <= database.meta.changeset, try !isAnother(last, time) { return }
        var clock = HybridClock(last: database.meta.clock)
        clock.observe(time, now: environment.wallMilliseconds())
        database.meta.clock = clock.last
        let renaming = TagRenaming(era: last)
        database.meta.tag = renaming.renamed(database.meta.tag)
        let first = try connection.statement("SELECT min(number) FROM _sluice_pending WHERE acknowledged IS NULL")
        let lowest = try first.step() && !first.isNull(0) ? first.unsigned(0) : nil
        first.reset()
        guard let lowest else { return database.meta.changeset = last }
        // The lowest pending number becomes `last` + 1. The others keep their distance to it.
        let shift = last + 1 - min(lowest, last + 1)
        guard shift > 0 else { return }
        // Negative first: a new number may still belong to another row.
        for table in ["_sluice_pending_change", "_sluice_pending"] {
            try connection.execute(
                """
                UPDATE \(table) SET number = -number - \(shift) WHERE number >= \(lowest);
                UPDATE \(table) SET number = -number WHERE number < 0
                """)
        }
        try connection.execute("UPDATE _sluice_subscription_set SET changesets = changesets + \(shift) WHERE changesets >= \(lowest)")
        database.meta.changeset += shift
        try rename(from: lowest + shift, renaming)
    }

    /// Gives new tags to list elements inserted by the changesets from a number on: a restored file has reused tags.
    private func rename(from number: UInt64, _ renaming: TagRenaming) throws(SluiceError) {
        var renaming = renaming
        var edited: [(number: UInt64, ordinal: Int64, change: ObjectChange)] = []
        let statement = try connection.statement("SELECT number, ordinal, change FROM _sluice_pending_change WHERE number >= ?")
        statement.bind(0, number)
        while try statement.step() {
            let change = try ChangeCoding.decode(statement.bytes(2))
            if change.edits.isEmpty { continue }
            for edit in change.edits { renaming.add(edit) }
            edited.append((statement.unsigned(0), statement.int(1), change))
        }
        statement.reset()
        for (number, ordinal, change) in edited {
            var change = change
            for index in change.edits.indices { renaming.apply(to: &change.edits[index]) }
            let update = try connection.statement("UPDATE _sluice_pending_change SET change = ? WHERE number = ? AND ordinal = ?")
            update.bind(0, ChangeCoding.encode(change))
            update.bind(1, number)
            update.bind(2, ordinal)
            try update.run()
        }
    }

    /// `true` if the replica waits to upload a changeset of this number that was made at another time.
    private func isAnother(_ number: UInt64, _ time: HybridTime) throws(SluiceError) -> Bool {
        guard time > .zero else { return false }
        let statement = try connection.statement("SELECT time FROM _sluice_pending WHERE number = ? AND acknowledged IS NULL")
        statement.bind(0, number)
        defer { statement.reset() }
        return try statement.step() && statement.unsigned(0) != time.rawValue
    }

    /// Marks the changesets up to `number` as committed on the server at `lsn`. They stay pending until the replica has applied `lsn`,
    /// which may be the case already.
    /// - Parameter futile: writes without effect. The replica shows their objects as deleted at once.
    package func acknowledge(upTo number: UInt64, lsn: LSN, futile: [FutileWrite] = []) throws(SluiceError) {
        // No longer valid: this transaction came in between. They would stay in memory until the app's next write.
        edited = nil
        let statement = try connection.statement(
            "UPDATE _sluice_pending SET acknowledged = ? WHERE number <= ? AND acknowledged IS NULL")
        statement.bind(0, lsn.rawValue)
        statement.bind(1, number)
        try statement.run()
        for write in futile where write.changeset <= number { try becomeDeletion(write) }
        // The commit may have been applied before its acknowledgement arrived.
        try dropApplied(leaving: .known(.leftQuery))
    }

    /// Replaces a futile write by the deletion that made it futile. The object goes now, and rows on their way do not show it again.
    private func becomeDeletion(_ write: FutileWrite) throws(SluiceError) {
        guard let layout = database.layout(named: write.object.type), layout.hasTable else { return }
        let statement = try connection.statement(
            "UPDATE _sluice_pending_change SET change = ? WHERE type = ? AND key = ? AND number <= ?")
        statement.bind(0, ChangeCoding.encode(ObjectChange(object: write.object, kind: .delete)))
        statement.bind(1, write.object.type)
        layout.bindKey(write.object.key, at: 2, to: statement)
        statement.bind(3, write.changeset)
        try statement.run()
        try overlays.show(layout, key: write.object.key, leaving: .known(.deleted))
    }

    /// Drops the changesets whose commit the replica has applied, and shows the rest of their objects.
    /// - Parameter leaving: the reason for objects without a row: the server has them and does not send them, as beyond a limit.
    func dropApplied(leaving: Leaving) throws(SluiceError) {
        try dropPending("p.acknowledged IS NOT NULL AND p.acknowledged <= ?1", database.meta.applied.lsn.rawValue, leaving: leaving)
    }

    /// Drops changesets that the server rows reflect and that have no changes left. Others wait for the acknowledgement, which follows
    /// the rejections: a rejected write is then reported with its intended values.
    func dropEmpty() throws(SluiceError) {
        let statement = try connection.statement(
            """
            DELETE FROM _sluice_pending AS p WHERE p.number <= ?
            AND NOT EXISTS (SELECT 1 FROM _sluice_pending_change c WHERE c.number = p.number)
            """)
        statement.bind(0, database.meta.taken)
        try statement.run()
    }

    /// - Parameter condition: on `p`, a row of `_sluice_pending`. `?1` is the value.
    private func dropPending(_ condition: String, _ value: UInt64? = nil, leaving: Leaving) throws(SluiceError) {
        // The objects are read first: their changes are gone when they are shown again.
        let affected = try connection.statement(
            """
            SELECT DISTINCT c.type, c.key FROM _sluice_pending p JOIN _sluice_pending_change c ON c.number = p.number
            WHERE \(condition)
            """)
        if let value { affected.bind(0, value) }
        var objects: [(TableLayout, Value)] = []
        while try affected.step() {
            if let layout = database.layout(named: affected.string(0)) { objects.append((layout, layout.readKey(affected, 1))) }
        }
        affected.reset()
        for deletion in [
            "DELETE FROM _sluice_pending_change WHERE number IN (SELECT number FROM _sluice_pending p WHERE \(condition))",
            "DELETE FROM _sluice_pending AS p WHERE \(condition)",
        ] {
            let statement = try connection.statement(deletion)
            if let value { statement.bind(0, value) }
            try statement.run()
        }
        for (layout, key) in objects { try overlays.show(layout, key: key, leaving: leaving) }
    }

    /// Drops all acknowledged changesets.
    func dropAcknowledged(leaving: Leaving) throws(SluiceError) {
        try dropPending("p.acknowledged IS NOT NULL", leaving: leaving)
    }

    /// Drops the changesets up to `number` that are acknowledged, as the rows that are shown now reflect them.
    func dropAcknowledged(upTo number: UInt64, leaving: Leaving) throws(SluiceError) {
        try dropPending("p.acknowledged IS NOT NULL AND p.number <= ?1", number, leaving: leaving)
    }

    // MARK: Client reset

    /// Drops all changesets, at the end of a reset that discards them.
    func discard(leaving: Leaving) throws(SluiceError) {
        try dropPending("true", leaving: leaving)
        try connection.execute("UPDATE _sluice_subscription_set SET changesets = 0")
        database.meta.changeset = 0
    }

    /// Prepares the changesets for upload under a new identity, at the end of a reset that recovers them.
    func recover(leaving: Leaving) throws(SluiceError) {
        try dropAcknowledged(leaving: leaving)
        try renumberFromOne()
        // Recovered writes apply on top of the gateway's state: new times make them later. Their base is before the bootstrap, since
        // they were made without knowledge of its objects.
        let base = max(database.meta.applied.lsn.rawValue, 1) - 1
        for number in try connection.integers("SELECT number FROM _sluice_pending ORDER BY number") {
            try connection.execute("UPDATE _sluice_pending SET base = \(base), time = \(tick().rawValue) WHERE number = \(number)")
        }
        try overlays.showAll(leaving: leaving)
    }

    /// Renumbers the pending changesets from 1.
    func renumberFromOne() throws(SluiceError) {
        // The counts refer to the old numbers, so `_sluice_pending` itself is renumbered last.
        try connection.execute(
            """
            UPDATE _sluice_subscription_set SET changesets = (
                SELECT count(*) FROM _sluice_pending p WHERE p.number <= changesets);
            UPDATE _sluice_pending_change SET number = -(
                SELECT count(*) FROM _sluice_pending p WHERE p.number <= _sluice_pending_change.number);
            UPDATE _sluice_pending_change SET number = -number;
            """)
        // In ascending order each new number is free: it is at most the old one and above those before.
        let numbers = try connection.integers("SELECT number FROM _sluice_pending ORDER BY number")
        for (index, number) in numbers.enumerated() {
            try connection.execute(
                "UPDATE _sluice_pending SET number = \(index + 1), base = 0 WHERE number = \(number)")
        }
        database.meta.changeset = UInt64(numbers.count)
    }

    /// Returns the stored size of the changesets up to `limit` that are not acknowledged, in bytes. `nil` counts all.
    func unsentBytes(upTo limit: UInt64?) throws(SluiceError) -> UInt64 {
        try connection.number(
            "SELECT coalesce(sum(bytes), 0) FROM _sluice_pending WHERE acknowledged IS NULL AND number <= ?", limit)
    }

    /// The number of the last changeset written.
    var lastChangeset: UInt64 { database.meta.changeset }
}
