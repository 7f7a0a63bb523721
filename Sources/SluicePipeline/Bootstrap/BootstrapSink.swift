import SluiceCore
import SluicePorts
import SluiceWire
import Synchronization

/// Sends the content of one snapshot to the client of a bootstrap.
final class BootstrapSink: SnapshotSink {
    private let runner: BootstrapRunner
    private let view: View
    private let held: ClientViewRecord?
    private let codecs: [RowCodec]
    /// The reason sent for lost rows.
    private let reason: ViewEvent
    private let mark: DeliveredTransactions.Mark
    private let outbox: BootstrapOutbox
    private let patience: SnapshotPatience
    private let state = Mutex<(start: SnapshotStart?, sent: UInt64)>((nil, 0))

    init(
        runner: BootstrapRunner, view: View, held: ClientViewRecord?, codecs: [RowCodec], reason: ViewEvent,
        mark: DeliveredTransactions.Mark, outbox: BootstrapOutbox, patience: SnapshotPatience
    ) {
        self.runner = runner
        self.view = view
        self.held = held
        self.codecs = codecs
        self.reason = reason
        self.mark = mark
        self.outbox = outbox
        self.patience = patience
    }

    /// The number of rows and keys sent.
    var sent: UInt64 { state.withLock { $0.sent } }

    private var start: SnapshotStart? { state.withLock { $0.start } }

    private func add(_ count: Int) { state.withLock { $0.sent += UInt64(count) } }

    func begin(_ start: SnapshotStart) async throws -> Bool {
        state.withLock { $0.start = start }
        // A transaction may be in the WAL before it becomes visible to snapshots.
        guard patience.accepts(start) else { return false }
        return await !runner.fanout.contradicts(start.snapshot, at: mark)
    }

    var needsEstimate: Bool { true }

    func expect(_ rows: UInt64) async throws {
        let checkpoint = start.map { runner.client.progress.begin(view, held: held, at: $0) }
        outbox.send(BootstrapMessages.begin(version: view.version, rows: rows, checkpoint: checkpoint ?? PBCheckpoint()))
    }

    func take(_ rows: [RowRef], of buffer: RowBuffer, query: Int, isInOrder: Bool) async throws {
        let (codec, mask) = (codecs[query], view.types[query].mask)
        // Only rows in key order make a checkpoint: it means "everything up to this key".
        let last = isInOrder ? rows.last.flatMap { buffer.withView($0) { $0.value(codec.type.primaryKey ?? 0) } } : nil
        try await runner.send(rows.count, codec, outbox) { number, writer in
            buffer.withView(rows[number]) { writer.add($0, mask: mask) }
        } reached: {
            guard let last, let point = start?.point else { return [] }
            return runner.client.progress.reached(last, of: query, view, held: held, at: point)
        }
        add(rows.count)
    }

    func take(kept keys: [Value], query: Int) async throws {
        try await runner.send(keys.count, codecs[query], outbox) { number, writer in writer.addKept(keys[number]) }
        add(keys.count)
    }

    func take(lost keys: [Value], query: Int) async throws {
        try await runner.send(keys.count, codecs[query], outbox) { number, writer in writer.addGone(keys[number], reason) }
        add(keys.count)
    }
}
