import TestSupport
import Testing

@testable import SluiceMatch

/// The stores of the predicate index against arrays and dictionaries.
@Suite struct `Stores of the index` {
    @Test(arguments: seeds(20)) func `lists in one pool are lists, however they grow and shrink`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var pool = WordPool()
        var lists = [WordList](repeating: WordList(), count: 6)
        var models = [[UInt64]](repeating: [], count: 6)
        for _ in 0..<600 {
            let place = random.below(6)
            if random.chance(60) || models[place].isEmpty {
                let word = random.next()
                pool.append(word, to: &lists[place])
                models[place].append(word)
            } else {
                let index = random.below(models[place].count)
                let moved = pool.remove(at: index, of: &lists[place])
                // The last word takes the place of the removed one.
                let last = models[place].removeLast()
                if index < models[place].count { models[place][index] = last }
                #expect(moved == last, "seed \(seed)")
            }
            for (list, model) in zip(lists, models) {
                let words = model.indices.map { pool[$0, of: list] }
                #expect(words == model && Int(list.count) == model.count, "seed \(seed)")
            }
        }
    }

    @Test(arguments: seeds(20)) func `a pool does not grow by lists that come and go`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var pool = WordPool()
        var sizes: [Int] = []
        for _ in 0..<8 {
            var lists = [WordList](repeating: WordList(), count: 20)
            for index in lists.indices {
                // Of the same sizes each time, in another order.
                for _ in 0...(index * 3) { pool.append(random.next(), to: &lists[index]) }
            }
            for list in lists.shuffled(using: &random) { pool.release(list) }
            sizes.append(pool.words.count)
        }
        #expect(sizes.allSatisfy { $0 == sizes[0] }, "seed \(seed): \(sizes)")
    }

    @Test func `a block has room for what it was asked for, and wastes a third at most`() {
        for count in 1...5_000 {
            let capacity = WordPool.capacity(for: count)
            #expect(capacity >= count && (capacity - count) * 3 <= max(capacity, 3), "\(count): \(capacity)")
            #expect(WordPool.capacity(for: capacity) == capacity, "\(count)")
        }
    }

    @Test(arguments: seeds(20)) func `records keep their index until they are removed`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var slab = Slab<UInt64>()
        var model: [UInt32: UInt64] = [:]
        var most = 0
        for _ in 0..<400 {
            if random.chance(55) || model.isEmpty {
                let record = random.next()
                let index = slab.insert(record)
                #expect(model[index] == nil, "seed \(seed): \(index) is taken")
                model[index] = record
            } else {
                let index = random.pick(model.keys.sorted())
                slab.remove(index)
                model[index] = nil
            }
            most = max(most, model.count)
            #expect(slab.count == model.count && model.allSatisfy { slab[$0.key] == $0.value }, "seed \(seed)")
        }
        #expect(slab.records.count == most, "seed \(seed): the places of removed records are not used again")
    }

    @Test(arguments: seeds(20)) func `a table finds what is in it and nothing else, with colliding hashes too`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var table = FlatTable()
        // Keys by index; many share a hash, or the slot of one.
        var keys: [UInt32: Int] = [:]
        func hash(_ key: Int) -> UInt64 { UInt64(key % 7) << 32 | UInt64(key) }
        for round in 0..<500 {
            let key = random.below(40)
            let found = table.find(hash(key)) { keys[$0] == key }
            #expect(found.flatMap { keys[$0] } == (keys.values.contains(key) ? key : nil), "seed \(seed): \(key)")
            if let found {
                guard random.chance(50) else { continue }
                table.remove(hash(key), found)
                keys[found] = nil
            } else {
                table.insert(hash(key), UInt32(round))
                keys[UInt32(round)] = key
            }
            #expect(table.count == keys.count, "seed \(seed)")
        }
        for (index, key) in keys { #expect(table.find(hash(key)) { keys[$0] == key } == index, "seed \(seed): \(key)") }
    }
}
