import Foundation
import SluiceCore
import SluiceKafka
import SluicePorts
import TestSupport
import Testing

/// What only a real broker can show.
@Suite(.timeLimit(.minutes(3)))
struct BrokerTests {
    /// Creates a topic of one's own and deletes it afterwards.
    private func withTopic<Result>(
        _ name: String, partitions: Int32, _ body: (KafkaConfiguration, String, KafkaAdmin) async throws -> Result
    ) async throws -> Result {
        let configuration = try realBroker()
        let topic = uniqueTopic(name)
        return try await withAdmin(configuration) { admin in
            try await admin.create([KafkaTopic(topic, partitions: partitions, settings: ["retention.ms": "3600000"])])
            let result = try await body(configuration, topic, admin)
            try await admin.delete([topic])
            return result
        }
    }

    @Test func `creating a topic twice is harmless, with other partitions it is an error`() async throws {
        try await withTopic("create", partitions: 4) { _, topic, admin in
            try await admin.create([KafkaTopic(topic, partitions: 4)])
            #expect(try await admin.partitionCount(of: topic) == 4)
            let error = await failure { try await admin.create([KafkaTopic(topic, partitions: 8)]) }
            #expect(error?.code == .logTopic)
            #expect(error?.message.contains(topic) == true)
        }
    }

    @Test func `a topic that does not exist is named, and not created by asking`() async throws {
        let topic = uniqueTopic("missing")
        try await withAdmin(try realBroker()) { admin in
            for _ in 0..<2 {
                let error = await failure { _ = try await admin.partitionCount(of: topic) }
                #expect(error?.code == .logTopic)
                #expect(error?.message.contains(topic) == true)
            }
            try await admin.delete([topic])
        }
    }

    @Test func `watermarks grow with what is written`() async throws {
        try await withTopic("marks", partitions: 2) { configuration, topic, admin in
            #expect(try await admin.watermarks(ofTopic: topic) == [KafkaWatermarks(low: 0, high: 0), KafkaWatermarks(low: 0, high: 0)])
            let ends = try await withProducer(configuration) { try await $0.produce(numbered(topic, partitions: 2, count: 25)) }
            #expect(ends == [LogPartition(topic, 0): 25, LogPartition(topic, 1): 25])
            #expect(try await admin.watermarks(of: LogPartition(topic, 1)) == KafkaWatermarks(low: 0, high: 25))
        }
    }

    @Test(arguments: ["none", "lz4", "gzip", "zstd"]) func `what is written is what is read`(compression: String) async throws {
        try await withTopic("bytes", partitions: 1) { configuration, topic, _ in
            var configuration = configuration
            configuration.compression = compression
            let seed = UInt64.random(in: .min ... .max)
            var random = SplitMix64(seed: seed)
            var batch = LogBatch(topics: [topic])
            var written: [[UInt8]] = []
            for _ in 0..<300 {
                let value = (0..<Int.random(in: 0..<2_000, using: &random)).map { _ in UInt8.random(in: 0...7, using: &random) }
                written.append(value)
                batch.append(topic: 0, partition: 0, key: [1, 2, 3], value: value)
            }
            _ = try await withProducer(configuration) { try await $0.produce(batch) }
            var seen: [[UInt8]] = []
            try await withReader(configuration) { reader in
                try await reader.assign([LogPartition(topic, 0): .at(0)])
                var fetched = KafkaFetchBatch()
                let start = ContinuousClock.now
                while seen.count < written.count, .now - start < .seconds(60) {
                    try await reader.next(into: &fetched, timeout: .seconds(1))
                    seen += fetched.entries.map { Array(fetched.value(of: $0)) }
                    #expect(fetched.entries.allSatisfy { Array(fetched.key(of: $0)) == [1, 2, 3] })
                }
            }
            #expect(seen == written, "seed \(seed)")
        }
    }

    @Test func `many senders share requests, and each gets its own offset`() async throws {
        try await withTopic("senders", partitions: 4) { configuration, topic, admin in
            let (senders, each) = (200, 100)
            let elapsed = try await withProducer(configuration) { producer in
                try await producer.warm(topics: [topic])
                let start = ContinuousClock.now
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for sender in 0..<senders {
                        group.addTask {
                            for ordinal in 0..<each {
                                _ = try await producer.send(topic: topic, key: Array("\(sender)".utf8), value: Array("\(ordinal)".utf8))
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                return ContinuousClock.now - start
            }
            let high = try await admin.watermarks(ofTopic: topic).map(\.high).reduce(0, +)
            #expect(high == Int64(senders * each))
            let records = try await withReader(configuration) { reader in
                try await reader.assign(Dictionary(uniqueKeysWithValues: (0..<4).map { (LogPartition(topic, $0), .beginning) }))
                return try await read(reader, count: senders * each)
            }
            // One sender's records are in its order, none lost and none twice.
            let bySender = Dictionary(grouping: records, by: \.key)
            #expect(bySender.count == senders)
            #expect(bySender.values.allSatisfy { $0.map(\.value) == (0..<each).map(String.init) })
            FileHandle.standardError.write(Data("kafka: \(senders * each) records by \(senders) senders in \(elapsed)\n".utf8))
        }
    }

    @Test func `a waiting reader gets a new record at once`() async throws {
        try await withTopic("latency", partitions: 1) { configuration, topic, _ in
            try await withReader(configuration) { reader in
                try await reader.assign([LogPartition(topic, 0): .at(0)])
                try await withProducer(configuration) { producer in
                    try await producer.warm(topics: [topic])
                    var worst = Duration.zero
                    for ordinal in 0..<20 {
                        let start = ContinuousClock.now
                        async let record = read(reader, count: 1)
                        _ = try await producer.send(topic: topic, key: [1], value: Array("\(ordinal)".utf8))
                        #expect(try await record.map(\.value) == ["\(ordinal)"])
                        worst = max(worst, .now - start)
                    }
                    #expect(worst < .seconds(5))
                    FileHandle.standardError.write(Data("kafka: worst of 20 round trips \(worst)\n".utf8))
                }
            }
        }
    }

    @Test func `brokers that do not answer are named within the time-out`() async throws {
        var configuration = KafkaConfiguration(bootstrapServers: "127.0.0.1:1", clientID: "test")
        configuration.requestTimeout = .milliseconds(500)
        let start = ContinuousClock.now
        try await withAdmin(configuration) { admin in
            let asking = await failure { _ = try await admin.partitionCount(of: "a") }
            #expect(asking?.code == .logUnreachable)
            #expect(asking?.message.contains("127.0.0.1:1") == true)
            let creating = await failure { try await admin.create([KafkaTopic("a", partitions: 1)]) }
            #expect(creating?.code == .logUnreachable)
        }
        #expect(.now - start < .seconds(10))
    }
}
