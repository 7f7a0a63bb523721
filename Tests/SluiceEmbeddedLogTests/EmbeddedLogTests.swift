import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import Testing

@Suite struct `The embedded log` {
    private func batch(_ topic: String, _ values: [(partition: Int32, value: [UInt8])]) -> LogBatch {
        var batch = LogBatch(topics: [topic])
        for (partition, value) in values { batch.append(topic: 0, partition: partition, key: [], value: value) }
        return batch
    }

    private func read(_ reader: any LogReader, until count: Int) async throws -> (values: [[UInt8]], gaps: [LogPartition]) {
        var values: [[UInt8]] = []
        var gaps: [LogPartition] = []
        var fetch = LogFetch()
        for _ in 0..<100 where values.count < count {
            fetch = try await reader.next(fetch, milliseconds: 1_000)
            values += fetch.entries.map { Array(fetch.arena[$0.value]) }
            gaps += fetch.gaps
        }
        return (values, gaps)
    }

    @Test func `gives back what was appended, from the offset asked for`() async throws {
        let log = EmbeddedLog(environment: SystemEnvironment())
        #expect(try await log.prepare([TopicSpec(name: "t", partitions: 2)]) == [2])
        let ends = try await log.append(batch("t", [(0, [1]), (1, [2]), (0, [3])]))
        #expect(ends == [LogPartition("t", 0): 2, LogPartition("t", 1): 1])
        let reader = try await log.makeReader()
        try await reader.assign([LogPartition("t", 0): 1])
        #expect(try await read(reader, until: 1).values == [[3]])
    }

    @Test func `wakes a reader that waits`() async throws {
        let log = EmbeddedLog(environment: SystemEnvironment())
        _ = try await log.prepare([TopicSpec(name: "t", partitions: 1)])
        let reader = try await log.makeReader()
        try await reader.assign([LogPartition("t", 0): 0])
        async let read = read(reader, until: 1)
        _ = try await log.append(batch("t", [(0, [7])]))
        #expect(try await read.values == [[7]])
    }

    @Test func `tells a reader that the window has passed it`() async throws {
        let log = EmbeddedLog(environment: SystemEnvironment(), windowBytes: 100)
        _ = try await log.prepare([TopicSpec(name: "t", partitions: 1)])
        for value in 0..<30 as Range<UInt8> { _ = try await log.append(batch("t", [(0, Array(repeating: value, count: 10))])) }
        let reader = try await log.makeReader()
        try await reader.assign([LogPartition("t", 0): 0])
        let (values, gaps) = try await read(reader, until: 10)
        #expect(gaps == [LogPartition("t", 0)])
        #expect(values.map(\.first) == Array(20..<30).map { UInt8($0) })
    }

    @Test func `refuses a partition that is not there`() async throws {
        let log = EmbeddedLog(environment: SystemEnvironment())
        _ = try await log.prepare([TopicSpec(name: "t", partitions: 1)])
        await #expect(throws: SluiceError.self) { try await log.append(batch("t", [(1, [1])])) }
    }
}
