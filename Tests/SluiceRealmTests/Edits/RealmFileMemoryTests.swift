import SluiceCore
import SluiceRealm
import TestSupport
import Testing

@Suite struct `The erasure barriers of a file` {
    /// All barriers, none left out.
    private struct Naive {
        var barriers: [ObjectKey: [RealmBarriers.Barrier]] = [:]

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
        var wholeViews = 0
        for step in 0..<300 {
            let object = ObjectKey(type: "Item", key: .int(Int64(random.below(3))))
            let stamp = RealmStamp(UInt64(random.below(20)), UInt64(1 + random.below(3)))
            // Stored entries repeat versions out of order.
            let version = confirmed + 1 + UInt64(random.below(30))
            let writer = RealmWriter(stamp: stamp, base: confirmed + UInt64(random.below(30)), version: 0)
            switch random.below(11) {
            case 0..<5:
                memory.setBarrier(object, version, stamp)
                naive.barriers[object, default: []].append(.init(version: version, stamp: stamp))
            case 10:
                // A view, whose objects have one barrier. Most come when there are no others.
                if random.chance(70) {
                    confirmed += 30
                    memory.advance(0, base: confirmed)
                    naive.advance(confirmed)
                    memory.view = []
                }
                let objects = (0..<5).filter { _ in random.chance(60) }.map { ObjectKey(type: "Item", key: .int($0)) }
                for part in [objects.prefix(2), objects.dropFirst(2)] {
                    let isEmpty = naive.barriers.isEmpty && memory.view.isEmpty
                    let isWhole = memory.enterWhole(Array(part), confirmed + 9, stamp, expecting: part.count)
                    #expect(isWhole || !isEmpty, "seed \(seed), step \(step)")
                    guard isWhole else { break }
                    wholeViews += 1
                    for object in part { naive.barriers[object, default: []].append(.init(version: confirmed + 9, stamp: stamp)) }
                    #expect(memory.barriers.common(of: memory.view) != nil || memory.view.isEmpty)
                }
            case 5: #expect(memory.pass(object, writer) == naive.pass(object, writer), "seed \(seed), step \(step)")
            case 6:
                confirmed += UInt64(random.below(6))
                memory.advance(0, base: confirmed)
                naive.advance(confirmed)
            default: #expect(memory.isBarred(object, writer) == naive.isBarred(object, writer), "seed \(seed), step \(step)")
            }
            #expect(memory.held == memory.view.union(naive.barriers.keys), "seed \(seed), step \(step)")
            let lists = memory.barriers.lists(except: nil)
            #expect(Set(lists.map(\.object)) == memory.barriers.objects && lists.allSatisfy { memory.barriers[$0.object] == $0.list })
            #expect(memory.barriers.count == lists.reduce(0) { $0 + $1.list.count })
            let (those, others) = (memory.barriers.objects(at: version), memory.barriers.objects(besides: version))
            #expect(those == Set(lists.filter { $0.list.last.version == version }.map(\.object)))
            #expect(others == memory.barriers.objects.subtracting(those))
            var copy = RealmBarriers()
            for (object, list) in lists { copy[object] = list }
            #expect(copy == memory.barriers && copy.hashValue == memory.barriers.hashValue)
            copy[object] = nil
            #expect((copy == memory.barriers) == (memory.barriers[object] == nil))
        }
        #expect(wholeViews > 0, "seed \(seed)")
    }

    @Test func `are one for an object that comes and goes`() {
        var memory = RealmFileMemory()
        let object = ObjectKey(type: "Item", key: .int(1))
        for version in UInt64(1)...1_000 { memory.setBarrier(object, version, RealmStamp(version, 1)) }
        #expect(memory.barriers.count == 1)
        #expect(memory.isBarred(object, RealmWriter(stamp: RealmStamp(1, 2), base: 999, version: 0)))
    }
}
