import CRdKafka
import SluiceCore
import SluiceKafka
import SluicePorts
import TestSupport
import Testing

/// Records that brokers refuse for good, and the causes of refusals that operators mend.
@Suite(.timeLimit(.minutes(3)))
struct `Refusals of brokers` {
    /// A batch with values of the given sizes, which no compression makes smaller.
    private static func batch(_ topic: String, _ sizes: [(partition: Int32, bytes: Int)], seed: UInt64) -> LogBatch {
        var random = SplitMix64(seed: seed)
        var batch = LogBatch(topics: [topic])
        for (partition, bytes) in sizes {
            let value = (0..<bytes).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            batch.append(topic: 0, partition: partition, key: "k".utf8, value: value)
        }
        return batch
    }

    @Test(arguments: seeds(6)) func `concern single records, and all others are stored`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let sizes = (0..<30).map { _ in
            (partition: Int32(random.below(2)), bytes: random.chance(20) ? 60_000 + random.below(1_000_000) : random.below(2_000))
        }
        let topic = uniqueTopic("refusals")
        let configuration = try realBroker()
        try await withAdmin(configuration) { admin in
            try await admin.create([KafkaTopic(topic, partitions: 2, settings: ["max.message.bytes": "50000"])])
            try await withProducer(configuration) { producer in
                // One at a time, since brokers refuse whole requests.
                var answers: [KafkaAnswer] = []
                for size in sizes { answers += try await producer.offer(Self.batch(topic, [size], seed: seed)) }
                for (answer, size) in zip(answers, sizes) {
                    switch answer {
                    case .stored: #expect(size.bytes < 50_000, "seed \(seed)")
                    case .refused(let error): #expect(error.code == .logRecordTooLarge && size.bytes > 50_000, "seed \(seed): \(error)")
                    case .failed(let error): Issue.record("seed \(seed): \(error)")
                    }
                }
                let small = sizes.filter { $0.bytes < 50_000 }
                for partition in Int32(0)..<2 {
                    let mark = try await admin.watermarks(of: LogPartition(topic, partition))
                    #expect(mark.high == Int64(small.count { $0.partition == partition }), "seed \(seed)")
                }
            }
            try await admin.delete([topic])
        }
    }

    @Test func `are told apart from failures, and name each record of a refused request`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        try await withProducer(cluster.configuration) { producer in
            cluster.failNextProduceRequests([RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE])
            let refused = try await producer.offer(numbered("a", partitions: 1, count: 3))
            #expect(refused.count == 3)
            for answer in refused {
                guard case .refused(let error) = answer else {
                    Issue.record("\(answer)")
                    continue
                }
                #expect(error.code == .logRecordTooLarge && error.message.contains("a[0]"))
            }
            #expect(try await producer.offer(numbered("a", partitions: 1, count: 2)) == [.stored(0), .stored(1)])
            #expect(producer.outstanding == 0)
        }
    }

    @Test(arguments: [
        (RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, "the operation Write on the topic a", "--operation Write --topic 'a'"),
        (
            RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, "the operation IdempotentWrite on the cluster",
            "--operation IdempotentWrite --cluster"
        ),
    ])
    func `for want of a right name the operation and the command that allows it`(
        error: rd_kafka_resp_err_t, operation: String, command: String
    ) async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        try await withProducer(cluster.configuration) { producer in
            cluster.failNextProduceRequests([error])
            let answers = try await producer.offer(numbered("a", partitions: 1, count: 1))
            guard case .failed(let denied) = answers.first else {
                Issue.record("\(answers)")
                return
            }
            #expect(denied.code == .logNotAuthorized && denied.message.contains(operation), "\(denied)")
            #expect(denied.fix?.contains("kafka-acls") == true && denied.fix?.contains(command) == true, "\(denied)")
        }
    }

    @Test func `of questions about a topic name the right, too, and are not waited out`() async throws {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: 1)
        cluster.setError(of: "a", RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
        try await withAdmin(cluster.configuration) { admin in
            let denied = await failure { _ = try await admin.partitionCount(of: "a", isExpected: true) }
            #expect(denied?.code == .logNotAuthorized, "\(String(describing: denied))")
            #expect(denied?.message.contains("Describe on the topic a") == true && denied?.message.contains("does not exist") == false)
        }
    }

    @Test func `name a topic that has fewer in-sync replicas than it asks for`() async throws {
        let topics = [uniqueTopic("enough"), uniqueTopic("short")]
        try await withAdmin(try realBroker()) { admin in
            try await admin.create([
                KafkaTopic(topics[0], partitions: 2, settings: ["min.insync.replicas": "1"]),
                KafkaTopic(topics[1], partitions: 2, settings: ["min.insync.replicas": "2", "max.message.bytes": "123456"]),
            ])
            for topic in topics { _ = try await admin.partitionCount(of: topic, isExpected: true) }
            #expect(try await admin.replicaShortage(of: [LogPartition(topics[0], 0), LogPartition(topics[0], 1)]) == nil)
            let shortage = try await admin.replicaShortage(of: topics.map { LogPartition($0, 1) })
            #expect(
                shortage?.code == .logReplicas && shortage?.message.contains("\(topics[1])[1]") == true, "\(String(describing: shortage))")
            #expect(shortage?.message.contains("1 of the 2") == true && shortage?.fix?.contains("min.insync.replicas") == true)
            let bounds = try await admin.recordBounds(of: topics)
            #expect(bounds[topics[1]] == 123_456 && bounds[topics[0]].map { $0 > 0 } == true, "\(bounds)")
            try await admin.delete(topics)
        }
    }
}
