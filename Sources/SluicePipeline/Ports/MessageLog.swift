package import SluiceCore

/// One partition of one topic.
package struct LogPartition: Hashable, Sendable {
    package var topic: String
    package var partition: Int32

    package init(_ topic: String, _ partition: Int32) {
        self.topic = topic
        self.partition = partition
    }
}

/// A topic that the gateway needs.
package struct TopicSpec: Hashable, Sendable {
    package var name: String
    package var partitions: Int32
    /// Milliseconds that records are kept; nil is the broker's default.
    package var retentionMilliseconds: Int64?

    package init(name: String, partitions: Int32, retentionMilliseconds: Int64? = nil) {
        self.name = name
        self.partitions = partitions
        self.retentionMilliseconds = retentionMilliseconds
    }
}

/// Records on their way into the log, all their bytes in one arena.
package struct LogBatch: Sendable {
    package struct Entry: Sendable {
        /// Index into `topics`.
        package var topic: Int32
        package var partition: Int32
        package var key: Range<Int>
        package var value: Range<Int>
    }

    package var topics: [String]
    package var arena: [UInt8] = []
    package var entries: [Entry] = []

    package init(topics: [String]) { self.topics = topics }

    package var isEmpty: Bool { entries.isEmpty }

    package mutating func removeAll() {
        arena.removeAll(keepingCapacity: true)
        entries.removeAll(keepingCapacity: true)
    }

    package mutating func append(topic: Int, partition: Int32, key: some Collection<UInt8>, value: some Collection<UInt8>) {
        let keyStart = arena.count
        arena.append(contentsOf: key)
        let valueStart = arena.count
        arena.append(contentsOf: value)
        entries.append(
            Entry(topic: Int32(topic), partition: partition, key: keyStart..<valueStart, value: valueStart..<arena.count))
    }
}

/// The outcome of a batch in which the log may refuse records for good.
package struct LogOutcome: Sendable {
    /// The offset after the last stored record of each partition touched.
    package var ends: [LogPartition: Int64]
    /// The log's reasons, by index of the batch's entries. Everything else is stored.
    package var refused: [Int: SluiceError]

    package init(ends: [LogPartition: Int64] = [:], refused: [Int: SluiceError] = [:]) {
        (self.ends, self.refused) = (ends, refused)
    }
}

/// Records read from the log, all their values in one arena.
package struct LogFetch: Sendable {
    package struct Entry: Sendable {
        package var partition: LogPartition
        package var offset: Int64
        package var value: Range<Int>
        /// How the value is written, as whoever wrote it said; empty when they did not.
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
    /// Partitions that had no record at the offset that came next, because it is gone or the log was made anew: what lay
    /// between is lost for this reader. It goes on with the oldest record that is there.
    package var gaps: [LogPartition] = []

    package init() {}

    package mutating func removeAll() {
        // Whoever keeps a record keeps its arena: room kept here would be allocated anew beside it, larger each time.
        arena = []
        entries.removeAll(keepingCapacity: true)
        gaps.removeAll(keepingCapacity: true)
    }
}

/// The log: Kafka, or the embedded one. Both pass one compatibility suite.
package protocol MessageLog: Sendable {
    /// Makes the topics that are missing. Existing ones keep their number of partitions.
    /// - Returns: the partitions of each topic, in the order asked.
    func prepare(_ topics: [TopicSpec]) async throws -> [Int32]
    /// Returns when every record is durable (acks=all), with the offset after the last record of each partition touched.
    func append(_ batch: LogBatch) async throws -> [LogPartition: Int64]
    /// `append`, for who wants to know of each record where it is.
    /// - Returns: the offset of each record, in the order of the batch.
    func place(_ batch: LogBatch) async throws -> [Int64]
    /// `append`, for a batch in which the log may refuse records for good, by their size above all. It stores the others.
    /// - Throws: when a record is missing for any other reason. Others of the batch may be stored.
    func offer(_ batch: LogBatch) async throws -> LogOutcome
    /// Bytes of the largest record that each topic takes. Topics that the log does not limit are absent.
    func recordBounds(of topics: [String]) async throws -> [String: Int]
    /// The offset after the last record of each partition.
    func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64]
    /// The offsets of the records that are there, of each partition.
    func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>]
    func makeReader() async throws -> any LogReader
}

extension MessageLog {
    package func offer(_ batch: LogBatch) async throws -> LogOutcome { LogOutcome(ends: try await append(batch)) }

    package func recordBounds(of topics: [String]) async throws -> [String: Int] { [:] }

    /// Lends a reader. It is closed however the body ends: one that is not keeps its thread, and goes on fetching.
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

/// A reader of assigned partitions, without a group: it reads exactly what it is told to, and remembers nothing.
package protocol LogReader: Sendable {
    /// Adds partitions, each from the given offset, and moves those that are read already there.
    func assign(_ partitions: [LogPartition: Int64]) async throws
    func unassign(_ partitions: [LogPartition]) async throws
    /// Fills `fetch` with what is there, waiting at most `milliseconds` for the first record. Passing troubles of the
    /// brokers are waited out inside.
    func next(_ fetch: consuming LogFetch, milliseconds: Int) async throws -> LogFetch
    func close() async
}
