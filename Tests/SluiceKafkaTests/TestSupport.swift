import Foundation
import Logging
import SluiceCore
import SluiceKafka
import SluicePorts

let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

/// A topic name that no other test has.
func uniqueTopic(_ name: String) -> String { "\(name)-\(UUID().uuidString.prefix(13).lowercased())" }

/// The real broker that `make test` starts.
func realBroker() throws -> KafkaConfiguration {
    guard let address = ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], !address.isEmpty else {
        throw SluiceError(.configMissing, "SLUICE_TEST_KAFKA names no broker.", fix: "Run `make test`, which starts one.")
    }
    return KafkaConfiguration(bootstrapServers: address, clientID: "test")
}

/// Runs a test with a producer and closes it whatever happens.
func withProducer<Result>(
    _ configuration: KafkaConfiguration, _ body: (KafkaProducer) async throws -> Result
) async throws -> Result {
    let producer = try KafkaProducer(configuration, logger: quiet)
    do {
        let result = try await body(producer)
        await producer.close()
        return result
    } catch {
        await producer.close()
        throw error
    }
}

/// Runs a test with a reader and closes it whatever happens.
func withReader<Result>(_ configuration: KafkaConfiguration, _ body: (KafkaReader) async throws -> Result) async throws -> Result {
    let reader = try KafkaReader(configuration, logger: quiet)
    do {
        let result = try await body(reader)
        await reader.close()
        return result
    } catch {
        await reader.close()
        throw error
    }
}

/// Runs a test with an admin client and closes it whatever happens.
func withAdmin<Result>(_ configuration: KafkaConfiguration, _ body: (KafkaAdmin) async throws -> Result) async throws -> Result {
    let admin = try KafkaAdmin(configuration)
    do {
        let result = try await body(admin)
        await admin.close()
        return result
    } catch {
        await admin.close()
        throw error
    }
}

struct ReadRecord: Hashable {
    var partition: LogPartition
    var offset: Int64
    var key: String
    var value: String
}

/// Reads until `count` records have come, for 20 seconds at most.
func read(_ reader: KafkaReader, count: Int) async throws -> [ReadRecord] {
    var batch = KafkaFetchBatch()
    var records: [ReadRecord] = []
    let start = ContinuousClock.now
    while records.count < count, .now - start < .seconds(60) {
        try await reader.next(into: &batch, timeout: .seconds(2))
        for entry in batch.entries {
            records.append(
                ReadRecord(
                    partition: batch.partition(of: entry), offset: entry.offset,
                    key: String(decoding: batch.key(of: entry), as: UTF8.self),
                    value: String(decoding: batch.value(of: entry), as: UTF8.self)))
        }
    }
    return records
}

/// A batch of `count` records per partition whose values are the ordinal in the partition.
func numbered(_ topic: String, partitions: Int32, count: Int, from first: Int = 0) -> LogBatch {
    var batch = LogBatch(topics: [topic])
    for ordinal in first..<first + count {
        for partition in 0..<partitions {
            batch.append(topic: 0, partition: partition, key: "p\(partition)".utf8, value: "\(ordinal)".utf8)
        }
    }
    return batch
}

/// Ends with the error of `body`, nil when it has none.
func failure(of body: () async throws -> Void) async -> SluiceError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? SluiceError ?? SluiceError(.internalError, "\(error)")
    }
}
