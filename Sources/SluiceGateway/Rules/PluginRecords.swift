import Logging
import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues
import Synchronization

/// Stores the plugins' records in Kafka.
final class PluginRecords: Sendable {
    private let log: (any MessageLog)?
    private let app: String
    private let isDevelopment: Bool
    private let logger: Logger
    /// The partition counts of topics that are known to exist.
    private let topics = Mutex<[String: Int32]>([:])

    static let partitions: Int32 = 4

    /// - Parameter log: Kafka; nil without it.
    init(log: (any MessageLog)?, app: String, isDevelopment: Bool, logger: Logger) {
        self.log = log
        self.app = app
        self.isDevelopment = isDevelopment
        self.logger = logger
    }

    /// Publishes records and returns once the brokers have acknowledged all of them.
    ///
    /// Without Kafka, development mode logs the records instead.
    ///
    /// - Throws: `configMissing` without Kafka; `logUnreachable`; `logDelivery`; `logRecordTooLarge`.
    func keep(_ records: [PluginRecord]) async throws(SluiceError) {
        guard let log else {
            guard isDevelopment else {
                throw SluiceError(
                    .configMissing, "\(records[0].plugin) writes records, which requires Kafka.", fix: "Pass --kafka or set SLUICE_KAFKA.")
            }
            for record in records {
                logger.info("A plugin's record.", metadata: ["stream": .string(record.stream), "record": .string(record.record.text)])
            }
            return
        }
        do {
            try await append(records, to: log)
        } catch {
            throw SluiceError(error, otherwise: .logDelivery, "The records of \(records[0].plugin) could not be stored.")
        }
    }

    private func append(_ records: [PluginRecord], to log: any MessageLog) async throws {
        let streams = Set(records.map(\.stream)).sorted()
        let names = streams.map { "\(app).records.\($0)" }
        var counts: [Int32] = []
        for name in names { counts.append(try await partitions(of: name, log)) }
        var batch = LogBatch(topics: names)
        for record in records {
            guard let topic = streams.firstIndex(of: record.stream) else { continue }
            let (key, value) = (Array((record.key ?? "").utf8), record.record.utf8)
            let partition = Partitioner.partition(of: record.key == nil ? value : key, partitions: counts[topic])
            batch.append(topic: topic, partition: partition, key: key, value: value)
        }
        _ = try await log.append(batch)
    }

    private func partitions(of topic: String, _ log: any MessageLog) async throws -> Int32 {
        if let count = topics.withLock({ $0[topic] }) { return count }
        let count = try await log.prepare([TopicSpec(name: topic, partitions: Self.partitions)])[0]
        topics.withLock { $0[topic] = count }
        return count
    }
}
