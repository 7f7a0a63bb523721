import SluiceCore
import SluiceKafka
import SluicePorts
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(2)))
struct ReaderTests {
    private func filled(_ partitions: Int32, count: Int) async throws -> MockCluster {
        let cluster = try MockCluster()
        cluster.createTopic("a", partitions: partitions)
        _ = try await withProducer(cluster.configuration) { try await $0.produce(numbered("a", partitions: partitions, count: count)) }
        return cluster
    }

    @Test func `reads each partition from the offset given`() async throws {
        let cluster = try await filled(2, count: 20)
        let records = try await withReader(cluster.configuration) { reader in
            try await reader.assign([LogPartition("a", 0): .at(5), LogPartition("a", 1): .at(18)])
            #expect(reader.assignment == [LogPartition("a", 0), LogPartition("a", 1)])
            return try await read(reader, count: 17)
        }
        #expect(records.filter { $0.partition.partition == 0 }.map(\.value) == (5..<20).map(String.init))
        #expect(records.filter { $0.partition.partition == 1 }.map(\.offset) == [18, 19])
        #expect(records.allSatisfy { $0.key == "p\($0.partition.partition)" })
    }

    @Test func `partitions come, move and go without disturbing the others`() async throws {
        let cluster = try await filled(3, count: 10)
        try await withReader(cluster.configuration) { reader in
            try await reader.assign([LogPartition("a", 0): .beginning])
            #expect(try await read(reader, count: 10).allSatisfy { $0.partition.partition == 0 })
            try await reader.assign([LogPartition("a", 1): .at(7)])
            #expect(try await read(reader, count: 3).map(\.offset) == [7, 8, 9])
            try await reader.assign([LogPartition("a", 0): .at(8)], removing: [LogPartition("a", 1)])
            #expect(try await read(reader, count: 2).map(\.partition.partition) == [0, 0])
            try await reader.assign([:], removing: [LogPartition("a", 0), LogPartition("a", 2)])
            #expect(reader.assignment.isEmpty)
        }
    }

    @Test func `nothing of a removed partition is handed over afterwards`() async throws {
        let cluster = try await filled(2, count: 5_000)
        try await withReader(cluster.configuration) { reader in
            try await reader.assign([LogPartition("a", 0): .beginning, LogPartition("a", 1): .beginning])
            _ = try await read(reader, count: 1)
            try await reader.assign([LogPartition("a", 1): .at(4_990)], removing: [LogPartition("a", 0)])
            let records = try await read(reader, count: 10)
            #expect(records.map(\.offset) == Array(4_990..<5_000))
            #expect(records.allSatisfy { $0.partition.partition == 1 })
        }
    }

    @Test func `an offset that the log does not have is a gap of that partition alone`() async throws {
        let cluster = try await filled(2, count: 10)
        try await withReader(cluster.configuration) { reader in
            try await reader.assign([LogPartition("a", 0): .at(1_000), LogPartition("a", 1): .beginning])
            var batch = KafkaFetchBatch()
            var problems: [KafkaFetchBatch.Problem] = []
            var records = 0
            let start = ContinuousClock.now
            while problems.isEmpty || records < 10, .now - start < .seconds(60) {
                try await reader.next(into: &batch, timeout: .seconds(1))
                problems += batch.problems
                records += batch.count
            }
            #expect(problems.map(\.partition) == [LogPartition("a", 0)])
            #expect(problems.map(\.error.code) == [.logGap])
            #expect(records == 10)
            #expect(reader.assignment == [LogPartition("a", 1)])
            try await reader.assign([LogPartition("a", 0): .at(9)])
            #expect(try await read(reader, count: 1).map(\.offset) == [9])
        }
    }

    @Test func `brokers that go away are a state, and reading goes on when they are back`() async throws {
        let cluster = try await filled(1, count: 3)
        try await withReader(cluster.configuration) { reader in
            try await reader.assign([LogPartition("a", 0): .beginning])
            #expect(try await read(reader, count: 3).count == 3)
            cluster.setDown(true)
            var batch = KafkaFetchBatch()
            let start = ContinuousClock.now
            repeat {
                try await reader.next(into: &batch, timeout: .seconds(1))
            } while batch.connection == .up && .now - start < .seconds(60)
            guard case .down(let error) = batch.connection else {
                Issue.record("the reader did not notice")
                return
            }
            #expect(error.code == .logUnreachable)
            #expect(error.message.contains(cluster.bootstrapServers))
            cluster.setDown(false)
            _ = try await withProducer(cluster.configuration) { try await $0.produce(numbered("a", partitions: 1, count: 2, from: 3)) }
            #expect(try await read(reader, count: 2).map(\.value) == ["3", "4"])
            #expect(reader.connection == .up)
        }
    }

    @Test func `a consumer that is slow bounds the reader, and misses nothing`() async throws {
        let cluster = try await filled(1, count: 20_000)
        var configuration = cluster.configuration
        configuration.readerBytes = 4_096
        try await withReader(configuration) { reader in
            try await reader.assign([LogPartition("a", 0): .beginning])
            var batch = KafkaFetchBatch()
            var offsets: [Int64] = []
            var largest = 0
            let start = ContinuousClock.now
            while offsets.count < 20_000, .now - start < .seconds(60) {
                try await reader.next(into: &batch, timeout: .seconds(1))
                offsets += batch.entries.map(\.offset)
                largest = max(largest, batch.bytes.count)
            }
            #expect(offsets == Array(0..<20_000))
            // The bound, and one chunk of the library's records on top.
            #expect(largest < 4_096 + 1_024 * 8)
        }
    }

    @Test func `a reader that is full of what nobody wants any more reads on`() async throws {
        let cluster = try await filled(2, count: 2_000)
        var configuration = cluster.configuration
        configuration.readerBytes = 512
        try await withReader(configuration) { reader in
            try await reader.assign([LogPartition("a", 0): .beginning])
            try #require(try await eventually { reader.waiting >= 512 })
            try await reader.assign([LogPartition("a", 1): .beginning], removing: [LogPartition("a", 0)])
            let records = try await read(reader, count: 10)
            #expect(records.count >= 10 && records.allSatisfy { $0.partition.partition == 1 })
        }
    }

    @Test func `waiting ends at the time-out, by cancellation and by closing`() async throws {
        let cluster = try await filled(1, count: 1)
        let reader = try KafkaReader(cluster.configuration, logger: quiet)
        try await reader.assign([LogPartition("a", 0): .end])
        var batch = KafkaFetchBatch()
        let start = ContinuousClock.now
        try await reader.next(into: &batch, timeout: .milliseconds(30))
        #expect(batch.isEmpty)
        #expect(.now - start >= .milliseconds(29))

        await #expect(throws: CancellationError.self) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    var batch = KafkaFetchBatch()
                    try await reader.next(into: &batch, timeout: .seconds(60))
                }
                group.cancelAll()
                try await group.waitForAll()
            }
        }
        async let closed = failure {
            var batch = KafkaFetchBatch()
            try await reader.next(into: &batch, timeout: .seconds(60))
        }
        await reader.close()
        #expect(await closed?.code == .logUnreachable)
        await reader.close()
    }

    @Test func `an impossible partition or offset is refused by name`() async throws {
        let cluster = try MockCluster()
        try await withReader(cluster.configuration) { reader in
            let negative = await failure { try await reader.assign([LogPartition("a", -1): .beginning]) }
            #expect(negative?.message.contains("a[-1]") == true)
            let offset = await failure { try await reader.assign([LogPartition("a", 0): .at(-2)]) }
            #expect(offset?.message.contains("-2") == true)
            #expect(reader.assignment.isEmpty)
        }
    }
}
