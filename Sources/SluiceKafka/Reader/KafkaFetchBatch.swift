package import SluiceCore
package import SluicePorts

/// Records read from the log: one arena of bytes and a flat list of entries, reused from batch to batch.
package struct KafkaFetchBatch: Sendable {
    /// One record; its key and value are ranges of the arena.
    package struct Entry: Sendable {
        /// Index into `topics`.
        package var topic: Int32
        package var partition: Int32
        package var offset: Int64
        /// The time that the producer or broker has set, in milliseconds since 1970 UTC; -1 if none.
        package var timestamp: Int64
        package var key: Range<Int>
        package var value: Range<Int>
        /// The value of the header `content-type`; empty without one.
        package var contentType: Range<Int>
        /// `true` if the record has no value (a deletion in a compacted topic).
        package var isTombstone: Bool
    }

    /// The error of one partition.
    package struct Problem: Sendable {
        package var partition: LogPartition
        /// The cause. After `logGap` the requested records no longer exist, and the partition is not read until it is assigned
        /// again.
        ///
        /// After `logTopic` or `logNotAuthorized` the partition stays assigned. It is read as soon as the brokers permit it.
        package var error: SluiceError
    }

    /// The reader's topics. An index names the same topic for the reader's whole life.
    package internal(set) var topics: [String] = []
    package internal(set) var entries: [Entry] = []
    package internal(set) var bytes: [UInt8] = []
    package internal(set) var problems: [Problem] = []
    /// The state of the connection when the batch was handed over.
    package internal(set) var connection: KafkaConnection = .up

    package init() {}

    /// `true` if the batch has neither records nor problems.
    package var isEmpty: Bool { entries.isEmpty && problems.isEmpty }
    package var count: Int { entries.count }

    package func key(of entry: Entry) -> ArraySlice<UInt8> { bytes[entry.key] }
    package func value(of entry: Entry) -> ArraySlice<UInt8> { bytes[entry.value] }
    package func partition(of entry: Entry) -> LogPartition { LogPartition(topics[Int(entry.topic)], entry.partition) }

    package mutating func removeAll() {
        entries.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
        problems.removeAll(keepingCapacity: true)
    }

    /// Exchanges the bytes for an array that is filled next, whose capacity is reused.
    package mutating func exchangeBytes(_ other: inout [UInt8]) { swap(&bytes, &other) }

    mutating func append(
        topic: Int32, partition: Int32, offset: Int64, timestamp: Int64, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer?,
        contentType: UnsafeRawBufferPointer
    ) {
        let start = bytes.count
        unsafe bytes.append(contentsOf: key)
        let middle = bytes.count
        if let value = unsafe value { unsafe bytes.append(contentsOf: value) }
        let end = bytes.count
        unsafe bytes.append(contentsOf: contentType)
        let isTombstone = unsafe value == nil
        entries.append(
            Entry(
                topic: topic, partition: partition, offset: offset, timestamp: timestamp, key: start..<middle,
                value: middle..<end, contentType: end..<bytes.count, isTombstone: isTombstone
            )
        )
    }

    /// Removes the records of a partition that is no longer read, or is read from another offset.
    mutating func drop(topic: Int32, partition: LogPartition) {
        entries.removeAll { $0.topic == topic && $0.partition == partition.partition }
        problems.removeAll { $0.partition == partition }
        // An empty batch is never taken, and one whose bytes are full is never filled.
        if entries.isEmpty { bytes.removeAll(keepingCapacity: true) }
    }
}
