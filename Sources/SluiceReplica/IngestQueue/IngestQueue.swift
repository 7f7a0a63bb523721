package import SluiceCore

/// Asymmetric objects that are sent and acknowledged together.
package struct IngestBatch: Hashable, Sendable {
    /// The number, from 1. A batch keeps its number and its objects until it is acknowledged, unless no message can carry it.
    package var number: UInt64
    package var objects: [ObjectChange]

    package init(number: UInt64, objects: [ObjectChange]) {
        self.number = number
        self.objects = objects
    }
}

/// The objects to remove from a batch that no message can carry. Positions are those in `IngestBatch.objects`.
package struct IngestCut: Hashable, Sendable {
    package var batch: UInt64
    /// The positions of objects that alone are larger than a message. They are deleted.
    package var dropped: [Int] = []
    /// The report of the deleted objects, for the app.
    package var refused: [CompensatingWrite] = []
    /// The positions of objects that fit another message. They return to the queue.
    package var returned: [Int] = []

    package init(batch: UInt64) { self.batch = batch }
}

/// The queue of asymmetric objects. They are stored here until they are acknowledged, and in no class's table.
package struct IngestQueue: Sendable {
    let database: ReplicaDatabase
    let reports: CompensationReports
    private var connection: Connection { database.connection }

    func add(_ change: ObjectChange) throws(SluiceError) {
        let statement = try connection.statement("INSERT INTO _sluice_ingest (batch, change) VALUES (NULL, ?)")
        statement.bind(0, ChangeCoding.encode(change))
        try statement.run()
        database.news.local = true
    }

    /// Returns the next batch above `number`: one that was formed before, unchanged, or a new one. `nil` if there is none. Runs in a
    /// durable transaction: a batch keeps its number.
    /// - Parameters:
    ///   - taken: the highest batch that the gateway has. A new batch is numbered above it: a file restored from a backup may know
    ///     fewer.
    ///   - maximumObjects, maximumBytes: bounds of a batch, applied when it is formed.
    package func nextBatch(
        after number: UInt64, taken: UInt64 = 0, maximumObjects: Int = Limits.ingestRulesObjects,
        maximumBytes: Int = Limits.ingestBatchBytes
    ) throws(SluiceError) -> IngestBatch? {
        let formed = try connection.statement("SELECT min(batch) FROM _sluice_ingest WHERE batch > ?")
        formed.bind(0, number)
        let existing = try formed.step() && !formed.isNull(0) ? formed.unsigned(0) : nil
        formed.reset()
        if let existing { return IngestBatch(number: existing, objects: try objects(of: existing)) }
        return try formBatch(after: max(number, taken), maximumObjects: maximumObjects, maximumBytes: maximumBytes)
    }

    private func objects(of batch: UInt64) throws(SluiceError) -> [ObjectChange] {
        let statement = try connection.statement("SELECT change FROM _sluice_ingest WHERE batch = ? ORDER BY id")
        statement.bind(0, batch)
        defer { statement.reset() }
        var objects: [ObjectChange] = []
        while try statement.step() { objects.append(try ChangeCoding.decode(statement.bytes(0))) }
        return objects
    }

    private func formBatch(after number: UInt64, maximumObjects: Int, maximumBytes: Int) throws(SluiceError) -> IngestBatch? {
        let waiting = try connection.statement(
            "SELECT id, change FROM _sluice_ingest WHERE batch IS NULL ORDER BY id LIMIT ?")
        waiting.bind(0, Int64(max(maximumObjects, 1)))
        var objects: [ObjectChange] = []
        var last: Int64 = 0
        var bytes = 0
        while try waiting.step() {
            bytes += waiting.bytes(1).count
            if !objects.isEmpty && bytes > maximumBytes { break }
            objects.append(try ChangeCoding.decode(waiting.bytes(1)))
            last = waiting.int(0)
        }
        waiting.reset()
        if objects.isEmpty { return nil }
        database.meta.ingest = max(database.meta.ingest, number) + 1
        let mark = try connection.statement("UPDATE _sluice_ingest SET batch = ? WHERE batch IS NULL AND id <= ?")
        mark.bind(0, database.meta.ingest)
        mark.bind(1, last)
        try mark.run()
        return IngestBatch(number: database.meta.ingest, objects: objects)
    }

    /// Deletes objects of a batch that no message can carry, and returns others of it to the queue. The batch keeps its number. Runs in a
    /// durable transaction.
    /// - Returns: the report for the app. `nil` if no object was deleted.
    package func shorten(_ cut: IngestCut) throws(SluiceError) -> CompensationReport? {
        let rows = try connection.statement("SELECT id FROM _sluice_ingest WHERE batch = ? ORDER BY id")
        rows.bind(0, cut.batch)
        var ids: [Int64] = []
        while try rows.step() { ids.append(rows.int(0)) }
        rows.reset()
        guard !ids.isEmpty else { return nil }
        // A returned object keeps its place before the objects that were written after it.
        for (sql, positions) in [
            ("DELETE FROM _sluice_ingest WHERE id = ?", cut.dropped),
            ("UPDATE _sluice_ingest SET batch = NULL WHERE id = ?", cut.returned),
        ] {
            for position in positions where ids.indices.contains(position) {
                let statement = try connection.statement(sql)
                statement.bind(0, ids[position])
                try statement.run()
            }
        }
        return try reports.keep(cut.refused)
    }

    /// Deletes the batches up to `number`, which the ingest log has.
    /// - Returns: the report for the app. `nil` if no object was rejected.
    package func acknowledge(upTo number: UInt64, refused: [CompensatingWrite] = []) throws(SluiceError) -> CompensationReport? {
        let statement = try connection.statement("DELETE FROM _sluice_ingest WHERE batch <= ?")
        statement.bind(0, number)
        try statement.run()
        // A resent acknowledgement deletes no row. Its rejections were reported before.
        return connection.changes > 0 ? try reports.keep(refused) : nil
    }

    /// Deletes all objects.
    func removeAll() throws(SluiceError) { try connection.execute("DELETE FROM _sluice_ingest") }

    /// Renumbers the ingest batches from 1.
    func renumber() throws(SluiceError) {
        let batches = try connection.integers("SELECT DISTINCT batch FROM _sluice_ingest WHERE batch IS NOT NULL ORDER BY batch")
        for (index, batch) in batches.enumerated() {
            try connection.execute("UPDATE _sluice_ingest SET batch = \(index + 1) WHERE batch = \(batch)")
        }
        database.meta.ingest = UInt64(batches.count)
    }

    /// Returns the size of the objects up to the id `limit`, in bytes. `nil` counts all.
    func unsentBytes(upTo limit: UInt64?) throws(SluiceError) -> UInt64 {
        try connection.number("SELECT coalesce(sum(length(change)), 0) FROM _sluice_ingest WHERE id <= ?", limit)
    }

    /// Returns the id of the last object. 0 if there is none.
    func lastObject() throws(SluiceError) -> UInt64 {
        try connection.number("SELECT coalesce(max(id), 0) FROM _sluice_ingest WHERE id <= ?", nil)
    }
}
