import SluiceCore
import SluicePorts
import SluiceWire

/// Reads the fields of a change record that ordering needs: its position, its predecessor and its transaction.
struct ChangeHeaderReader {
    struct Header {
        var position: Position
        var previous: Position?
        var xid: UInt32
    }

    private let codec = ChangeRecordCodec(Schema([]))

    /// Returns the header; nil if the record is malformed.
    func read(_ bytes: ArraySlice<UInt8>) -> Header? {
        bytes.withUnsafeBytes { buffer in
            guard let view = try? codec.decode(buffer) else { return nil }
            return Header(position: view.position, previous: view.previous, xid: view.xid)
        }
    }
}

extension ProgressRecord {
    init(_ message: LogProgress) {
        self.init(
            lsn: message.lsn, commitTime: message.commitTime,
            grown: Dictionary(
                message.grown.map { (LogPartition($0.topic, $0.partition), $0.end) }, uniquingKeysWith: { max($0, $1) }),
            since: message.since, completeSince: message.completeSince, witness: message.witness, writeTime: message.writeTime)
    }

    var message: LogProgress {
        LogProgress(
            lsn: lsn, commitTime: commitTime,
            grown: grown.map { PartitionEnd(topic: $0.key.topic, partition: $0.key.partition, end: $0.value) }, since: since,
            completeSince: completeSince, witness: witness, writeTime: writeTime)
    }
}
