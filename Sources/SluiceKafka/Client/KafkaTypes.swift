package import SluiceCore

/// The start of reading a partition.
package enum KafkaStart: Hashable, Sendable {
    /// At the record with this offset, or the first one after it. An offset that the log no longer has is a gap.
    case at(Int64)
    /// At the oldest record of the log.
    case beginning
    /// After the newest record.
    case end
}

/// The offset range of a partition: `low` is the oldest record's, `high` the one that the next record receives.
package struct KafkaWatermarks: Hashable, Sendable {
    package var low: Int64
    package var high: Int64

    package init(low: Int64, high: Int64) {
        self.low = low
        self.high = high
    }
}

/// The state of a reader's connection to its brokers.
package enum KafkaConnection: Hashable, Sendable {
    case up
    /// None of the brokers answers; the reader keeps trying.
    case down(SluiceError)
}
