import SluiceCore

/// A long list of keys, each once, in which a key's place, the key at a place, putting in and taking out cost some microseconds: blocks of
/// keys, their sizes, and for each key its block. About 100 bytes a key.
struct OrderedKeys {
    private struct Block {
        var number: Int32
        var keys: [Value]
    }

    private static let blockSize = 512
    private var blocks: [Block] = []
    /// By block number: its place among the blocks.
    private var places: [Int] = []
    /// By key: its block's number.
    private var homes: [Value: Int32] = [:]
    private(set) var count = 0

    init(_ keys: [Value]) {
        count = keys.count
        homes.reserveCapacity(count)
        var start = 0
        while start < count {
            let end = min(start + OrderedKeys.blockSize, count)
            let number = Int32(blocks.count)
            for key in keys[start..<end] { homes[key] = number }
            places.append(blocks.count)
            blocks.append(Block(number: number, keys: Array(keys[start..<end])))
            start = end
        }
    }

    var keys: [Value] { blocks.flatMap(\.keys) }

    subscript(_ index: Int) -> Value? {
        var rest = index
        for block in blocks {
            if rest < block.keys.count { return rest < 0 ? nil : block.keys[rest] }
            rest -= block.keys.count
        }
        return nil
    }

    func contains(_ key: Value) -> Bool { homes[key] != nil }

    func position(of key: Value) -> Int? {
        guard let (place, index) = find(key) else { return nil }
        var before = 0
        for block in 0..<place { before += blocks[block].keys.count }
        return before + index
    }

    /// The key right before one that is there; nil when that is the first.
    func key(before key: Value) -> Value? {
        guard let (place, index) = find(key) else { return nil }
        return index > 0 ? blocks[place].keys[index - 1] : place > 0 ? blocks[place - 1].keys.last : nil
    }

    /// The key right after one that is there; nil when that is the last.
    func key(after key: Value) -> Value? {
        guard let (place, index) = find(key) else { return nil }
        if index + 1 < blocks[place].keys.count { return blocks[place].keys[index + 1] }
        return place + 1 < blocks.count ? blocks[place + 1].keys.first : nil
    }

    private func find(_ key: Value) -> (place: Int, index: Int)? {
        guard let home = homes[key], case let place = places[Int(home)] else { return nil }
        return blocks[place].keys.firstIndex(of: key).map { (place, $0) }
    }

    mutating func remove(_ key: Value) {
        guard let (place, index) = find(key) else { return }
        homes[key] = nil
        blocks[place].keys.remove(at: index)
        count -= 1
        if blocks[place].keys.isEmpty {
            blocks.remove(at: place)
            renumber(from: place)
        }
    }

    /// Puts a key that is not there before the first one that it precedes; the keys have to be in order.
    mutating func insert(_ key: Value, precedes: (Value) throws(SluiceError) -> Bool) throws(SluiceError) {
        // The first block whose last key comes after it, or the last block.
        var (low, high) = (0, blocks.count)
        while low < high {
            let middle = (low + high) / 2
            guard let last = blocks[middle].keys.last else { break }
            if try precedes(last) { high = middle } else { low = middle + 1 }
        }
        if blocks.isEmpty {
            places.append(0)
            blocks.append(Block(number: Int32(places.count - 1), keys: []))
        }
        let place = min(low, blocks.count - 1)
        (low, high) = (0, blocks[place].keys.count)
        while low < high {
            let middle = (low + high) / 2
            if try precedes(blocks[place].keys[middle]) { high = middle } else { low = middle + 1 }
        }
        blocks[place].keys.insert(key, at: low)
        homes[key] = blocks[place].number
        count += 1
        if blocks[place].keys.count > 2 * OrderedKeys.blockSize { split(place) }
    }

    private mutating func split(_ place: Int) {
        let half = blocks[place].keys.count / 2
        let upper = Array(blocks[place].keys[half...])
        blocks[place].keys.removeSubrange(half...)
        let number = Int32(places.count)
        places.append(place + 1)
        for key in upper { homes[key] = number }
        blocks.insert(Block(number: number, keys: upper), at: place + 1)
        renumber(from: place + 1)
    }

    private mutating func renumber(from place: Int) {
        for index in place..<blocks.count { places[Int(blocks[index].number)] = index }
    }
}
