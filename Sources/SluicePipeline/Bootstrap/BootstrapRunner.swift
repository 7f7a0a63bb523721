import SluiceCore
import SluiceWire
import Synchronization

/// Runs one bootstrap: stage, snapshot, stream, hand over.
///
/// The hand-over is exact (DESIGN section 4): changes are staged from before the snapshot on; those of transactions that
/// the snapshot sees are dropped, the others follow the rows; a snapshot that misses a transaction already delivered is
/// taken again. The end waits for the watermark to pass everything that the snapshot saw, so that what the client then
/// shows is a prefix of the commit order.
struct BootstrapRunner {
    let authority: any SchemaAuthority
    let snapshots: any SnapshotStore
    let fanout: Fanout
    let frames: any FrameMaker
    let environment: any Environment
    let channel: any SessionChannel
    let client: ClientID
    /// Whose sessions it is for, and who seals what their client keeps.
    let user: String
    let sealer: any Sealer
    /// What the client has put aside; a bootstrap goes on from it.
    let progress: BootstrapProgress
    /// The objects whose write times the client wants.
    let pending: PendingObjects
    /// The client's changesets that are committed now and of which it knows what was undone, up to this number.
    let taken: @Sendable () async -> UInt64

    /// How often a bootstrap is started again because more than `Limits.stagedBytes` passed it.
    static let attempts = 5
    /// Milliseconds to wait for the watermark to pass the snapshot.
    static let patience = 30_000

    /// - Parameters:
    ///   - held: what the client has of an earlier view.
    ///   - before: the live view, where only the members of its queries have changed; nil otherwise.
    ///   - ending: called before the client can know that the view is live.
    /// - Returns: the new live subscriber, in the place of `old`, what the client has then, and how many rows and keys were read for it.
    func run(
        _ view: View, replacing old: Fanout.Handle?, held: HeldView?, changing before: View? = nil, ending: () async -> Void = {}
    ) async throws -> (
        subscriber: Fanout.Handle, held: HeldView, rows: UInt64
    ) {
        for _ in 0..<Self.attempts {
            let id = await fanout.add(channel, view: view, staged: true, client: client)
            let mark = await fanout.mark
            let outbox = BootstrapOutbox(channel: channel, frames: frames)
            do {
                let (start, rows, taken) = try await read(view, held, before, mark, outbox)
                let holding = HeldView(view, at: start.point)
                try await fanout.passed(start.lsn, milliseconds: Self.patience)
                try Task.checkCancellation()
                await ending()
                if await fanout.activate(
                    id, replacing: old, after: outbox.take(), snapshot: start.snapshot, rows: rows,
                    held: holding.message(user: user, sealer), taken: taken, pending: pending)
                {
                    progress.clear()
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

    /// Makes a view live for a client that has it as it was at a position: a bootstrap with what the log has since.
    /// - Parameter held: what the client has then, as of a point that the watermark has passed.
    /// - Returns: nil when the log does not say; nothing has changed then.
    func resume(
        _ view: View, replacing old: Fanout.Handle?, held: HeldView, after lsn: LSN, _ resume: LogResume, ending: () async -> Void
    ) async throws -> Fanout.Handle? {
        // Before the log is read: what comes behind its end is staged.
        let id = await fanout.add(channel, view: view, staged: true, client: client)
        do {
            let tail = try await resume.tail(of: view, after: lsn, client: client, schema: authority.current().schema)
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
                id, replacing: old, after: [begin], tail: tail, held: held.message(user: user, sealer), pending: pending)
            {
                progress.clear()
                return id
            }
            await fanout.remove(id)
            return nil
        } catch {
            await fanout.remove(id)
            throw error
        }
    }

    /// Sends, or keeps for the end, the rows of the first snapshot that sees everything delivered by `mark`.
    private func read(
        _ view: View, _ held: HeldView?, _ before: View?, _ mark: DeliveredTransactions.Mark, _ outbox: BootstrapOutbox
    ) async throws -> (start: SnapshotStart, rows: UInt64, taken: UInt64) {
        let schema = authority.current().schema
        let queries = zip(view.types, progress.staged(of: view, held: held)).map { type, staged in
            SnapshotQuery(
                type: schema.types[type.type], predicate: type.predicate, known: held?.known(of: type), staged: staged,
                lost: before.map { $0.displaced(by: type) } ?? held?.lost(of: type))
        }
        let reason = before == nil ? ViewEvent.lostPermission : .leftQuery
        return try await SnapshotPatience.retry(environment) { try await attempt(view, held, queries, reason, mark, outbox) }
    }

    /// - Parameter reason: why the client loses what the queries name as lost.
    /// - Returns: nil when the snapshot misses a transaction already delivered.
    private func attempt(
        _ view: View, _ held: HeldView?, _ queries: [SnapshotQuery], _ reason: ViewEvent, _ mark: DeliveredTransactions.Mark,
        _ outbox: BootstrapOutbox
    ) async throws -> (start: SnapshotStart, rows: UInt64, taken: UInt64)? {
        let codecs = queries.map { RowCodec($0.type) }
        let masks = view.types.map(\.mask)
        let sent = Counter()
        // Before the snapshot is there: it sees all of them.
        let taken = await taken()
        let started = Mutex<SnapshotStart?>(nil)
        let start = try await snapshots.read(queries) { start in
            started.withLock { $0 = start }
            return await !fanout.contradicts(start.snapshot, at: mark)
        } expected: { rows in
            let checkpoint = started.withLock { $0 }.map { progress.begin(view, held: held, at: $0) }
            outbox.send(BootstrapMessages.begin(version: view.version, rows: rows, checkpoint: checkpoint ?? PBCheckpoint()))
        } rows: { query, buffer, rows, inOrder in
            let last = inOrder ? rows.last.flatMap { buffer.withView($0) { $0.value(codecs[query].type.primaryKey ?? 0) } } : nil
            try await send(rows.count, codecs[query], outbox) { number, writer in
                buffer.withView(rows[number]) { writer.add($0, mask: masks[query]) }
            } reached: {
                guard let last, let point = started.withLock({ $0?.point }) else { return [] }
                return progress.reached(last, of: query, view, held: held, at: point)
            }
            sent.add(UInt64(rows.count))
        } kept: { query, keys in
            try await send(keys.count, codecs[query], outbox) { number, writer in writer.addKept(keys[number]) }
            sent.add(UInt64(keys.count))
        } lost: { query, keys in
            try await send(keys.count, codecs[query], outbox) { number, writer in writer.addGone(keys[number], reason) }
            sent.add(UInt64(keys.count))
        }
        guard let start else { return nil }
        for (query, codec) in zip(view.types, codecs) { try await sendTimes(query, codec, start, outbox) }
        return (start, sent.value, taken)
    }

    /// Sends the write times of the rows of pending objects. They are read after the snapshot: of what has been written since, the change
    /// that follows the snapshot carries its own.
    private func sendTimes(_ view: TypeView, _ codec: RowCodec, _ start: SnapshotStart, _ outbox: BootstrapOutbox) async throws {
        let keys = pending[codec.type.name]
        guard !keys.isEmpty else { return }
        var writer = BootstrapRowsWriter(codec)
        for (key, object) in try await snapshots.stored(codec.type, keys: keys) {
            guard let times = view.times(of: object, codec.type, seenBy: start.snapshot) else { continue }
            if writer.isFull {
                outbox.send(writer.finish())
                writer = BootstrapRowsWriter(codec)
            }
            writer.addTimes(key, times, commitTime: object.rowTime)
        }
        if writer.rowCount > 0 { outbox.send(writer.finish()) }
    }

    /// Sends so many rows or keys in messages of bounded size, and waits for the client to take most of them.
    /// - Parameter reached: the checkpoint for the last of the messages.
    private func send(
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
            // What goes out with its end is not interrupted.
            outbox.send(writer.finish(checkpoint: outbox.keeps(writer.byteCount) ? [] : reached()))
        }
        await channel.drained(below: Limits.outboxBytes / 4)
        if channel.isClosed { throw CancellationError() }
        try Task.checkCancellation()
    }
}
