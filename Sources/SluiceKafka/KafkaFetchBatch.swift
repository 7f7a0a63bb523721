package import SluiceCore

/// Records read from the log: one arena of bytes and a flat list of entries, reused from batch to batch.
package struct KafkaFetchBatch: Sendable {
    /// One record; its key and value are ranges of the arena.
    package struct Entry: Sendable {
        /// Index into `topics`.
        package var topic: Int32
        package var partition: Int32
        package var offset: Int64
        /// Milliseconds since 1970, UTC, as the producer or broker set them; -1 when it did not.
        package var timestamp: Int64
        package var key: Range<Int>
        package var value: Range<Int>
        /// The value of the header `content-type`; empty without one.
        package var contentType: Range<Int>
        /// Whether the record has no value at all (a deletion in a compacted topic).
        package var isTombstone: Bool
    }

    /// Something that is wrong with one partition.
    package struct Problem: Sendable {
        package var partition: KafkaPartition
        /// `logGap`: the records at the offset are gone and the partition is no longer read; assign it anew.
        /// `logTopic`: the partition does not exist just now; it stays assigned and is read when it does.
        package var error: SluiceError
    }

    /// The reader's topics; an index means the same topic for the reader's whole life.
    package internal(set) var topics: [String] = []
    package internal(set) var entries: [Entry] = []
    package internal(set) var bytes: [UInt8] = []
    package internal(set) var problems: [Problem] = []
    /// Whether the brokers answered when the batch was handed over.
    package internal(set) var connection: KafkaConnection = .up

    package init() {}

    /// Whether there are neither records nor problems.
    package var isEmpty: Bool { entries.isEmpty && problems.isEmpty }
    package var count: Int { entries.count }

    package func key(of entry: Entry) -> ArraySlice<UInt8> { bytes[entry.key] }
    package func value(of entry: Entry) -> ArraySlice<UInt8> { bytes[entry.value] }
    package func partition(of entry: Entry) -> KafkaPartition { KafkaPartition(topics[Int(entry.topic)], entry.partition) }

    package mutating func removeAll() {
        entries.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
        problems.removeAll(keepingCapacity: true)
    }

    /// Gives the bytes away for an array that is to be filled next: its room is used again.
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

    /// Forgets the records of a partition that is no longer read, or is read from elsewhere.
    mutating func drop(topic: Int32, partition: KafkaPartition) {
        entries.removeAll { $0.topic == topic && $0.partition == partition.partition }
        problems.removeAll { $0.partition == partition }
        // Nobody takes a batch that is empty, and one whose bytes are full is not read into.
        if entries.isEmpty { bytes.removeAll(keepingCapacity: true) }
    }
}
