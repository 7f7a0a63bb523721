import FoundationEssentials
import SluiceCore
import SluicePorts
import SluiceWire
import SwiftProtobuf
import TestSupport
import Testing

struct ProgressRecordTests {
    @Test(arguments: (0..<20).map { _ in UInt64.random(in: .min ... .max) })
    func `a progress record agrees with the generated code both ways`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        func word() -> UInt64 { [0, 1, UInt64.max, random.next(), random.next() >> 40][Int.random(in: 0..<5, using: &random)] }
        let topics = ["", "app.Order", "é世🧪\u{0}", String(repeating: "x", count: 126), String(repeating: "y", count: 300)]
        var progress = ProgressRecord(
            lsn: LSN(rawValue: word()), commitTime: Int64(bitPattern: word()), grown: [:], since: LSN(rawValue: word()),
            completeSince: LSN(rawValue: word()), writeTime: HybridTime(rawValue: word()))
        if Bool.random(using: &random) { progress.witness = HistoryAnchor(transaction: 3 + UInt32(word() >> 40), commitTime: 5) }
        for topic in topics.prefix(Int.random(in: 0..<5, using: &random)) {
            progress.grown[LogPartition(topic, Int32.random(in: 0..<100, using: &random))] = Int64(bitPattern: word())
        }
        let reference = PBProgress.with {
            $0.lsn = progress.lsn.rawValue
            $0.commitTime = progress.commitTime
            $0.since = progress.since.rawValue
            $0.completeSince = progress.completeSince.rawValue
            $0.writeTime = progress.writeTime.rawValue
            $0.witness = .init(progress.witness?.bytes ?? [])
            // The same dictionary, so the same order.
            $0.grown = progress.grown.map { partition, end in
                PBPartitionOffset.with {
                    $0.topic = partition.topic
                    $0.partition = partition.partition
                    $0.end = end
                }
            }
        }
        let bytes = ProgressCodec.encode(progress)
        let generated: [UInt8] = try reference.serializedBytes()
        #expect(generated == bytes, "seed \(seed)")
        #expect(try bytes.withUnsafeBytes { try ProgressCodec.decode($0) } == progress, "seed \(seed)")
    }

    @Test func `the highest end of a partition that is named twice counts`() throws {
        let message = PBProgress.with {
            $0.grown = ([7, 9, 8] as [Int64]).map { end in
                PBPartitionOffset.with {
                    $0.topic = "app.Order"
                    $0.end = end
                }
            }
        }
        let bytes: [UInt8] = try message.serializedBytes()
        #expect(try bytes.withUnsafeBytes { try ProgressCodec.decode($0) }.grown == [LogPartition("app.Order", 0): 9])
    }
}
