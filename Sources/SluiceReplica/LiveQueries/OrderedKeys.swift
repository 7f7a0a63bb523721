import SluiceCore

/// A long list of unique keys. Lookup by key or index, insertion and removal cost a microsecond or less. It keeps blocks of numbers, one
/// number for each key, and the block of each number. About 100 bytes a key.
struct OrderedKeys {
    private struct Block {
        var number: Int32
        /// The numbers of its keys, in order.
        var ids: [Int32]
    }

    private static let blockSize = 512
    private var blocks: [Block] = []
    /// By block number: its index in `blocks`.
    private var places: [Int] = []
    /// By key: its number.
    private var ids: [Value: Int32] = [:]
    /// By a key's number: the key. `homes` has the number of its block.
    private var values: [Value] = []
    private var homes: [Int32] = []
    /// The numbers of removed keys, free for reuse.
    private var free: [Int32] = []

    init(_ keys: [Value]) {
        values = keys
        homes = [Int32](repeating: 0, count: keys.count)
        ids.reserveCapacity(keys.count)
        for (id, key) in keys.enumerated() { ids[key] = Int32(id) }
        for start in stride(from: 0, to: keys.count, by: OrderedKeys.blockSize) {
            let range = start..<min(start + OrderedKeys.blockSize, keys.count)
            let number = Int32(blocks.count)
            for id in range { homes[id] = number }
            places.append(blocks.count)
            blocks.append(Block(number: number, ids: range.map(Int32.init)))
        }
    }

    var count: Int { ids.count }

    var keys: [Value] {
        var keys: [Value] = []
        keys.reserveCapacity(count)
        for block in blocks { for id in block.ids { keys.append(values[Int(id)]) } }
        return keys
    }

    subscript(_ index: Int) -> Value? {
        // Block counts are added up at each access. An index of sums would have to change at each insertion.
        var rest = index
        for block in blocks {
            if rest < block.ids.count { return rest < 0 ? nil : values[Int(block.ids[rest])] }
            rest -= block.ids.count
        }
        return nil
    }

    func contains(_ key: Value) -> Bool { ids[key] != nil }

    func position(of key: Value) -> Int? {
        guard let (place, index) = find(key) else { return nil }
        var before = 0
        for block in 0..<place { before += blocks[block].ids.count }
        return before + index
    }

    /// The key right before a contained key; nil if that is the first.
    func key(before key: Value) -> Value? {
        guard let (place, index) = find(key) else { return nil }
        let id = index > 0 ? blocks[place].ids[index - 1] : place > 0 ? blocks[place - 1].ids.last : nil
        return id.map { values[Int($0)] }
    }

    /// The key right after a contained key; nil if that is the last.
    func key(after key: Value) -> Value? {
        guard let (place, index) = find(key) else { return nil }
        if index + 1 < blocks[place].ids.count { return values[Int(blocks[place].ids[index + 1])] }
        return place + 1 < blocks.count ? blocks[place + 1].ids.first.map { values[Int($0)] } : nil
    }

    private func find(_ key: Value) -> (place: Int, index: Int)? {
        guard let id = ids[key], case let place = places[Int(homes[Int(id)])] else { return nil }
        return blocks[place].ids.firstIndex(of: id).map { (place, $0) }
    }

    mutating func remove(_ key: Value) {
        guard let (place, index) = find(key), let id = ids.removeValue(forKey: key) else { return }
        values[Int(id)] = .null
        free.append(id)
        blocks[place].ids.remove(at: index)
        // Blocks are not merged. Only an empty one is removed, as `insert` compares with the last key of each.
        if blocks[place].ids.isEmpty {
            blocks.remove(at: place)
            renumber(from: place)
        }
    }

    /// Inserts a new key before the first one that it precedes. The keys must be in order.
    mutating func insert(_ key: Value, precedes: (Value) throws(SluiceError) -> Bool) throws(SluiceError) {
        // The first block whose last key comes after it, or the last block.
        var (low, high) = (0, blocks.count)
        while low < high {
            let middle = (low + high) / 2
            guard let last = blocks[middle].ids.last else { break }
            if try precedes(values[Int(last)]) { high = middle } else { low = middle + 1 }
        }
        if blocks.isEmpty {
            places.append(0)
            blocks.append(Block(number: Int32(places.count - 1), ids: []))
        }
        let place = min(low, blocks.count - 1)
        // A second binary search. Each comparison may read an object from the file, so their number matters.
        (low, high) = (0, blocks[place].ids.count)
        while low < high {
            let middle = (low + high) / 2
            if try precedes(values[Int(blocks[place].ids[middle])]) { high = middle } else { low = middle + 1 }
        }
        blocks[place].ids.insert(number(key, in: blocks[place].number), at: low)
        if blocks[place].ids.count > 2 * OrderedKeys.blockSize { split(place) }
    }

    private mutating func number(_ key: Value, in home: Int32) -> Int32 {
        let id = free.popLast() ?? Int32(values.count)
        if Int(id) == values.count {
            values.append(key)
            homes.append(home)
        } else {
            values[Int(id)] = key
            homes[Int(id)] = home
        }
        ids[key] = id
        return id
    }

    private mutating func split(_ place: Int) {
        let half = blocks[place].ids.count / 2
        let upper = Array(blocks[place].ids[half...])
        blocks[place].ids.removeSubrange(half...)
        let number = Int32(places.count)
        places.append(place + 1)
        for id in upper { homes[Int(id)] = number }
        blocks.insert(Block(number: number, ids: upper), at: place + 1)
        renumber(from: place + 1)
    }

    private mutating func renumber(from place: Int) {
        // A block keeps its number for life. So only the blocks behind change their place, and no key its home.
        for index in place..<blocks.count { places[Int(blocks[index].number)] = index }
    }
}
