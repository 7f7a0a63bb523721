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
                counts.append(try await admin.partitionCount(of: topic.name))
            }
        }
        try await producer.warm(topics: topics.map(\.name))
        return counts
    }

    package func append(_ batch: LogBatch) async throws -> [LogPartition: Int64] {
        do {
            return Dictionary(
                uniqueKeysWithValues: try await producer.produce(Self.records(batch)).map { (LogPartition($0.key), $0.value) })
        } catch let error as SluiceError {
            throw await explain(error, of: batch)
        }
    }

    package func place(_ batch: LogBatch) async throws -> [Int64] { try await producer.place(Self.records(batch)) }

    static func records(_ batch: LogBatch) -> KafkaRecordBatch {
        let entries = batch.entries.map {
            KafkaRecordBatch.Entry(topic: $0.topic, partition: $0.partition, key: $0.key, value: $0.value)
        }
        return KafkaRecordBatch(topics: batch.topics, entries: entries, bytes: batch.arena)
    }

    package func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] {
        var ends: [LogPartition: Int64] = [:]
        for partition in partitions { ends[partition] = try await admin.watermarks(of: partition.kafka).high }
        return ends
    }

    package func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>] {
        var ranges: [LogPartition: Range<Int64>] = [:]
        for partition in partitions {
            let marks = try await admin.watermarks(of: partition.kafka)
            ranges[partition] = min(marks.low, marks.high)..<marks.high
        }
        return ranges
    }

    package func makeReader() async throws -> any LogReader {
        KafkaLogReader(try KafkaReader(configuration, logger: logger, trouble: troubles))
    }
}

private final class KafkaLogReader: LogReader {
    private let reader: KafkaReader
    /// The fetch form of the adapter, reused; only `next` touches it, and one task calls that.
    private let batch = Mutex(KafkaFetchBatch())

    init(_ reader: KafkaReader) { self.reader = reader }

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
        // Read again before anybody hears of it: a failure here ends the reader, and whoever makes the next one meets the gap again.
        let gaps = Set(batch.problems.filter { $0.error.code == .logGap }.map(\.partition))
        if !gaps.isEmpty { try await reader.assign(Dictionary(uniqueKeysWithValues: gaps.map { ($0, KafkaStart.beginning) })) }
        fetch.gaps = gaps.map { LogPartition($0) }
        let used = batch
        self.batch.withLock { $0 = used }
        return fetch
    }

    func close() async { await reader.close() }
}

extension LogPartition {
    init(_ partition: KafkaPartition) { self.init(partition.topic, partition.partition) }
    var kafka: KafkaPartition { KafkaPartition(topic, partition) }
}
