/// Records on their way to the log: one arena of bytes and a flat list of entries, reused from batch to batch.
package struct KafkaRecordBatch: Sendable {
    /// One record; its key and value are ranges of the arena.
    package struct Entry: Sendable {
        /// Index into `topics`.
        package var topic: Int32
        package var partition: Int32
        package var key: Range<Int>
        package var value: Range<Int>

        package init(topic: Int32, partition: Int32, key: Range<Int>, value: Range<Int>) {
            self.topic = topic
            self.partition = partition
            self.key = key
            self.value = value
        }

        var byteCount: Int { key.count + value.count }
    }

    /// The topics that entries refer to by index. `removeAll` keeps them.
    package private(set) var topics: [String] = []
    package private(set) var entries: [Entry] = []
    package private(set) var bytes: [UInt8] = []
    /// The bytes of all records. The arena has more if entries refer only to a part of it.
    package private(set) var byteCount = 0

    package init() {}

    /// Creates a batch of records in an arena, without copying it.
    ///
    /// - Precondition: Every entry refers to one of the topics, and to ranges of the bytes.
    package init(topics: [String], entries: [Entry], bytes: [UInt8]) {
        self.topics = topics
        self.entries = entries
        self.bytes = bytes
        for entry in entries { byteCount += entry.byteCount }
    }

    package var isEmpty: Bool { entries.isEmpty }
    package var count: Int { entries.count }

    /// Returns the index of a topic for `append`, and adds the topic if it is new; up to 65,535 of them. O(topics).
    package mutating func index(ofTopic topic: String) -> Int32 {
        if let known = topics.firstIndex(of: topic) { return Int32(known) }
        topics.append(topic)
        return Int32(topics.count - 1)
    }

    /// Adds one record and copies its bytes.
    package mutating func append(topic: Int32, partition: Int32, key: some Sequence<UInt8>, value: some Sequence<UInt8>) {
        let start = bytes.count
        bytes.append(contentsOf: key)
        let middle = bytes.count
        bytes.append(contentsOf: value)
        entries.append(Entry(topic: topic, partition: partition, key: start..<middle, value: middle..<bytes.count))
        byteCount += bytes.count - start
    }

    /// Adds one record, whose key and value `write` appends to the arena in this order.
    ///
    /// - Parameter write: Returns the number of key bytes, which it has appended first.
    package mutating func append(topic: Int32, partition: Int32, writing write: (inout [UInt8]) -> Int) {
        let start = bytes.count
        let middle = min(start + max(write(&bytes), 0), bytes.count)
        entries.append(Entry(topic: topic, partition: partition, key: start..<middle, value: middle..<bytes.count))
        byteCount += bytes.count - start
    }

    /// Empties the batch and keeps its memory and topics.
    package mutating func removeAll() {
        entries.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
        byteCount = 0
    }
}
