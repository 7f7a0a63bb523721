package import Logging
package import SluiceCore
package import SluicePorts

/// Publishes the WAL to the change log: captures, records external deletes, encodes, appends, announces, confirms.
///
/// Only the gateway that holds the replication slot publishes; the others wait here. An LSN is confirmed to PostgreSQL only after the log
/// has everything before it and the progress record. Memory is bounded by two batches of `Limits.captureBatchBytes`: one being read while
/// the other is appended.
package final class Publisher: Sendable {
    private let source: any ChangeSource
    private let deletions: any ExternalDeleteStore
    private let log: any MessageLog
    private let authority: any SchemaAuthority
    private let layouts: any LayoutProvider
    private let topics: Topics
    private let environment: any Environment
    private let logger: Logger
    private let catchUp: @Sendable (_ announced: [String]) async throws -> Void
    private let report: @Sendable (PublisherReport) -> Void

    /// The ports between which the publisher moves changes.
    package struct Ports: Sendable {
        package var source: any ChangeSource
        package var deletions: any ExternalDeleteStore
        package var log: any MessageLog

        package init(source: any ChangeSource, deletions: any ExternalDeleteStore, log: any MessageLog) {
            self.source = source
            self.deletions = deletions
            self.log = log
        }
    }

    /// - Parameters:
    ///   - catchUp: Adopts announced or recorded schema changes. If that fails, it logs the failure and rows are read as before.
    ///   - report: Receives each step, for metrics and the quarantine.
    package init(
        ports: Ports, authority: any SchemaAuthority, layouts: any LayoutProvider, topics: Topics, environment: any Environment,
        logger: Logger,
        catchUp: @escaping @Sendable (_ announced: [String]) async throws -> Void,
        report: @escaping @Sendable (PublisherReport) -> Void
    ) {
        source = ports.source
        deletions = ports.deletions
        log = ports.log
        self.authority = authority
        self.layouts = layouts
        self.topics = topics
        self.environment = environment
        self.logger = logger
        self.catchUp = catchUp
        self.report = report
    }

    /// Publishes until the task is cancelled. After a failure it restarts with a back-off, which resets once progress is announced.
    /// - Throws: `logAhead` if the database was restored and the log was not. Retrying cannot help.
    package func run() async throws {
        var pause = PublishPause()
        while !Task.isCancelled {
            do {
                let schema = authority.current()
                let start = try await source.open(schema.schema)
                report(.holding)
                // A schema announced to another publisher is not announced again, so adopt the recorded one.
                try await catchUp([])
                try await publish(schema, from: start, pause: &pause)
                await source.close()
            } catch is CancellationError {
                break
            } catch {
                await source.close()
                let failure = SluiceError(error, otherwise: .internalError, "Publishing failed.")
                // The log and the database have different histories. Only an operator can decide which one is right.
                if failure.code == .logAhead { throw error }
                if failure.code == .slotBusy {
                    // The normal state of every gateway but one, so no error is logged.
                    report(.waiting)
                    logger.debug("Another gateway publishes.")
                    try? await environment.sleep(nanoseconds: PublishPause.busyMilliseconds * 1_000_000)
                } else {
                    report(.failed(failure))
                    let milliseconds = pause.failed()
                    logger.error("Publishing stopped and is restarted.", metadata: ["error": "\(failure)", "pause_ms": "\(milliseconds)"])
                    try? await environment.sleep(nanoseconds: milliseconds * 1_000_000)
                }
            }
        }
        await source.close()
    }

    /// Publishes until the schema or a table changes.
    private func publish(_ schema: AppSchema, from start: LSN, pause: inout PublishPause) async throws {
        // `catchUp` may have adopted a newer schema. The caller starts again with it.
        guard !isOutdated(schema) else { return }
        let layout = try await layouts.layout(of: schema)
        var state = try await stateOfLog(layout, start: start)
        var encoder = ChangeEncoder(schema: schema.schema, layout: layout, chain: &state)
        var batch = LogBatch(topics: encoder.topics)
        var capture = CaptureBatch()
        while !Task.isCancelled {
            capture = try await source.next(capture, milliseconds: 1_000)
            // The caller opens the source again, which then reads the tables as they are now.
            if capture.isOutdated { return }
            if !capture.schemas.isEmpty { try await catchUp(capture.schemas) }
            // Rows decoded with an outdated schema may lack properties, so the caller reads them again.
            // Rows published before the change are in the snapshot that a session with the new schema starts from.
            if isOutdated(schema) { return }
            // Record deletes before any reader can see them: a client that creates the object again must find the earlier delete.
            let gone = capture.externalDeletes(schema.schema.types)
            if !gone.isEmpty { try await deletions.remember(gone) }
            batch.removeAll()
            encode(capture, with: &encoder, state: &state, into: &batch)
            if !batch.isEmpty { try await append(batch, of: capture, &encoder, &state) }
            // After the append: the receivers of reports count what readers can see.
            report(.appended(capture.transactions))
            report(.batch(changes: capture.changes.count, bytes: batch.arena.count, unfit: capture.unfit))
            if let progress = state.takeProgress() {
                try await announce(progress)
                // Only progress resets the back-off, so a source that opens and then fails is not retried in a tight loop.
                pause.progressed()
            }
        }
    }

    /// Returns the state to continue from: earlier announcements and the end of each partition.
    private func stateOfLog(_ layout: Partitioning, start: LSN) async throws -> PublisherState {
        let promise = try await LogPromise.read(from: log, progress: LogPartition(topics.progress, 0), environment)
        // Before anything else: nothing may be appended to the log of another history.
        if let witness = promise.last?.witness { try await compare(witness) }
        // After the announcements: ends only grow, so an end below its announcement proves a loss.
        let ends = try await log.ends(of: layout.layouts.indices.flatMap { layout.partitions(of: $0, keys: nil) })
        note(lost: Array(promise.lost(in: ends)))
        // After the slot is open: the source delivers the transactions that this query does not see.
        let writeTime = try await source.latestWriteTime()
        return PublisherState(last: try await lastPositions(ends), start: start, after: promise, ends: ends, writeTime: writeTime)
    }

    private func note(lost partitions: [LogPartition]) {
        guard !partitions.isEmpty else { return }
        logger.error(
            "The log lost acknowledged records. All sessions start again from the tables. Check the brokers' replication.",
            metadata: ["partitions": "\(partitions)", "code": "\(ErrorCode.logGap.rawValue)"])
    }

    /// Appends a batch without the records that the log rejects for good. Reports those.
    private func append(
        _ batch: LogBatch, of capture: CaptureBatch, _ encoder: inout ChangeEncoder, _ state: inout PublisherState
    ) async throws {
        let outcome = try await log.offer(batch)
        note(lost: state.appended(outcome.ends))
        if outcome.refused.isEmpty { return }
        let refused = RefusedRecords(outcome.refused, of: batch, capture, encoder: &encoder)
        // Before the stand-ins: a session that resynchronises must not read the row.
        report(.refused(refused.rows, sizes: refused.sizes))
        // After the report: if later records of their partitions are stored, the next attempt takes these for stored too.
        if let failure = outcome.failure { throw failure }
        if !refused.standIns.isEmpty { note(lost: state.appended(try await log.append(refused.standIns))) }
    }

    /// Compares the log's last transaction with the database.
    /// - Throws: `logAhead` if the transaction never was in this database's history. Publishing would mix two histories.
    private func compare(_ last: HistoryAnchor) async throws {
        guard try await source.hasSeen(last) == false else { return }
        throw SluiceError(
            .logAhead,
            "The topic \(topics.progress) ends with transaction \(last.transaction) at \(last.lsn), which the database lacks: "
                + "it was restored from a backup, or the topics belong to another deployment of an app with this name."
        )
    }

    private func isOutdated(_ schema: AppSchema) -> Bool { authority.current().version != schema.version }

    private func encode(
        _ capture: CaptureBatch, with encoder: inout ChangeEncoder, state: inout PublisherState, into batch: inout LogBatch
    ) {
        for transaction in capture.transactions {
            for index in transaction.changes {
                encoder.append(capture.changes[index], of: transaction, rows: capture.rows, chain: &state, to: &batch)
            }
            if let origin = transaction.origin { state.wrote(at: origin.time) }
            if let end = transaction.end { state.passed(end, HistoryAnchor(transaction)) }
        }
        if capture.gap > .zero { state.lost(before: capture.gap) }
        // An unfinished transaction must not advance the position.
        if capture.transactions.last?.end != nil || capture.transactions.isEmpty { state.passed(capture.reached) }
    }

    private func announce(_ progress: ProgressRecord) async throws {
        var batch = LogBatch(topics: [topics.progress])
        batch.append(topic: 0, partition: 0, key: [], value: ProgressCodec.encode(progress))
        // The order matters: the slot may forget WAL only after the progress record is durable.
        _ = try await log.append(batch)
        try await source.confirm(progress.lsn)
        report(.announced(progress.lsn))
    }

    /// Returns the position of the last record of each partition, so that the chain continues an earlier publisher's.
    private func lastPositions(_ ends: [LogPartition: Int64]) async throws -> [LogPartition: Position] {
        let ends = ends.filter { $0.value > 0 }
        guard !ends.isEmpty else { return [:] }
        return try await log.withReader { try await lastPositions(ends, $0) }
    }

    private func lastPositions(_ ends: [LogPartition: Int64], _ reader: any LogReader) async throws -> [LogPartition: Position] {
        let headers = ChangeHeaderReader()
        var found: [LogPartition: Position] = [:]
        var fetch = LogFetch()
        // One record before the end: the last one of each partition.
        try await reader.assign(ends.mapValues { $0 - 1 })
        let deadline = environment.monotonicNanoseconds() + 10_000_000_000
        while found.count < ends.count {
            guard environment.monotonicNanoseconds() < deadline else {
                throw SluiceError(.logUnreachable, "The last records of \(ends.count - found.count) partitions could not be read in 10 s.")
            }
            fetch = try await reader.next(fetch, milliseconds: 200)
            for entry in fetch.entries {
                let position = headers.read(fetch.arena[entry.value])?.position ?? .zero
                // Records appended meanwhile are read too, so the highest position wins. An unreadable record counts as zero.
                found[entry.partition] = max(found[entry.partition] ?? .zero, position)
            }
            // A record truncated meanwhile has no position to link to; its chain starts anew.
            for gap in fetch.gaps { found[gap] = found[gap] ?? .zero }
        }
        return found
    }
}

/// A step of the publisher, for metrics and the quarantine.
package enum PublisherReport: Sendable {
    case holding
    case waiting
    case failed(SluiceError)
    /// The transactions of a batch, or their parts, once the log has acknowledged their records.
    case appended([CapturedTransaction])
    case batch(changes: Int, bytes: Int, unfit: [UnfitRow])
    /// Rows whose records the log rejected for good.
    /// - Parameter sizes: The size of the smallest record that was too large, in bytes, by class index.
    case refused([UnfitRow], sizes: [Int: Int])
    case announced(LSN)
}

/// The back-off between a failure of publishing and the next start. It doubles with each failure until a progress record is written.
struct PublishPause {
    /// The bounds of the pause, in milliseconds.
    static let (shortest, longest): (UInt64, UInt64) = (100, 5_000)
    /// The pause while another gateway holds the replication slot, in milliseconds.
    static let busyMilliseconds: UInt64 = 500

    private var next = shortest

    /// Returns the time to wait now, in milliseconds, and doubles the next one.
    mutating func failed() -> UInt64 {
        defer { next = min(next * 2, Self.longest) }
        return next
    }

    /// Resets the back-off to the shortest pause.
    mutating func progressed() { next = Self.shortest }
}
