package import SluiceCore

/// One partition of one topic.
package struct LogPartition: Hashable, Sendable, Comparable, CustomStringConvertible {
    package var topic: String
    package var partition: Int32

    package init(_ topic: String, _ partition: Int32) {
        self.topic = topic
        self.partition = partition
    }

    package static func < (lhs: LogPartition, rhs: LogPartition) -> Bool {
        (lhs.topic, lhs.partition) < (rhs.topic, rhs.partition)
    }

    package var description: String { "\(topic)[\(partition)]" }
}

/// A topic that the gateway needs.
package struct TopicSpec: Hashable, Sendable {
    package var name: String
    package var partitions: Int32
    /// The retention of records, in milliseconds; nil uses the broker's default.
    package var retentionMilliseconds: Int64?

    package init(name: String, partitions: Int32, retentionMilliseconds: Int64? = nil) {
        self.name = name
        self.partitions = partitions
        self.retentionMilliseconds = retentionMilliseconds
    }
}

/// Records to append to the log. One arena holds all their bytes.
package struct LogBatch: Sendable {
    package struct Entry: Sendable {
        /// The index into `topics`.
        package var topic: Int32
        package var partition: Int32
        /// Byte range of the record's key in `arena`.
        package var key: Range<Int>
        /// Byte range of the record's value in `arena`.
        package var value: Range<Int>

        package init(topic: Int32, partition: Int32, key: Range<Int>, value: Range<Int>) {
            self.topic = topic
            self.partition = partition
            self.key = key
            self.value = value
        }

        package var byteCount: Int { key.count + value.count }
    }

    package var topics: [String]
    /// The header `content-type` of every record; nil for none.
    package var contentType: RecordContent?
    package var arena: [UInt8] = []
    package var entries: [Entry] = []

    package init(topics: [String], contentType: RecordContent? = nil) {
        self.topics = topics
        self.contentType = contentType
    }

    package var isEmpty: Bool { entries.isEmpty }
    package var count: Int { entries.count }
    /// The bytes of all records. The arena has more if entries refer only to a part of it. O(entries).
    package var byteCount: Int { entries.reduce(0) { $0 + $1.byteCount } }

    package mutating func removeAll() {
        arena.removeAll(keepingCapacity: true)
        entries.removeAll(keepingCapacity: true)
    }

    /// Appends a record. Change records take this way: it is not generic, so it costs no call per byte in other modules.
    package mutating func append(topic: Int, partition: Int32, key: [UInt8], value: [UInt8]) {
        let start = arena.count
        arena.append(contentsOf: key)
        let middle = arena.count
        arena.append(contentsOf: value)
        enter(topic, partition, start, middle)
    }

    package mutating func append(topic: Int, partition: Int32, key: some Collection<UInt8>, value: some Collection<UInt8>) {
        let start = arena.count
        arena.append(contentsOf: key)
        let middle = arena.count
        arena.append(contentsOf: value)
        enter(topic, partition, start, middle)
    }

    private mutating func enter(_ topic: Int, _ partition: Int32, _ start: Int, _ middle: Int) {
        entries.append(Entry(topic: Int32(topic), partition: partition, key: start..<middle, value: middle..<arena.count))
    }
}

/// The outcome of a batch in which the log may reject records for good.
package struct LogOutcome: Sendable {
    /// The offset after the last stored record of each touched partition.
    package var ends: [LogPartition: Int64]
    /// The log's reason for each rejected record, by index of the batch's entries. Every other record is stored, without a failure.
    package var refused: [Int: SluiceError]
    /// The failure of other records, which may be stored or not; nil for none. It is thrown if no record is rejected.
    package var failure: SluiceError?

    package init(ends: [LogPartition: Int64] = [:], refused: [Int: SluiceError] = [:], failure: SluiceError? = nil) {
        (self.ends, self.refused, self.failure) = (ends, refused, failure)
    }
}

/// Records read from the log. One arena holds all their values.
package struct LogFetch: Sendable {
    package struct Entry: Sendable {
        package var partition: LogPartition
        package var offset: Int64
        package var value: Range<Int>
        /// Byte range of the content type that the producer set; empty if it set none.
        package var contentType: Range<Int>

        package init(partition: LogPartition, offset: Int64, value: Range<Int>, contentType: Range<Int> = 0..<0) {
            self.partition = partition
            self.offset = offset
            self.value = value
            self.contentType = contentType
        }
    }

    package var arena: [UInt8] = []
    package var entries: [Entry] = []
    /// Partitions without a record at the next expected offset, because it expired or the log was recreated.
    /// This reader has lost the records between. It continues with the oldest available one.
    package var gaps: [LogPartition] = []

    package init() {}

    package mutating func removeAll() {
        // A record that is kept also keeps its arena. Reserved capacity would be reallocated beside it, larger each time.
        arena = []
        entries.removeAll(keepingCapacity: true)
        gaps.removeAll(keepingCapacity: true)
    }
}

/// The log port, for Kafka and the embedded log. Both pass one compatibility suite.
package protocol MessageLog: Sendable {
    /// Creates the missing topics. Existing topics keep their number of partitions.
    /// - Returns: the number of partitions of each topic, in the given order.
    func prepare(_ topics: [TopicSpec]) async throws -> [Int32]
    /// Appends a batch and waits until every record is durable (`acks=all`).
    /// - Returns: the offset after the last record of each touched partition.
    func append(_ batch: LogBatch) async throws -> [LogPartition: Int64]
    /// Appends a batch like `append` and returns every offset.
    /// - Returns: the offset of each record, in the order of the batch.
    func place(_ batch: LogBatch) async throws -> [Int64]
    /// Appends a batch in which the log may reject records for good, mostly because of their size. It stores the others.
    /// - Throws: if a record is missing for any other reason and none is rejected. Others of the batch may be stored then.
    func offer(_ batch: LogBatch) async throws -> LogOutcome
    /// Returns the size limit of a record of each topic, in bytes. Topics without a limit are absent.
    func recordBounds(of topics: [String]) async throws -> [String: Int]
    /// Returns the offset after the last record of each partition.
    func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64]
    /// Returns the range of available offsets of each partition.
    func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>]
    /// Opens a reader without assigned partitions. The caller must close it.
    func makeReader() async throws -> any LogReader
}

extension MessageLog {
    package func offer(_ batch: LogBatch) async throws -> LogOutcome { LogOutcome(ends: try await append(batch)) }

    package func recordBounds(of topics: [String]) async throws -> [String: Int] { [:] }

    /// Runs `body` with a new reader and closes that reader on every path. An unclosed reader would keep its thread and keep fetching.
    package func withReader<R>(
        isolation: isolated (any Actor)? = #isolation, _ body: (any LogReader) async throws -> R
    ) async throws -> R {
        let reader = try await makeReader()
        do {
            let result = try await body(reader)
            await reader.close()
            return result
        } catch {
            await reader.close()
            throw error
        }
    }
}

/// A reader of assigned partitions, without a consumer group. It reads exactly its assignment and stores no offsets.
package protocol LogReader: Sendable {
    /// Adds partitions, each from the given offset. A partition that is assigned already moves to its new offset.
    func assign(_ partitions: [LogPartition: Int64]) async throws
    func unassign(_ partitions: [LogPartition]) async throws
    /// Fills `fetch` with the available records. Waits at most `milliseconds` for the first one.
    /// The reader retries transient broker failures itself.
    func next(_ fetch: consuming LogFetch, milliseconds: Int) async throws -> LogFetch
    func close() async
}
