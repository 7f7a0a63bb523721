import SluiceCore
import SluiceWire

/// Encodes the changes of one batch for a session's view. Rows are copied from the records.
struct CommitsEncoder {
    let batch: ReleasedBatch
    /// A decoder that has decoded the batch.
    let decoder: ChangeDecoder
    let schema: Schema
    let frames: any FrameMaker
    /// A transaction that identifies the batch's watermark.
    let witness: Witness?

    /// Encodes the changes of one subscriber.
    /// - Returns: One frame, or several if the changes are large. Only the last frame carries the watermark's witness.
    func encode(_ subscriber: Subscriber) -> [Frame] {
        var writer = CommitsWriter()
        var pieces: [Frame] = []
        var open: LSN?
        for token in subscriber.tokens {
            let record = batch.records[token.record]
            let change = decoder.change(token.change)
            let isNext = open != record.position.lsn
            if isNext, open != nil { writer.endCommit() }
            // The frames split between commits early, and inside of one commit only when it is twice as large.
            let isFull = writer.byteCount > Limits.bootstrapBytes * (isNext ? 4 : 8)
            if isFull {
                if !isNext { writer.endCommit() }
                pieces.append(frames.frame(writer.finish(batch.watermark, more: true)))
                writer = CommitsWriter()
            }
            if isNext || isFull {
                writer.beginCommit(record.position.lsn, commitTime: change.commitTime, changeset: subscriber.changeset(of: change))
                open = record.position.lsn
            }
            add(token, change, record, mask: subscriber.view.type(change.type)?.mask ?? nil, to: &writer)
        }
        if open != nil { writer.endCommit() }
        pieces.append(frames.frame(writer.finish(batch.watermark, witness: witness)))
        return pieces
    }

    private func add(_ token: Token, _ change: DecodedChange, _ record: PendingRecord, mask: [Bool]?, to writer: inout CommitsWriter) {
        let type = schema.types[change.type].name
        record.bytes.withUnsafeBytes { bytes in
            guard token.event.hasRow, let row = change.row else {
                writer.addChange(type, token.event, UnsafeRawBufferPointer(rebasing: bytes[change.primaryKey]))
                return
            }
            let content = UnsafeRawBufferPointer(rebasing: bytes[row])
            guard let mask else {
                writer.addChange(type, token.event, content)
                return
            }
            // The record was decoded before, so this cannot fail. If it did, the change would be left out, never sent unmasked.
            try? writer.addChange(token.event, content, codec: decoder.rowCodec(of: change.type), mask: mask)
        }
    }
}
