package import Logging
import SluiceCore
package import SluiceKafka
package import SluicePipeline
import Synchronization

/// Kafka as the pipeline's log.
package final class KafkaLog: MessageLog {
    let configuration: KafkaConfiguration
    let admin: KafkaAdmin
    let producer: KafkaProducer
    let logger: Logger
    private let troubles: BrokerTrouble
    private let upkeep = TopicUpkeep()

    package init(_ configuration: KafkaConfiguration, logger: Logger) throws {
        self.configuration = configuration
        self.logger = logger
        troubles = BrokerTrouble(logger: logger)
        admin = try KafkaAdmin(configuration, trouble: troubles)
        producer = try KafkaProducer(configuration, logger: logger, trouble: troubles)
    }

    /// How long after its beginning an `append` may still bring records, whatever became of it: it waits for room, then for the delivery, and
    /// what was sent last may be with a broker or its followers for as long again.
    package var longestAppend: Duration { configuration.deliveryTimeout * 3 }

    /// What keeps the clients from the brokers, in librdkafka's words; nil while they answer.
    package var trouble: String? { troubles.words }

    package func close() async {
        await producer.close()
        await admin.close()
    }

    package func prepare(_ topics: [TopicSpec]) async throws -> [Int32] {
        var counts: [Int32] = []
        for topic in topics {
            do {
                counts.append(try await admin.partitionCount(of: topic.name))
            } catch let error as SluiceError where error.code == .logTopic {
                var settings = topic.retentionMilliseconds.map { ["retention.ms": String($0)] } ?? [:]
                settings["max.message.bytes"] = String(configuration.recordBytes)
                try await admin.create([KafkaTopic(topic.name, partitions: topic.partitions, settings: settings)])
                counts.append(try await admin.partitionCount(of: topic.name, isExpected: true))
            }
        }
        try await producer.warm(topics: topics.map(\.name))
        upkeep.keep(zip(topics, counts))
        return counts
    }

    package func append(_ batch: LogBatch) async throws -> [LogPartition: Int64] {
        // Not sent again: the caller finds out first what the topic that is gone had.
        let ends = try await makingAnew(batch.topics) {
            do {
                return try await self.producer.produce(Self.records(batch))
            } catch let error as SluiceError {
                throw await self.explain(error, of: batch)
            }
        }
        return Dictionary(uniqueKeysWithValues: ends.map { (LogPartition($0.key), $0.value) })
    }

    package func place(_ batch: LogBatch) async throws -> [Int64] {
        try await makingAnew(batch.topics) { try await self.producer.place(Self.records(batch)) }
    }

    /// Makes topics again that were deleted while the gateway runs; the question whose answer told of it fails all the same.
    func makingAnew<Answer>(_ topics: [String], _ body: () async throws -> Answer) async throws -> Answer {
        do {
            return try await body()
        } catch let error as SluiceError where error.code == .logTopic {
            try? await remake(topics)
            throw error
        }
    }

    /// Makes the topics again that `prepare` has made or found and that exist no more.
    fileprivate func remake(_ names: [String]) async throws {
        let specs = upkeep.specs(of: names)
        defer { upkeep.release(specs) }
        for spec in specs {
            guard try await admin.isMissing(spec.name) else { continue }
            logger.error(
                "A topic that was there is missing. It is made again; what was in it is lost.",
                metadata: ["topic": "\(spec.name)", "code": "\(ErrorCode.logTopic.rawValue)"])
            _ = try await prepare([spec])
        }
    }

    static func records(_ batch: LogBatch) -> KafkaRecordBatch {
        let entries = batch.entries.map {
            KafkaRecordBatch.Entry(topic: $0.topic, partition: $0.partition, key: $0.key, value: $0.value)
        }
        return KafkaRecordBatch(topics: batch.topics, entries: entries, bytes: batch.arena)
    }

    package func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] {
        var ends: [LogPartition: Int64] = [:]
        for partition in partitions { ends[partition] = try await marks(of: partition).high }
        return ends
    }

    package func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>] {
        var ranges: [LogPartition: Range<Int64>] = [:]
        for partition in partitions {
            let marks = try await marks(of: partition)
            ranges[partition] = min(marks.low, marks.high)..<marks.high
        }
        return ranges
    }

    private func marks(of partition: LogPartition) async throws -> KafkaWatermarks {
        do {
            return try await admin.watermarks(of: partition.kafka)
        } catch let error as SluiceError where error.code == .logTopic && upkeep.isKept(partition.topic) {
            try await remake([partition.topic])
            return try await admin.watermarks(of: partition.kafka)
        }
    }

    package func makeReader() async throws -> any LogReader {
        let reader = try KafkaReader(configuration, logger: logger, trouble: troubles)
        return KafkaLogReader(reader) { topics in
            // Unstructured because: reading goes on meanwhile. Each topic is made by one task at a time, for the admin's time-out at most.
            Task { try? await self.remake(topics) }
        }
    }
}

/// The topics that the gateway works with, as they were, so that they can be made again. Each is made by one caller at a time.
private final class TopicUpkeep: Sendable {
    private struct State {
        var specs: [String: TopicSpec] = [:]
        var underWay: Set<String> = []
    }

    private let state = Mutex(State())

    func keep(_ topics: some Sequence<(TopicSpec, Int32)>) {
        state.withLock { state in
            for (topic, count) in topics {
                // Rows are spread by the number of partitions that was found.
                var kept = topic
                kept.partitions = count
                state.specs[topic.name] = kept
            }
        }
    }

    func isKept(_ topic: String) -> Bool { state.withLock { $0.specs[topic] != nil } }

    /// Returns the known topics of those named that no other caller is making, and has them count as being made.
    func specs(of names: [String]) -> [TopicSpec] {
        state.withLock { state in
            let specs = names.compactMap { state.specs[$0] }.filter { !state.underWay.contains($0.name) }
            state.underWay.formUnion(specs.map(\.name))
            return specs
        }
    }

    func release(_ specs: [TopicSpec]) { state.withLock { $0.underWay.subtract(specs.map(\.name)) } }
}

private final class KafkaLogReader: LogReader {
    private let reader: KafkaReader
    /// The fetch form of the adapter, reused; only `next` touches it, and one task calls that.
    private let batch = Mutex(KafkaFetchBatch())
    /// Partitions with a gap that have not been told of yet.
    private let gaps = Mutex<Set<KafkaPartition>>([])
    /// Called with topics that the brokers do not know.
    private let missing: @Sendable ([String]) -> Void

    init(_ reader: KafkaReader, missing: @escaping @Sendable ([String]) -> Void) {
        self.reader = reader
        self.missing = missing
    }

    func assign(_ partitions: [LogPartition: Int64]) async throws {
        guard !partitions.isEmpty else { return }
        try await reader.assign(
            Dictionary(uniqueKeysWithValues: partitions.map { ($0.key.kafka, KafkaStart.at($0.value)) }))
    }

    func unassign(_ partitions: [LogPartition]) async throws {
        try await reader.assign([:], removing: Set(partitions.map(\.kafka)))
    }

    func next(_ fetch: consuming LogFetch, milliseconds: Int) async throws -> LogFetch {
        var fetch = fetch
        fetch.removeAll()
        if try await tellGaps(&fetch) { return fetch }
        var batch = self.batch.withLock { batch in
            defer { batch = KafkaFetchBatch() }
            return batch
        }
        try await reader.next(into: &batch, timeout: .milliseconds(milliseconds))
        batch.exchangeBytes(&fetch.arena)
        for entry in batch.entries {
            fetch.entries.append(
                .init(
                    partition: LogPartition(batch.partition(of: entry)), offset: entry.offset, value: entry.value,
                    contentType: entry.contentType))
        }
        let found = batch.problems.filter { $0.error.code == .logGap }.map(\.partition)
        let unknown = Set(batch.problems.filter { $0.error.code == .logTopic }.map(\.partition.topic))
        gaps.withLock { $0.formUnion(found) }
        let used = batch
        self.batch.withLock { $0 = used }
        if !unknown.isEmpty { missing(unknown.sorted()) }
        if fetch.entries.isEmpty { _ = try await tellGaps(&fetch) }
        return fetch
    }

    /// Puts the gaps into a fetch without records: those that were read before the gap must not seem to lie behind it.
    private func tellGaps(_ fetch: inout LogFetch) async throws -> Bool {
        let gaps = self.gaps.withLock { gaps in
            defer { gaps = [] }
            return gaps
        }
        guard !gaps.isEmpty else { return false }
        // Read again before anybody hears of it: a failure here ends the reader, and whoever makes the next one meets the gap again.
        try await reader.assign(Dictionary(uniqueKeysWithValues: gaps.map { ($0, KafkaStart.beginning) }))
        fetch.gaps = gaps.map { LogPartition($0) }
        return true
    }

    func close() async { await reader.close() }
}

extension LogPartition {
    init(_ partition: KafkaPartition) { self.init(partition.topic, partition.partition) }
    var kafka: KafkaPartition { KafkaPartition(topic, partition) }
}
