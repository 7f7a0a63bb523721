import SluiceCore
import SluicePorts
import SluiceWire

/// Encodes captured changes into log records. Each row is encoded once, here, and clients receive slices of these bytes.
struct ChangeEncoder {
    private let codec: ChangeRecordCodec
    private let layout: Partitioning
    private let primaryKeys: [Int?]
    private var writer = ByteWriter(capacity: 4_096)
    private var key: [UInt8] = []
    private var otherKey: [UInt8] = []
    /// The chain's slot of each partition, by class.
    private let slots: [[Int]]

    /// - Parameter chain: The state passed to every `append`.
    init(schema: Schema, layout: Partitioning, chain: inout PublisherState) {
        slots = layout.layouts.map { type in
            guard let type else { return [] }
            return (0..<type.partitions).map { chain.slot(of: LogPartition(type.topic, $0)) }
        }
        codec = ChangeRecordCodec(schema)
        self.layout = layout
        primaryKeys = schema.types.map(\.primaryKey)
    }

    /// The topics of the records, in the order of `LogBatch.topics`: by class index, "" for classes without a topic.
    var topics: [String] { layout.layouts.map { $0?.topic ?? "" } }

    /// Appends the record of one change to `batch`, or both records of a row that moves between partitions.
    mutating func append(
        _ change: CapturedChange, of transaction: CapturedTransaction, rows: RowBuffer, chain: inout PublisherState,
        to batch: inout LogBatch
    ) {
        guard let type = layout.layouts[Int(change.type)] else { return }
        if change.operation == .truncate {
            // Each partition receives the truncation, because a reader may subscribe to any subset.
            for partition in 0..<type.partitions { write(change, transaction, rows, partition, .stay, key: [], &chain, &batch) }
            return
        }
        let old = change.before.map { Self.readKey($0, type, rows, into: &otherKey) }
        let new = change.after.map { Self.readKey($0, type, rows, into: &key) }
        // A changed key is published twice, even within one partition: subscribers of the old key must see the row leave.
        if let old, let new, old != new || key != otherKey {
            write(change, transaction, rows, old, .leave, key: otherKey, &chain, &batch)
            write(change, transaction, rows, new, .enter, key: key, &chain, &batch)
        } else if let partition = new ?? old {
            write(change, transaction, rows, partition, .stay, key: new == nil ? otherKey : key, &chain, &batch)
        }
    }

    private static func readKey(
        _ row: RowRef, _ type: Partitioning.TypeLayout, _ rows: RowBuffer, into text: inout [UInt8]
    ) -> Int32 {
        text.removeAll(keepingCapacity: true)
        rows.withView(row) { PartitionKey.append($0[type.keyProperty], of: $0, to: &text) }
        return Partitioner.partition(of: text, partitions: type.partitions)
    }

    private mutating func write(
        _ change: CapturedChange, _ transaction: CapturedTransaction, _ rows: RowBuffer, _ partition: Int32,
        _ passage: Passage, key: [UInt8], _ chain: inout PublisherState, _ batch: inout LogBatch
    ) {
        let slot = slots[Int(change.type)][Int(partition)]
        // The log has this position already: it was produced before a takeover.
        if chain.isStored(slot, change.position) { return }
        writer.removeAll()
        let previous = chain.link(slot, change.position)
        codec.encode(change, of: transaction, rows: rows, previous: previous, passage: passage, into: &writer)
        // The record would contain a long key three times. Readers do not use it.
        batch.append(
            topic: Int(change.type), partition: partition, key: key.count > Limits.recordKeyBytes ? [] : key, value: writer.bytes)
    }

    /// Appends the stand-in of a record that the log rejected: its head, without images.
    /// No reader has seen the stand-in's predecessor, so each one detects a gap and resynchronises.
    mutating func appendStandIn(
        for change: CapturedChange, of transaction: CapturedTransaction, rows: RowBuffer, partition: Int32, to batch: inout LogBatch
    ) {
        writer.removeAll()
        codec.encodeHead(
            of: change, of: transaction, key: primaryKey(of: change, rows), previous: Position(lsn: .max, ordinal: 0), into: &writer)
        batch.append(topic: Int(change.type), partition: partition, key: [], value: writer.bytes)
    }

    /// Returns the primary key of a changed object; null for a truncation.
    func primaryKey(of change: CapturedChange, _ rows: RowBuffer) -> Value {
        guard let image = change.after ?? change.before, let key = primaryKeys[Int(change.type)] else { return .null }
        return rows.withView(image) { $0.value(key) } ?? .null
    }
}
