package import SluiceCore
package import SluiceWire

/// A progress record: the log has all transactions up to and including `lsn`, below these offsets.
package struct ProgressRecord: Hashable, Sendable {
    package var lsn: LSN
    /// The time of the last commit, in microseconds since 1970, UTC. It measures the lag of the log.
    package var commitTime: Int64
    /// The partitions that grew since the previous record, with the offset after their last record.
    package var grown: [LogPartition: Int64]
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
        lsn: LSN, commitTime: Int64, grown: [LogPartition: Int64], since: LSN, completeSince: LSN = .zero, witness: HistoryAnchor? = nil,
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
    package static func encode(_ progress: ProgressRecord, into writer: inout ByteWriter) {
        writer.ifNotZero(1, fixed64: progress.lsn.rawValue)
        writer.ifNotZero(2, zigzag: progress.commitTime)
        for (partition, end) in progress.grown {
            let content = writer.open(3)
            writer.ifNotEmpty(1, string: partition.topic)
            writer.ifNotZero(2, varint: UInt64(bitPattern: Int64(partition.partition)))
            writer.ifNotZero(3, varint: UInt64(bitPattern: end))
            writer.close(content)
        }
        writer.ifNotZero(4, fixed64: progress.since.rawValue)
        writer.ifNotZero(5, fixed64: progress.completeSince.rawValue)
        if let witness = progress.witness { writer.field(6, bytes: witness.bytes) }
        writer.ifNotZero(7, fixed64: progress.writeTime.rawValue)
    }

    package static func encode(_ progress: ProgressRecord) -> [UInt8] {
        var writer = ByteWriter()
        encode(progress, into: &writer)
        return writer.take()
    }

    package static func decode(_ bytes: UnsafeRawBufferPointer) throws(SluiceError) -> ProgressRecord {
        var reader = WireReader(bytes)
        var progress = ProgressRecord(lsn: .zero, commitTime: 0, grown: [:], since: .zero)
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .fixed64): progress.lsn = LSN(rawValue: try reader.fixed64())
            case (2, .varint): progress.commitTime = try reader.zigzag()
            case (3, .lengthDelimited):
                let grown = try partitionEnd(reader.nested(try reader.content()))
                // The publisher names a partition once. For any other writer the highest end wins.
                progress.grown[grown.partition] = max(progress.grown[grown.partition] ?? grown.end, grown.end)
            case (4, .fixed64): progress.since = LSN(rawValue: try reader.fixed64())
            case (5, .fixed64): progress.completeSince = LSN(rawValue: try reader.fixed64())
            case (6, .lengthDelimited): progress.witness = HistoryAnchor(reader.slice(try reader.content()))
            case (7, .fixed64): progress.writeTime = HybridTime(rawValue: try reader.fixed64())
            default: try reader.skip(tag.type)
            }
        }
        return progress
    }

    private static func partitionEnd(_ reader: WireReader) throws(SluiceError) -> (partition: LogPartition, end: Int64) {
        var reader = reader
        var partition = LogPartition("", 0)
        var end: Int64 = 0
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): partition.topic = try reader.string()
            case (2, .varint): partition.partition = Int32(truncatingIfNeeded: try reader.varint())
            case (3, .varint): end = Int64(bitPattern: try reader.varint())
            default: try reader.skip(tag.type)
            }
        }
        return (partition, end)
    }
}
