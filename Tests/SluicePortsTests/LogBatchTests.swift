import SluicePorts
import Testing

struct LogBatchTests {
    @Test func `a batch keeps its topics and forgets its records`() {
        var batch = LogBatch(topics: ["a", "b"])
        batch.append(topic: 1, partition: 3, key: "key".utf8, value: "value".utf8)
        batch.append(topic: 0, partition: 0, key: [9], value: [])
        #expect(batch.entries.map(\.topic) == [1, 0])
        #expect(batch.entries.map(\.partition) == [3, 0])
        #expect(batch.entries.map(\.key) == [0..<3, 8..<9])
        #expect(batch.entries.map(\.value) == [3..<8, 9..<9])
        #expect(batch.count == 2)
        #expect(batch.byteCount == 9)
        batch.removeAll()
        #expect(batch.isEmpty)
        #expect(batch.byteCount == 0)
        #expect(batch.topics == ["a", "b"])
    }

    @Test func `partitions are ordered by topic, then by number`() {
        let partitions = [LogPartition("b", 0), LogPartition("a", 10), LogPartition("a", 9)]
        #expect(partitions.sorted().map(\.description) == ["a[9]", "a[10]", "b[0]"])
    }
}
