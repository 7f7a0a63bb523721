import CRdKafka
import SluiceCore
import SluiceKafka
import SluicePorts
import Testing

@Suite(.timeLimit(.minutes(2)))
struct ProducerTests {
    @Test func `gives the offset after the last record of each partition`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 3)
        let (first, second) = try await withProducer(cluster.configuration) { producer in
            (
                try await producer.produce(numbered("a", partitions: 3, count: 10)),
                try await producer.produce(numbered("a", partitions: 1, count: 5))
            )
        }
        #expect(first == [LogPartition("a", 0): 10, LogPartition("a", 1): 10, LogPartition("a", 2): 10])
        #expect(second == [LogPartition("a", 0): 15])
    }

    @Test func `keeps the order of a batch that mixes topics`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("left", partitions: 1)
        cluster.createTopic("right", partitions: 1)
        var batch = LogBatch(topics: ["left", "right"])
        for ordinal in 0..<100 {
            batch.append(topic: ordinal % 3 == 0 ? 0 : 1, partition: 0, key: "k".utf8, value: "\(ordinal)".utf8)
        }
        let records = try await withProducer(cluster.configuration) { producer in
            let ends = try await producer.produce(batch)
            #expect(ends == [LogPartition("left", 0): 34, LogPartition("right", 0): 66])
            return try await withReader(cluster.configuration) { reader in
                try await reader.assign([LogPartition("left", 0): .beginning, LogPartition("right", 0): .beginning])
                return try await read(reader, count: 100)
            }
        }
        #expect(records.filter { $0.partition.topic == "left" }.map(\.value) == (0..<100).filter { $0 % 3 == 0 }.map(String.init))
        #expect(records.filter { $0.partition.topic == "right" }.map(\.value) == (0..<100).filter { $0 % 3 != 0 }.map(String.init))
    }

    @Test func `an empty batch is acknowledged at once`() async throws {
        let cluster = try MockCluster()
        let ends = try await withProducer(cluster.configuration) { try await $0.produce(LogBatch(topics: [])) }
        #expect(ends.isEmpty)
    }

    @Test func `passing errors lose, double and reorder nothing`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 2)
        // The mock does not check sequence numbers: with a second request under way it would store that one in front.
        var configuration = cluster.configuration
        configuration.settings = ["max.in.flight.requests.per.connection": "1"]
        let records = try await withProducer(configuration) { producer in
            for round in 0..<5 {
                cluster.failNextProduceRequests([
                    RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                    RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                ])
                _ = try await producer.produce(numbered("a", partitions: 2, count: 50, from: round * 50))
            }
            return try await withReader(cluster.configuration) { reader in
                try await reader.assign([LogPartition("a", 0): .beginning, LogPartition("a", 1): .beginning])
                return try await read(reader, count: 500)
            }
        }
        for partition in Int32(0)..<2 {
            #expect(records.filter { $0.partition.partition == partition }.map(\.value) == (0..<250).map(String.init))
        }
    }

    @Test func `an error that stays fails the batch by name, and the next one goes through`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        try await withProducer(cluster.configuration) { producer in
            cluster.failNextProduceRequests([RD_KAFKA_RESP_ERR_INVALID_RECORD])
            let error = await failure { _ = try await producer.produce(numbered("a", partitions: 1, count: 1)) }
            #expect(error?.code == .logDelivery)
            #expect(error?.message.contains("a[0]") == true)
            let ends = try await producer.produce(numbered("a", partitions: 1, count: 1))
            #expect(ends == [LogPartition("a", 0): 1])
        }
    }

    @Test func `a record that is larger than the producer or the broker takes is refused by a name of its own`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        try await withProducer(cluster.configuration) { producer in
            let large = [UInt8](repeating: 1, count: cluster.configuration.recordBytes + 1)
            let error = await failure { _ = try await producer.send(topic: "a", key: [1], value: large) }
            #expect(error?.code == .logRecordTooLarge)
            cluster.failNextProduceRequests([RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE])
            let answered = await failure { _ = try await producer.produce(numbered("a", partitions: 1, count: 1)) }
            #expect(answered?.code == .logRecordTooLarge && answered?.message.contains("a[0]") == true)
        }
    }

    @Test func `a partition that does not exist is named`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        try await withProducer(cluster.configuration) { producer in
            try await producer.warm(topics: ["a"])
            var batch = LogBatch(topics: ["a"])
            batch.append(topic: 0, partition: 7, key: "k".utf8, value: "v".utf8)
            let error = await failure { _ = try await producer.produce(batch) }
            #expect(error?.code == .logTopic)
            #expect(error?.message.contains("a[7]") == true)
            #expect(producer.outstanding == 0)
        }
    }

    @Test func `single records go where the partitioner says`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 7)
        let keys = (0..<200).map { "key \($0)" } + [""]
        try await withProducer(cluster.configuration) { producer in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for key in keys {
                    group.addTask { _ = try await producer.send(topic: "a", key: Array(key.utf8), value: Array("v".utf8)) }
                }
                try await group.waitForAll()
            }
        }
        let records = try await withReader(cluster.configuration) { reader in
            try await reader.assign(Dictionary(uniqueKeysWithValues: (0..<7).map { (LogPartition("a", $0), .beginning) }))
            return try await read(reader, count: keys.count)
        }
        #expect(Set(records.map(\.key)) == Set(keys))
        for record in records where !record.key.isEmpty {
            #expect(record.partition.partition == Partitioner.partition(of: Array(record.key.utf8), partitions: 7), "\(record.key)")
        }
    }

    @Test func `a batch takes the room of its records, not of the arena that they lie in`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        var configuration = cluster.configuration
        configuration.producerBytes = 1_000
        configuration.deliveryTimeout = .seconds(3)
        var batch = LogBatch(topics: ["a"])
        batch.entries = [.init(topic: 0, partition: 0, key: 0..<2, value: 600..<608)]
        batch.arena = [UInt8](repeating: 1, count: 900)
        try await withProducer(configuration) { producer in
            try await producer.warm(topics: ["a"])
            // What a batch took comes back with its answers.
            for _ in 0..<3 { _ = try await producer.produce(batch) }
            cluster.setDown(true)
            let deliveries = [try await producer.begin(batch), try await producer.begin(batch)]
            #expect(producer.outstanding == 2, "The second batch waited for the end of the first.")
            for delivery in deliveries {
                #expect(await failure { _ = try await delivery.acknowledged() }?.code == .logDelivery)
            }
        }
    }

    @Test func `when the brokers are away the queue stays bounded and every sender is told in time`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        var configuration = cluster.configuration
        configuration.producerRecords = 10
        configuration.deliveryTimeout = .seconds(1)
        try await withProducer(configuration) { producer in
            try await producer.warm(topics: ["a"])
            cluster.setDown(true)
            let start = ContinuousClock.now
            let codes = await withTaskGroup(of: ErrorCode?.self) { group in
                for _ in 0..<30 {
                    group.addTask { await failure { _ = try await producer.send(topic: "a", key: [1], value: [2]) }?.code }
                }
                var codes: [ErrorCode?] = []
                for await code in group {
                    codes.append(code)
                    #expect(producer.outstanding <= 10)
                }
                return codes
            }
            #expect(codes.allSatisfy { $0 == .logFull || $0 == .logDelivery })
            #expect(codes.count == 30 && codes.contains(.logFull) && codes.contains(.logDelivery), "\(codes)")
            #expect(.now - start < .seconds(15))
            #expect(producer.outstanding == 0)
            cluster.setDown(false)
            // The client tries the brokers again when it thinks fit, later than a record's second now and then.
            while let error = await failure(of: { _ = try await producer.send(topic: "a", key: [1], value: [3]) }) {
                try #require(error.code == .logDelivery && ContinuousClock.now - start < .seconds(60), "\(error)")
            }
        }
    }

    @Test func `a fatal error replaces the client`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        try await withProducer(cluster.configuration) { producer in
            _ = try await producer.send(topic: "a", key: [1], value: [1])
            producer.injectFatalError()
            // What is sent while the client is being replaced either fails by name or goes through the new one.
            let start = ContinuousClock.now
            while producer.replacements == 0, .now - start < .seconds(60) {
                let error = await failure { _ = try await producer.send(topic: "a", key: [1], value: [2]) }
                #expect(error == nil || error?.code == .logDelivery)
            }
            #expect(producer.replacements == 1)
            _ = try await producer.send(topic: "a", key: [1], value: [3])
            #expect(producer.outstanding == 0)
        }
    }

    @Test func `a closed producer refuses by name`() async throws {
        let cluster = try MockCluster()
        let producer = try KafkaProducer(cluster.configuration, logger: quiet)
        await producer.close()
        await producer.close()
        let error = await failure { _ = try await producer.send(topic: "a", key: [1], value: [1]) }
        #expect(error?.code == .logDelivery)
        #expect(error?.message.contains("closed") == true)
    }

    @Test func `closing waits for what is under way`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        let producer = try KafkaProducer(cluster.configuration, logger: quiet)
        let delivery = try await producer.begin(numbered("a", partitions: 1, count: 2_000))
        await producer.close()
        let ends = try await delivery.acknowledged()
        #expect(ends == [LogPartition("a", 0): 2_000])
    }

    @Test func `settings that durability hangs on are refused, wrong ones are named`() {
        var configuration = KafkaConfiguration(bootstrapServers: "127.0.0.1:1")
        configuration.settings = ["acks": "0"]
        #expect { try KafkaProducer(configuration, logger: quiet) } throws: { ($0 as? SluiceError)?.message.contains("acks") == true }
        configuration.settings = ["ssl.nonsense": "1"]
        #expect { try KafkaAdmin(configuration) } throws: { ($0 as? SluiceError)?.message.contains("ssl.nonsense") == true }
    }
}
