import SluiceCore
import SluicePorts
import SluiceWire

/// Encodes the changes of one batch for a session's view, with rows and write times copied from the records.
struct CommitsEncoder {
    let batch: ReleasedBatch
    /// A decoder that has decoded the batch.
    let decoder: ChangeDecoder
    let schema: Schema
    let frames: any FrameMaker
    /// A transaction that identifies the batch's watermark.
    let witness: HistoryAnchor?

    /// Encodes the changes of one subscriber.
    /// - Returns: one frame, or several if the changes are large. Only the last frame carries the watermark's witness.
    func encode(_ subscriber: Subscriber) -> [Frame] {
        var writer = CommitsWriter()
        var pieces: [Frame] = []
        var open: LSN?
        let bound = writeTimeBound(subscriber.tokens)
        for token in subscriber.tokens {
            let record = batch.records[token.record]
            let change = decoder.change(token.change)
            // The batch is in commit order, so the records of one commit are adjacent and have its LSN.
            if open != record.position.lsn {
                if open != nil { writer.endCommit() }
                // Split between commits early, inside of one commit only when it is twice as large.
                if writer.byteCount > Limits.bootstrapBytes * 4 {
                    pieces.append(frames.frame(writer.finish(batch.watermark, more: true)))
                    writer = CommitsWriter()
                }
                begin(change, at: record.position.lsn, for: subscriber, bound, &writer)
                open = record.position.lsn
            } else if writer.byteCount > Limits.bootstrapBytes * 8 {
                writer.endCommit()
                // The commit goes on in the next frame, under the same LSN.
                pieces.append(frames.frame(writer.finish(batch.watermark, more: true)))
                writer = CommitsWriter()
                begin(change, at: record.position.lsn, for: subscriber, bound, &writer)
            }
            add(token, change, record, of: subscriber, to: &writer)
        }
        if open != nil { writer.endCommit() }
        pieces.append(frames.frame(writer.finish(batch.watermark, witness: witness)))
        return pieces
    }

    /// Returns the time that the client's later writes must exceed besides those of the commits; zero if there is none.
    ///
    /// A row that existed before it entered the view may have values with later write times than its commit.
    private func writeTimeBound(_ tokens: [Token]) -> HybridTime {
        let hasOldRow = tokens.contains { $0.event == .entered && decoder.change($0.change).operation != .insert }
        return hasOldRow ? batch.writeTime : .zero
    }

    private func begin(
        _ change: DecodedChange, at lsn: LSN, for subscriber: Subscriber, _ bound: HybridTime, _ writer: inout CommitsWriter
    ) {
        writer.beginCommit(
            lsn, commitTime: change.commitTime, changeset: subscriber.changeset(of: change),
            writeTime: max(change.origin?.time ?? .zero, bound))
    }

    private func add(
        _ token: Token, _ change: DecodedChange, _ record: PendingRecord, of subscriber: Subscriber, to writer: inout CommitsWriter
    ) {
        let type = schema.types[change.type].name
        let view = subscriber.view.type(change.type)
        let changed = subscriber.channel.isLocal && change.operation != .insert ? self.changed(change, view) : nil
        record.bytes.withUnsafeBytes { bytes in
            let times = UnsafeRawBufferPointer(rebasing: bytes[change.times])
            guard token.event.hasRow, let row = change.row else {
                // The client may have dropped an object that still exists, so only a delete carries times.
                let key = UnsafeRawBufferPointer(rebasing: bytes[change.primaryKey])
                writer.addChange(type, token.event, key, times: token.event == .deleted ? times : nil)
                return
            }
            let content = UnsafeRawBufferPointer(rebasing: bytes[row])
            // Without a mask, the bytes of the record are forwarded without decoding them.
            guard let view, let mask = view.mask else {
                writer.addChange(type, token.event, content, times: times, changed: changed)
                return
            }
            // The record was decoded before, so this cannot fail. If it did, the change would be dropped, never sent unmasked.
            let visible = decoder.times(of: change, in: record.bytes, view)
            let codec = decoder.rowCodec(of: change.type)
            try? writer.addChange(token.event, content, codec: codec, mask: mask, times: visible, changed: changed)
        }
    }

    /// Returns the numbers of the visible properties that a change of an existing row may have changed, ascending.
    ///
    /// A property that the old image lacks counts as changed.
    private func changed(_ change: DecodedChange, _ view: TypeView?) -> [UInt32] {
        let properties = schema.types[change.type].properties
        return decoder.withRows(change) { before, after in
            guard let before, let after else { return properties.map(\.id) }
            return properties.indices.filter { view?.mask?[$0] != false && !before.hasSame($0, as: after) }.map { properties[$0].id }
        }.sorted()
    }
}

extension RowView {
    /// Returns `true` if two rows have the same value of a property. A value that either row lacks is not the same.
    fileprivate func hasSame(_ property: Int, as other: RowView) -> Bool {
        let (mine, theirs) = (self[property], other[property])
        guard mine.tag == theirs.tag, mine.tag != .absent else { return false }
        guard mine.tag.isInArena else { return mine.length == theirs.length && mine.bits == theirs.bits }
        return bytes(of: mine).elementsEqual(other.bytes(of: theirs))
    }
}
