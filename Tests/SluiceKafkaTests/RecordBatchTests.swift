import SluiceKafka
import Testing

struct RecordBatchTests {
    @Test func `a record batch keeps its topics and forgets its records`() {
        var batch = KafkaRecordBatch()
        #expect(batch.index(ofTopic: "a") == 0)
        #expect(batch.index(ofTopic: "b") == 1)
        #expect(batch.index(ofTopic: "a") == 0)
        batch.append(topic: 1, partition: 3, key: "key".utf8, value: "value".utf8)
        batch.append(topic: 0, partition: 0) { bytes in
            bytes += [9]
            return 100
        }
        #expect(batch.entries.map(\.key) == [0..<3, 8..<9])
        #expect(batch.entries.map(\.value) == [3..<8, 9..<9])
        batch.removeAll()
        #expect(batch.isEmpty)
        #expect(batch.byteCount == 0)
        #expect(batch.topics == ["a", "b"])
    }
}
