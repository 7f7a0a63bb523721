import CRdKafka
import SluiceCore
import SluiceKafka
import SluicePorts
import Testing

private let passing = [
    RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
]

/// Topics that not every broker of three knows yet, and partitions whose leaders are not there or have moved.
@Suite(.timeLimit(.minutes(2)))
struct `A topic that is new` {
    private func cluster(partitions: Int32 = 3) throws -> MockCluster {
        let cluster = try MockCluster(brokers: 3)
        cluster.createTopic("a", partitions: partitions)
        return cluster
    }

    /// Mends something while a question about it is being asked.
    private func soon(_ mend: @escaping @Sendable () -> Void) -> Task<Void, Never> {
        Task {  // Unstructured because: the caller awaits it.
            try? await Task.sleep(for: .milliseconds(700))
            mend()
        }
    }

    @Test(arguments: passing) func `is asked again for its offsets`(error: rd_kafka_resp_err_t) async throws {
        let cluster = try cluster()
        try await withAdmin(cluster.configuration) { admin in
            // More often than the library asks by itself.
            cluster.failNext(.listOffsets, [rd_kafka_resp_err_t](repeating: error, count: 12))
            let (one, all) = (try await admin.watermarks(of: LogPartition("a", 1)), try await admin.watermarks(ofTopic: "a"))
            #expect(one == KafkaWatermarks(low: 0, high: 0))
            #expect(all.count == 3)
        }
    }

    @Test(arguments: passing) func `is waited for by the one who has made it, and by the producer`(error: rd_kafka_resp_err_t) async throws
    {
        let cluster = try cluster()
        cluster.setError(of: "a", error)
        let mended = soon { cluster.setError(of: "a", RD_KAFKA_RESP_ERR_NO_ERROR) }
        try await withAdmin(cluster.configuration) { admin in
            try await withProducer(cluster.configuration) { producer in
                async let count = admin.partitionCount(of: "a", isExpected: true)
                try await producer.warm(topics: ["a"])
                #expect(try await count == 3)
            }
        }
        await mended.value
    }

    @Test func `is waited for until all its partitions have leaders`() async throws {
        let cluster = try cluster()
        cluster.setLeader(of: LogPartition("a", 2), to: -1)
        let mended = soon { cluster.setLeader(of: LogPartition("a", 2), to: 2) }
        let count = try await withAdmin(cluster.configuration) { try await $0.partitionCount(of: "a") }
        #expect(count == 3)
        await mended.value
    }

    @Test func `is named after the time-out when nobody leads it, or nobody knows it`() async throws {
        let cluster = try cluster()
        var configuration = cluster.configuration
        configuration.requestTimeout = .milliseconds(500)
        try await withAdmin(configuration) { admin in
            cluster.setLeader(of: LogPartition("a", 2), to: -1)
            let leaderless = await failure { _ = try await admin.partitionCount(of: "a") }
            #expect(leaderless?.code == .logTopic && leaderless?.message.contains("no leader") == true, "\(String(describing: leaderless))")
            cluster.setError(of: "a", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
            for isExpected in [false, true] {
                let unknown = await failure { _ = try await admin.partitionCount(of: "a", isExpected: isExpected) }
                #expect(unknown?.code == .logTopic && unknown?.message.contains("does not exist") == true, "\(String(describing: unknown))")
            }
        }
    }

    @Test(arguments: passing) func `takes records once its partitions are led, each once`(error: rd_kafka_resp_err_t) async throws {
        let cluster = try cluster()
        var configuration = cluster.configuration
        // The mock does not check sequence numbers: with a second request under way it would store that one in front.
        configuration.settings = ["max.in.flight.requests.per.connection": "1"]
        try await withProducer(configuration) { producer in
            try await producer.warm(topics: ["a"])
            cluster.failNext(.produce, [rd_kafka_resp_err_t](repeating: error, count: 6))
            let ends = try await producer.produce(numbered("a", partitions: 3, count: 10))
            #expect(ends == Dictionary(uniqueKeysWithValues: (0..<3).map { (LogPartition("a", $0), 10) }))
        }
    }

    @Test(arguments: passing) func `is read once its partitions are led, also after they have moved`(
        error: rd_kafka_resp_err_t
    ) async throws {
        let cluster = try cluster()
        try await withReader(cluster.configuration) { reader in
            cluster.failNext(.fetch, [rd_kafka_resp_err_t](repeating: error, count: 6))
            try await reader.assign(Dictionary(uniqueKeysWithValues: (0..<3).map { (LogPartition("a", $0), .at(0)) }))
            try await withProducer(cluster.configuration) { producer in
                _ = try await producer.produce(numbered("a", partitions: 3, count: 10))
                #expect(try await read(reader, count: 30).count == 30)
                for broker in Int32(1)...3 {
                    for partition in Int32(0)..<3 { cluster.setLeader(of: LogPartition("a", partition), to: broker) }
                    _ = try await producer.produce(numbered("a", partitions: 3, count: 10))
                    #expect(try await read(reader, count: 30).count == 30)
                }
            }
        }
    }
}
