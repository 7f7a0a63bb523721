import SluiceCore
import SluicePorts

/// The records of a batch that the log rejects for good: their reports and their stand-ins.
///
/// Later records of a partition link to the rejected one, so readers detect the loss and resynchronise. If none follows, a stand-in
/// triggers that at once. The bootstrap leaves quarantined rows out and so removes the row from devices.
struct RefusedRecords {
    private(set) var rows: [UnfitRow] = []
    /// The size of the smallest record that was too large, in bytes, by class index.
    private(set) var sizes: [Int: Int] = [:]
    private(set) var standIns: LogBatch

    /// - Parameters:
    ///   - refused: The log's reasons, by index of the batch's entries.
    ///   - capture: The source of the batch.
    init(_ refused: [Int: SluiceError], of batch: LogBatch, _ capture: CaptureBatch, encoder: inout ChangeEncoder) {
        standIns = LogBatch(topics: batch.topics)
        let ends = Dictionary(
            batch.entries.enumerated().map { (LogPartition(batch.topics[Int($1.topic)], $1.partition), $0) }, uniquingKeysWith: max)
        // The batch has bytes only; the position leads back to the change.
        let changes = Self.changes(of: capture)
        for (index, error) in refused.sorted(by: { $0.key < $1.key }) {
            let entry = batch.entries[index]
            guard let position = ChangeHeaderReader().read(batch.arena[entry.value])?.position,
                let (change, transaction) = changes[position]
            else { continue }
            if error.code == .logRecordTooLarge {
                sizes[Int(entry.topic)] = min(sizes[Int(entry.topic)] ?? .max, entry.key.count + entry.value.count)
            }
            let key = String(decoding: PartitionKey.text(of: encoder.primaryKey(of: change, capture.rows)), as: UTF8.self)
            rows.append(UnfitRow(position: position, type: change.type, key: key, reason: error.operatorText))
            // Only the last entry of its partition needs a stand-in: any later record already reveals the loss.
            guard ends[LogPartition(batch.topics[Int(entry.topic)], entry.partition)] == index else { continue }
            encoder.appendStandIn(for: change, of: transaction, rows: capture.rows, partition: entry.partition, to: &standIns)
        }
    }

    private static func changes(of capture: CaptureBatch) -> [Position: (CapturedChange, CapturedTransaction)] {
        var changes: [Position: (CapturedChange, CapturedTransaction)] = [:]
        for transaction in capture.transactions {
            for change in capture.changes[transaction.changes] { changes[change.position] = (change, transaction) }
        }
        return changes
    }
}
