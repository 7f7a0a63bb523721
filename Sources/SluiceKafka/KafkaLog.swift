package import Logging
import SluiceCore
package import SluicePorts
import Synchronization

/// Kafka, as the change log of the port.
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

    /// The longest time from the start of an `append` until its records can no longer appear, even if it fails. The write waits for room
    /// and then for delivery. The last request may stay with a broker or its followers for as long again.
    package var longestAppend: Duration { configuration.deliveryTimeout * 3 }

    /// The error that separates the clients from the brokers, in librdkafka's words; nil while the brokers respond.
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
                // A new topic takes records as large as ours; the brokers' default of 1 MB would reject some.
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
        // Not sent again: the caller must first find out which records the deleted topic held.
        try await makingAnew(batch.topics) {
            do {
                return try await self.producer.produce(batch)
            } catch let error as SluiceError {
                throw await self.explain(error, of: batch)
            }
        }
    }

    package func place(_ batch: LogBatch) async throws -> [Int64] {
        try await makingAnew(batch.topics) { try await self.producer.place(batch) }
    }

    /// Recreates topics that were deleted at run time. The call that noticed it fails nevertheless.
    func makingAnew<Answer>(_ topics: [String], _ body: () async throws -> Answer) async throws -> Answer {
        do {
            return try await body()
        } catch let error as SluiceError where error.code == .logTopic {
            try? await remake(topics)
            throw error
        }
    }

    /// Recreates the topics known from `prepare` that no longer exist.
    fileprivate func remake(_ names: [String]) async throws {
        let specs = upkeep.specs(of: names)
        defer { upkeep.release(specs) }
        for spec in specs {
            guard try await admin.isMissing(spec.name) else { continue }
            logger.error(
                "A topic is missing. The gateway creates it again; its records are lost.",
                metadata: ["topic": "\(spec.name)", "code": "\(ErrorCode.logTopic.rawValue)"])
            _ = try await prepare([spec])
        }
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
            return try await admin.watermarks(of: partition)
        } catch let error as SluiceError where error.code == .logTopic && upkeep.isKept(partition.topic) {
            try await remake([partition.topic])
            return try await admin.watermarks(of: partition)
        }
    }

    package func makeReader() async throws -> any LogReader {
        let reader = try KafkaReader(configuration, logger: logger, trouble: troubles)
        return KafkaLogReader(reader) { topics in
            Task { try? await self.remake(topics) }  // Unstructured because: reading continues; one at a time, within the admin timeout.
        }
    }
}

/// The topics in use with their settings, so that they can be recreated. One caller at a time recreates a topic.
private final class TopicUpkeep: Sendable {
    private struct State {
        var specs: [String: TopicSpec] = [:]
        var underWay: Set<String> = []
    }

    private let state = Mutex(State())

    func keep(_ topics: some Sequence<(TopicSpec, Int32)>) {
        state.withLock { state in
            for (topic, count) in topics {
                // The partition count in the brokers, not the requested one: keys are hashed by it.
                var kept = topic
                kept.partitions = count
                state.specs[topic.name] = kept
            }
        }
    }

    func isKept(_ topic: String) -> Bool { state.withLock { $0.specs[topic] != nil } }

    /// Returns the known topics among those named, without those that another caller is creating. Marks the returned ones as being
    /// created; the caller must `release` them.
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
    /// The adapter's fetch buffer, reused. Only `next` accesses it, and one task calls `next`.
    private let batch = Mutex(KafkaFetchBatch())
    /// The partitions with a gap that `next` has not reported yet.
    private let gaps = Mutex<Set<LogPartition>>([])
    /// Called with the topics missing at the brokers.
    private let missing: @Sendable ([String]) -> Void

    init(_ reader: KafkaReader, missing: @escaping @Sendable ([String]) -> Void) {
        self.reader = reader
        self.missing = missing
    }

    func assign(_ partitions: [LogPartition: Int64]) async throws {
        guard !partitions.isEmpty else { return }
        try await reader.assign(partitions.mapValues { KafkaStart.at($0) })
    }

    func unassign(_ partitions: [LogPartition]) async throws {
        try await reader.assign([:], removing: Set(partitions))
    }

    func next(_ fetch: consuming LogFetch, milliseconds: Int) async throws -> LogFetch {
        var fetch = fetch
        fetch.removeAll()
        if try await tellGaps(&fetch) { return fetch }
        // Taken out of the mutex, so that no lock is held during the wait below.
        var batch = self.batch.withLock { batch in
            defer { batch = KafkaFetchBatch() }
            return batch
        }
        try await reader.next(into: &batch, timeout: .milliseconds(milliseconds))
        batch.exchangeBytes(&fetch.arena)
        for entry in batch.entries {
            fetch.entries.append(
                .init(
                    partition: batch.partition(of: entry), offset: entry.offset, value: entry.value,
                    contentType: entry.contentType))
        }
        let found = batch.problems.filter { $0.error.code == .logGap }.map(\.partition)
        let unknown = Set(batch.problems.filter { $0.error.code == .logTopic }.map(\.partition.topic))
        gaps.withLock { $0.formUnion(found) }
        let used = batch
        self.batch.withLock { $0 = used }
        if !unknown.isEmpty { missing(unknown.sorted()) }
        // With records in the fetch, the gaps wait for the next call.
        if fetch.entries.isEmpty { _ = try await tellGaps(&fetch) }
        return fetch
    }

    /// Reports gaps in a fetch without records. Records read before a gap must not appear to be after it.
    private func tellGaps(_ fetch: inout LogFetch) async throws -> Bool {
        let gaps = self.gaps.withLock { gaps in
            defer { gaps = [] }
            return gaps
        }
        guard !gaps.isEmpty else { return false }
        // Before the report: if this fails, the reader ends, and the next reader meets the gap again.
        try await reader.assign(Dictionary(uniqueKeysWithValues: gaps.map { ($0, KafkaStart.beginning) }))
        fetch.gaps = Array(gaps)
        return true
    }

    func close() async { await reader.close() }
}
