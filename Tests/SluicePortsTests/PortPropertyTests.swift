import SluiceCore
import SluicePorts
import TestSupport
import Testing

@Suite struct `A batch of records` {
    @Test(arguments: seeds(10)) func `has the bytes of each record, however it is filled and emptied`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var batch = LogBatch(topics: ["a", "b", "c"])
        for _ in 0..<20 {
            var model: [(topic: Int, partition: Int32, key: [UInt8], value: [UInt8])] = []
            for _ in 0..<random.below(12) {
                let record = (random.below(3), Int32(random.below(9)), Self.bytes(&random), Self.bytes(&random))
                batch.append(topic: record.0, partition: record.1, key: record.2, value: record.3)
                model.append(record)
            }
            #expect(batch.count == model.count && batch.isEmpty == model.isEmpty, "seed \(seed)")
            #expect(batch.byteCount == model.reduce(0) { $0 + $1.key.count + $1.value.count }, "seed \(seed)")
            for (entry, record) in zip(batch.entries, model) {
                #expect(entry.topic == record.topic && entry.partition == record.partition, "seed \(seed)")
                #expect(Array(batch.arena[entry.key]) == record.key && Array(batch.arena[entry.value]) == record.value, "seed \(seed)")
            }
            // Ranges of one arena, one after the other.
            let ranges = batch.entries.flatMap { [$0.key, $0.value] }
            #expect(zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound == $1.lowerBound }, "seed \(seed)")
            batch.removeAll()
        }
        #expect(batch.isEmpty && batch.topics == ["a", "b", "c"])
    }

    private static func bytes(_ random: inout SplitMix64) -> [UInt8] { (0..<random.below(30)).map { _ in UInt8(random.below(256)) } }
}

@Suite struct `The point of a snapshot` {
    /// The lowest transaction of which a restored backup with the witness may lack the end.
    @Test(arguments: seeds(10)) func `is its oldest running transaction, or the one after its witness if that is older`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            // Near a turn of the 32-bit counter, or anywhere.
            let base: UInt64 = random.chance(50) ? UInt64(1 + random.below(9)) << 32 : (1 << 33) + random.next() >> 24
            let xmin = base + UInt64(random.below(100))
            let witness = base - 50 + UInt64(random.below(200))
            let start = SnapshotStart(
                snapshot: TransactionSnapshot(xmin: xmin, xmax: xmin + 200, running: []), lsn: .zero, cluster: "c",
                witness: HistoryAnchor(transaction: UInt32(truncatingIfNeeded: witness), commitTime: 1))
            #expect(start.point.transaction == min(xmin, witness + 1), "seed \(seed): xmin \(xmin), witness \(witness)")
            #expect(start.point.cluster == "c" && start.point.witness == start.witness)
        }
    }

    @Test func `is its oldest running transaction without a witness`() {
        let start = SnapshotStart(snapshot: TransactionSnapshot(xmin: 70, xmax: 90, running: [70]), lsn: .zero, cluster: "c")
        #expect(start.point == SnapshotPoint(cluster: "c", transaction: 70))
    }

    /// 2³⁰ transactions later the numbers in rows do not order the two any more.
    @Test(arguments: [(0, true), (1_000, true), (1_000 + (1 << 30) - 1, true), (1_000 + (1 << 30), false)] as [(UInt64, Bool)])
    func `is compared with transactions that are near`(transaction: UInt64, isNear: Bool) {
        let point = SnapshotPoint(cluster: "c", transaction: 1_000)
        #expect(point.isNear(transaction) == isNear)
        for cluster in ["c", "d"] {
            let snapshot = TransactionSnapshot(xmin: transaction, xmax: transaction, running: [])
            let start = SnapshotStart(snapshot: snapshot, lsn: .zero, cluster: cluster)
            #expect(point.isComparable(at: start) == (isNear && cluster == "c"))
        }
    }

    @Test(arguments: [(0, 0), (UInt64(Int64.max), UInt64(Int64.max)), (UInt64(Int64.max) + 1, nil)] as [(UInt64, UInt64?)])
    func `is read from a client up to the numbers that a database assigns`(told: UInt64, read: UInt64?) {
        #expect(SnapshotPoint.transaction(told: told) == read)
    }
}

@Suite(.timeLimit(.minutes(5))) struct `A count that is waited for` {
    @Test(arguments: seeds(4)) func `wakes each waiter once it is reached, in any order of both`(seed: UInt64) async {
        var random = SplitMix64(seed: seed)
        for _ in 0..<20 {
            let event = AsyncEvent(environment: SystemEnvironment())
            let values = (0..<8).map { _ in UInt64(random.below(30)) }
            await withTaskGroup(of: Bool.self) { group in
                for value in values {
                    group.addTask {
                        await event.wait(until: value, milliseconds: 300_000)
                        return event.count >= value
                    }
                }
                // Lower values change nothing.
                for value in (0..<6).map({ _ in UInt64(random.below(30)) }) + [30, 3] {
                    event.reach(value)
                    await Task.yield()
                }
                for await isReached in group { #expect(isReached, "seed \(seed): \(values)") }
            }
            #expect(event.count == 30, "seed \(seed)")
        }
    }
}
