import SluiceCore
import SluicePorts
import SluiceWire

/// Runs one bootstrap: stage, snapshot, stream, hand-over.
///
/// The hand-over is exact. Staging starts before the snapshot. Changes of transactions that the snapshot sees are dropped; the others
/// follow the rows. If the snapshot misses a delivered transaction, another snapshot is taken. The end waits until the watermark has
/// passed everything that the snapshot saw. The client therefore shows a prefix of the commit order.
struct BootstrapRunner {
    let authority: any SchemaAuthority
    let snapshots: any SnapshotStore
    let fanout: Fanout
    let frames: any FrameMaker
    let environment: any Environment
    let channel: any SessionChannel
    /// The sealer of the data that the client keeps.
    let sealer: any Sealer
    let client: Client

    /// The client of a bootstrap.
    struct Client {
        let id: ClientID
        /// The user of the session.
        let user: String
        /// The client's staged rows, from which a bootstrap continues.
        let progress: BootstrapProgress
        /// The objects whose write times the client requested.
        let pending: PendingObjects
        /// Returns the number up to which the client's changesets are committed and the client knows their compensating writes.
        let taken: @Sendable () async -> UInt64
    }

    /// The number of attempts if more than `Limits.stagedBytes` of changes pass the bootstrap each time.
    static let attempts = 5
    /// The time to wait for the watermark to pass the snapshot, in milliseconds.
    static let patience = 30_000

    /// Bootstraps `view` and makes it live.
    /// - Parameters:
    ///   - held: The client view record of an earlier view.
    ///   - before: The live view if only the members of its queries have changed; nil otherwise.
    ///   - ending: Runs before the client can know that the view is live.
    /// - Returns: the new live subscriber in place of `old`, the client's new view record, and the number of rows and keys read.
    /// - Throws: `resync` if all attempts fail or no snapshot fits in time; `timeout` if the watermark does not pass the snapshot.
    func run(
        _ view: View, replacing old: Fanout.Handle?, held: ClientViewRecord?, changing before: View? = nil, ending: () async -> Void = {}
    ) async throws -> (
        subscriber: Fanout.Handle, held: ClientViewRecord, rows: UInt64
    ) {
        for _ in 0..<Self.attempts {
            // Subscribe before the snapshot: a change committed in between is staged and not lost.
            let id = await fanout.add(channel, view: view, staged: true, client: client.id)
            let mark = await fanout.mark
            let outbox = BootstrapOutbox(channel: channel, frames: frames)
            do {
                let (start, rows, taken) = try await read(view, held, before, mark, outbox)
                let holding = ClientViewRecord(view, at: start.point)
                // The end may be sent only when the stream has passed the snapshot, else the view would mix two positions.
                try await fanout.passed(start.lsn, milliseconds: Self.patience)
                // The session may have requested another view meanwhile.
                try Task.checkCancellation()
                await ending()
                if await fanout.activate(
                    id, replacing: old, after: outbox.take(), snapshot: start.snapshot, rows: rows,
                    held: holding.message(user: client.user, sealer), taken: taken, pending: client.pending)
                {
                    // It fails if the staged changes exceeded their bound or include a truncation that the snapshot misses: start over.
                    client.progress.clear()
                    return (id, holding, rows)
                }
                await fanout.remove(id)
            } catch {
                await fanout.remove(id)
                throw error
            }
        }
        throw SluiceError(
            .resync,
            "More than \(Limits.stagedBytes) bytes of changes passed the bootstrap of version \(view.version), \(Self.attempts) times.")
    }

    /// Makes a view live for a client that has it as of a position: a bootstrap with the later changes from the log.
    /// - Parameter held: The client's view record afterwards, as of a point that the watermark has passed.
    /// - Returns: nil if the log does not reach back to `lsn`; the state is unchanged then.
    func resume(
        _ view: View, replacing old: Fanout.Handle?, held: ClientViewRecord, after lsn: LSN, _ resume: LogResume, ending: () async -> Void
    ) async throws -> Fanout.Handle? {
        // Subscribe before the log is read: changes behind its end are staged.
        let id = await fanout.add(channel, view: view, staged: true, client: client.id)
        do {
            let tail = try await resume.tail(of: view, after: lsn, client: client.id, schema: authority.current().schema)
            try Task.checkCancellation()
            guard let tail else {
                await fanout.remove(id)
                return nil
            }
            try await fanout.passed(tail.reached, milliseconds: Self.patience)
            try Task.checkCancellation()
            let begin = frames.frame(BootstrapMessages.begin(version: view.version, rows: UInt64(tail.words.count)))
            await ending()
            if await fanout.activate(
                id, replacing: old, after: [begin], tail: tail, held: held.message(user: client.user, sealer), pending: client.pending)
            {
                client.progress.clear()
                return id
            }
            await fanout.remove(id)
            return nil
        } catch {
            await fanout.remove(id)
            throw error
        }
    }

    /// Sends the rows of the first snapshot that sees every transaction delivered by `mark`, or queues them for the end.
    private func read(
        _ view: View, _ held: ClientViewRecord?, _ before: View?, _ mark: DeliveredTransactions.Mark, _ outbox: BootstrapOutbox
    ) async throws -> (start: SnapshotStart, rows: UInt64, taken: UInt64) {
        let schema = authority.current().schema
        let queries = zip(view.types, client.progress.staged(of: view, held: held)).map { type, staged in
            SnapshotQuery(
                type: schema.types[type.type], predicate: type.predicate, known: held?.known(of: type), staged: staged,
                lost: before.map { $0.displaced(by: type) } ?? held?.lost(of: type))
        }
        // Members leave a limited query; any other lost row was hidden by the rules.
        let reason = before == nil ? ViewEvent.lostPermission : .leftQuery
        return try await SnapshotPatience.retry(environment) { try await attempt(view, held, queries, reason, mark, outbox, $0) }
    }

    /// Reads one snapshot.
    /// - Parameter reason: The reason sent for the rows that the queries name as lost.
    /// - Returns: nil if the snapshot misses a delivered transaction.
    private func attempt(
        _ view: View, _ held: ClientViewRecord?, _ queries: [SnapshotQuery], _ reason: ViewEvent, _ mark: DeliveredTransactions.Mark,
        _ outbox: BootstrapOutbox, _ patience: SnapshotPatience
    ) async throws -> (start: SnapshotStart, rows: UInt64, taken: UInt64)? {
        let codecs = queries.map { RowCodec($0.type) }
        // Ask before the snapshot begins, so that it sees all of these changesets.
        let taken = await client.taken()
        let sink = BootstrapSink(
            runner: self, view: view, held: held, codecs: codecs, reason: reason, mark: mark, outbox: outbox, patience: patience)
        guard let start = try await snapshots.read(queries, into: sink) else { return nil }
        for (query, codec) in zip(view.types, codecs) { try await sendTimes(query, codec, start, outbox) }
        return (start, sink.sent, taken)
    }

    /// Sends the write times of the rows of pending objects.
    /// They are read after the snapshot. A row written since then is skipped, because its own change follows the snapshot with its times.
    private func sendTimes(_ view: TypeView, _ codec: RowCodec, _ start: SnapshotStart, _ outbox: BootstrapOutbox) async throws {
        let keys = client.pending[codec.type.name]
        guard !keys.isEmpty else { return }
        var writer = BootstrapRowsWriter(codec)
        for (key, object) in try await snapshots.stored(codec.type, keys: keys).objects {
            guard let times = view.times(of: object, codec.type, seenBy: start.snapshot) else { continue }
            if writer.isFull {
                outbox.send(writer.finish())
                writer = BootstrapRowsWriter(codec)
            }
            writer.addTimes(key, times, commitTime: object.rowTime)
        }
        if writer.rowCount > 0 { outbox.send(writer.finish()) }
    }

    /// Sends `count` rows or keys in messages of bounded size, then waits until most of them are written.
    /// - Parameter reached: Returns the checkpoint for the last message.
    /// - Throws: `CancellationError` if the channel is closed.
    func send(
        _ count: Int, _ codec: RowCodec, _ outbox: BootstrapOutbox, _ add: (Int, inout BootstrapRowsWriter) -> Void,
        reached: () -> [UInt8] = { [] }
    ) async throws {
        var writer = BootstrapRowsWriter(codec)
        for number in 0..<count {
            if writer.isFull {
                outbox.send(writer.finish())
                writer = BootstrapRowsWriter(codec)
            }
            add(number, &writer)
        }
        if writer.rowCount > 0 {
            // A message that leaves with the end cannot be interrupted, so it needs no checkpoint.
            outbox.send(writer.finish(checkpoint: outbox.keeps(writer.byteCount) ? [] : reached()))
        }
        // Backpressure: the snapshot reads its next chunk only once this returns.
        await channel.drained(below: Limits.outboxBytes / 4)
        if channel.isClosed { throw CancellationError() }
        try Task.checkCancellation()
    }
}
