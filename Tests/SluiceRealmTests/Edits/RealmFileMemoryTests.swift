import SluiceCore
import SluiceRealm
import TestSupport
import Testing

@Suite struct `The erasure barriers of a file` {
    /// All barriers, none left out.
    private struct Naive {
        var barriers: [ObjectKey: [RealmFileMemory.Barrier]] = [:]

        func isBarred(_ object: ObjectKey, _ writer: RealmWriter) -> Bool {
            barriers[object]?.contains { $0.version > writer.base } ?? false
        }

        mutating func pass(_ object: ObjectKey, _ writer: RealmWriter) -> Bool {
            let unknown = (barriers[object] ?? []).filter { $0.version > writer.base }
            guard unknown.allSatisfy({ $0.stamp < writer.stamp }) else { return false }
            barriers[object] = nil
            return true
        }

        mutating func advance(_ base: UInt64) {
            barriers = barriers.mapValues { $0.filter { $0.version > base } }.filter { !$0.value.isEmpty }
        }
    }

    @Test(arguments: seeds(60)) func `decide as all of them would`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var (memory, naive, confirmed) = (RealmFileMemory(), Naive(), UInt64(0))
        for step in 0..<300 {
            let object = ObjectKey(type: "Item", key: .int(Int64(random.below(3))))
            let stamp = RealmStamp(UInt64(random.below(20)), UInt64(1 + random.below(3)))
            // Stored entries repeat versions out of order.
            let version = confirmed + 1 + UInt64(random.below(30))
            let writer = RealmWriter(stamp: stamp, base: confirmed + UInt64(random.below(30)), version: 0)
            switch random.below(10) {
            case 0..<5:
                memory.setBarrier(object, version, stamp)
                naive.barriers[object, default: []].append(.init(version: version, stamp: stamp))
            case 5: #expect(memory.pass(object, writer) == naive.pass(object, writer), "seed \(seed), step \(step)")
            case 6:
                confirmed += UInt64(random.below(6))
                memory.advance(0, base: confirmed)
                naive.advance(confirmed)
            default: #expect(memory.isBarred(object, writer) == naive.isBarred(object, writer), "seed \(seed), step \(step)")
            }
            #expect(memory.held == Set(naive.barriers.keys), "seed \(seed), step \(step)")
            #expect(memory.barrierCount == memory.barriers.values.reduce(0) { $0 + $1.count })
        }
    }

    @Test func `are one for an object that comes and goes`() {
        var memory = RealmFileMemory()
        let object = ObjectKey(type: "Item", key: .int(1))
        for version in UInt64(1)...1_000 { memory.setBarrier(object, version, RealmStamp(version, 1)) }
        #expect(memory.barrierCount == 1)
        #expect(memory.isBarred(object, RealmWriter(stamp: RealmStamp(1, 2), base: 999, version: 0)))
    }
}
