import SluiceCore
import SluiceMerge

/// Pending changesets, from a local transaction to their acknowledgement.
extension Writer {
    /// Returns the time of a write: later than all earlier writes of the replica, and than all times that it has seen.
    func tick() -> HybridTime {
        var clock = HybridClock(last: meta.clock)
        meta.clock = clock.tick(now: environment.wallMilliseconds())
        return meta.clock
    }

    /// Stores a local transaction. The server rows of its objects are stored already.
    func record(_ changes: [ObjectChange]) throws(SluiceError) {
        if changes.isEmpty { return }
        let time = tick()
        meta.changeset += 1
        let encoded = changes.map { ChangeCoding.encode($0) }
        let bytes = encoded.reduce(0) { $0 + $1.count }
        let changeset = Changeset(number: meta.changeset, time: time, base: meta.applied.lsn, changes: changes)
        // A failure rolls back the transaction, and with it the number and the time.
        try uploadBound?.check(changeset, stored: bytes)
        let header = try connection.statement("INSERT INTO _sluice_pending VALUES (?, ?, ?, ?, NULL)")
        header.bind(0, meta.changeset)
        header.bind(1, time.rawValue)
        header.bind(2, meta.applied.lsn.rawValue)
        header.bind(3, Int64(bytes))
        try header.run()
        for (ordinal, change) in changes.enumerated() {
            guard let layout = layout(named: change.object.type) else { continue }
            let statement = try connection.statement("INSERT INTO _sluice_pending_change VALUES (?, ?, ?, ?, ?)")
            statement.bind(0, meta.changeset)
            statement.bind(1, Int64(ordinal))
            statement.bind(2, change.object.type)
            layout.bindKey(change.object.key, at: 3, to: statement)
            statement.bind(4, encoded[ordinal])
            try statement.run()
        }
        news.local = true
    }

    func unacknowledgedChangesets(after number: UInt64, maximumBytes: Int) throws(SluiceError) -> [Changeset] {
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

    func renumber(after last: UInt64, time: HybridTime) throws(SluiceError) {
        // The number belongs to this replica: no backup was restored.
        if last <= meta.changeset, try !isAnother(last, time) { return }
        var clock = HybridClock(last: meta.clock)
        clock.observe(time, now: environment.wallMilliseconds())
        meta.clock = clock.last
        let renaming = TagRenaming(era: last)
        meta.tag = renaming.renamed(meta.tag)
        let first = try connection.statement("SELECT min(number) FROM _sluice_pending WHERE acknowledged IS NULL")
        let lowest = try first.step() && !first.isNull(0) ? first.unsigned(0) : nil
        first.reset()
        guard let lowest else { return meta.changeset = last }
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
        meta.changeset += shift
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

    func acknowledge(upTo number: UInt64, lsn: LSN, futile: [FutileWrite]) throws(SluiceError) {
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
        guard let layout = layout(named: write.object.type), layout.hasTable else { return }
        let statement = try connection.statement(
            "UPDATE _sluice_pending_change SET change = ? WHERE type = ? AND key = ? AND number <= ?")
        statement.bind(0, ChangeCoding.encode(ObjectChange(object: write.object, kind: .delete)))
        statement.bind(1, write.object.type)
        layout.bindKey(write.object.key, at: 2, to: statement)
        statement.bind(3, write.changeset)
        try statement.run()
        try show(layout, key: write.object.key, leaving: .known(.deleted))
    }

    /// Drops the changesets whose commit the replica has applied, and shows the rest of their objects.
    /// - Parameter leaving: the reason for objects without a row: the server has them and does not send them, as beyond a limit.
    func dropApplied(leaving: Leaving) throws(SluiceError) {
        try dropPending("p.acknowledged IS NOT NULL AND p.acknowledged <= ?1", meta.applied.lsn.rawValue, leaving: leaving)
    }

    /// Drops changesets that the server rows reflect and that have no changes left. Others wait for the acknowledgement, which follows
    /// the rejections: a rejected write is then reported with its intended values.
    func dropEmpty() throws(SluiceError) {
        let statement = try connection.statement(
            """
            DELETE FROM _sluice_pending AS p WHERE p.number <= ?
            AND NOT EXISTS (SELECT 1 FROM _sluice_pending_change c WHERE c.number = p.number)
            """)
        statement.bind(0, meta.taken)
        try statement.run()
    }

    /// - Parameter condition: on `p`, a row of `_sluice_pending`. `?1` is the value.
    func dropPending(_ condition: String, _ value: UInt64? = nil, leaving: Leaving) throws(SluiceError) {
        // The objects are read first: their changes are gone when they are shown again.
        let affected = try connection.statement(
            """
            SELECT DISTINCT c.type, c.key FROM _sluice_pending p JOIN _sluice_pending_change c ON c.number = p.number
            WHERE \(condition)
            """)
        if let value { affected.bind(0, value) }
        var objects: [(TableLayout, Value)] = []
        while try affected.step() {
            if let layout = layout(named: affected.string(0)) { objects.append((layout, layout.readKey(affected, 1))) }
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
        for (layout, key) in objects { try show(layout, key: key, leaving: leaving) }
    }
}
