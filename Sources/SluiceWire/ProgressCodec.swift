package import SluiceCore

/// The end of a partition after a batch.
package struct PartitionEnd: Hashable, Sendable {
    package var topic: String
    package var partition: Int32
    /// The offset after the last record of the batch.
    package var end: Int64

    package init(topic: String, partition: Int32, end: Int64) {
        self.topic = topic
        self.partition = partition
        self.end = end
    }
}

/// A progress record: the log has all transactions up to and including `lsn`, below these offsets.
package struct LogProgress: Hashable, Sendable {
    package var lsn: LSN
    /// The time of the last commit, in microseconds since 1970, UTC. It measures the lag of the log.
    package var commitTime: Int64
    package var grown: [PartitionEnd]
    /// The `lsn` of the previous progress record, or the slot's position when it was taken. Zero if unknown.
    ///
    /// If it exceeds the last `lsn` that the reader knows, the log lacks the commits in between.
    package var since: LSN
    /// The log has all commits between this position and `lsn`, except those that retention removed. Zero if unknown.
    package var completeSince: LSN
    /// The last known transaction up to `lsn`.
    package var witness: HistoryAnchor?
    /// The latest time of a client's write up to `lsn`. Zero if there is none.
    package var writeTime: HybridTime

    package init(
        lsn: LSN, commitTime: Int64, grown: [PartitionEnd], since: LSN, completeSince: LSN = .zero, witness: HistoryAnchor? = nil,
        writeTime: HybridTime = .zero
    ) {
        self.lsn = lsn
        self.commitTime = commitTime
        self.grown = grown
        self.since = since
        self.completeSince = completeSince
        self.witness = witness
        self.writeTime = writeTime
    }
}

/// The codec of the `Progress` message.
package enum ProgressCodec {
    package static func encode(_ progress: LogProgress, into writer: inout ByteWriter) {
        writer.ifNotZero(1, fixed64: progress.lsn.rawValue)
        writer.ifNotZero(2, zigzag: progress.commitTime)
        for grown in progress.grown {
            let content = writer.open(3)
            writer.ifNotEmpty(1, string: grown.topic)
            writer.ifNotZero(2, varint: UInt64(bitPattern: Int64(grown.partition)))
            writer.ifNotZero(3, varint: UInt64(bitPattern: grown.end))
            writer.close(content)
        }
        writer.ifNotZero(4, fixed64: progress.since.rawValue)
        writer.ifNotZero(5, fixed64: progress.completeSince.rawValue)
        if let witness = progress.witness { writer.field(6, bytes: witness.bytes) }
        writer.ifNotZero(7, fixed64: progress.writeTime.rawValue)
    }

    package static func encode(_ progress: LogProgress) -> [UInt8] {
        var writer = ByteWriter()
        encode(progress, into: &writer)
        return writer.take()
    }

    package static func decode(_ bytes: UnsafeRawBufferPointer) throws(SluiceError) -> LogProgress {
        var reader = WireReader(bytes)
        var progress = LogProgress(lsn: .zero, commitTime: 0, grown: [], since: .zero)
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .fixed64): progress.lsn = LSN(rawValue: try reader.fixed64())
            case (2, .varint): progress.commitTime = try reader.zigzag()
            case (3, .lengthDelimited): progress.grown.append(try partition(reader.nested(try reader.content())))
            case (4, .fixed64): progress.since = LSN(rawValue: try reader.fixed64())
            case (5, .fixed64): progress.completeSince = LSN(rawValue: try reader.fixed64())
            case (6, .lengthDelimited): progress.witness = HistoryAnchor(reader.slice(try reader.content()))
            case (7, .fixed64): progress.writeTime = HybridTime(rawValue: try reader.fixed64())
            default: try reader.skip(tag.type)
            }
        }
        return progress
    }

    private static func partition(_ reader: WireReader) throws(SluiceError) -> PartitionEnd {
        var reader = reader
        var grown = PartitionEnd(topic: "", partition: 0, end: 0)
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): grown.topic = try reader.string()
            case (2, .varint): grown.partition = Int32(truncatingIfNeeded: try reader.varint())
            case (3, .varint): grown.end = Int64(bitPattern: try reader.varint())
            default: try reader.skip(tag.type)
            }
        }
        return grown
    }
}
