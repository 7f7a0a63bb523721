import SluiceCore
import SluiceWire

/// Runs one bootstrap: stage, snapshot, stream, hand over.
///
/// The hand-over is exact (DESIGN section 4): changes are staged from before the snapshot on; those of transactions that
/// the snapshot sees are dropped, the others follow the rows; a snapshot that misses a transaction already delivered is
/// taken again. The end waits for the watermark to pass everything that the snapshot saw, so that what the client then
/// shows is a prefix of the commit order.
struct BootstrapRunner {
    let services: SessionServices
    let channel: any SessionChannel

    /// How often a bootstrap is started again because too much passed it, or its snapshot came at a bad instant.
    static let attempts = 5
    /// Milliseconds to wait for the watermark to pass the snapshot.
    static let patience = 30_000

    /// - Returns: the new live subscriber, in the place of `old`.
    func run(_ view: View, replacing old: UInt32?) async throws -> UInt32 {
        for _ in 0..<Self.attempts {
            let id = await services.fanout.add(channel, view: view, staged: true)
            do {
                if try await attempt(view, id: id, replacing: old) { return id }
                await services.fanout.remove(id)
            } catch {
                await services.fanout.remove(id)
                throw error
            }
        }
        throw SluiceError(.resync, "The bootstrap of version \(view.version) was overtaken \(Self.attempts) times.")
    }

    private func attempt(_ view: View, id: UInt32, replacing old: UInt32?) async throws -> Bool {
        let schema = services.authority.current().schema
        let queries = view.types.map { SnapshotQuery(type: schema.types[$0.type], predicate: $0.predicate) }
        let codecs = queries.map { RowCodec($0.type) }
        let masks = view.types.map(\.mask)
        let sent = Counter()
        let start = try await services.snapshots.read(queries) { start in
            guard await !services.fanout.contradicts(start.snapshot) else { return false }
            send(BootstrapMessages.begin(version: view.version, rows: 0))
            return true
        } rows: { query, buffer, rows in
            try await send(rows, of: buffer, codecs[query], masks[query])
            sent.add(UInt64(rows.count))
        }
        guard let start else { return false }
        try await services.fanout.passed(start.lsn, milliseconds: Self.patience)
        try Task.checkCancellation()
        return await services.fanout.activate(id, replacing: old, snapshot: start.snapshot, rows: sent.value)
    }

    private func send(_ rows: [RowRef], of buffer: RowBuffer, _ codec: RowCodec, _ mask: [Bool]?) async throws {
        var writer = BootstrapRowsWriter(codec)
        for row in rows {
            buffer.withView(row) { writer.add($0, mask: mask) }
            if writer.isFull {
                send(writer.finish())
                writer = BootstrapRowsWriter(codec)
            }
        }
        if writer.rowCount > 0 { send(writer.finish()) }
        await channel.drained(below: Limits.outboxBytes / 4)
        try Task.checkCancellation()
    }

    private func send(_ message: [UInt8]) { channel.send([services.frames.frame(message)]) }
}
