/// Blocks of words in one array, with a free list per size, for programs, keys and subscriber lists. Growing and shrinking a list needs
/// no allocation of its own. A block's id is its offset, which stays valid when the array moves.
struct WordPool: Sendable {
    private(set) var words: [UInt64] = []
    private var free: [[UInt32]] = []

    /// Rounds a size up to the next of 1, 2, 3, 4, 6, 8, 12, 16, 24, …: at most a third is unused.
    static func capacity(for count: Int) -> Int { sizes[sizeClass(of: count)] }

    private static let sizes: [Int] = [1, 2] + (0..<29).flatMap { [3 << $0, 4 << $0] }

    private static func sizeClass(of count: Int) -> Int {
        var low = 0
        var high = sizes.count - 1
        while low < high {
            let middle = (low + high) / 2
            if sizes[middle] < count { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Allocates a block of at least `count` words with undefined content.
    mutating func allocate(_ count: Int) -> UInt32 {
        let sizeClass = WordPool.sizeClass(of: count)
        // A reused block holds old words. Each caller writes what it reads.
        if sizeClass < free.count, let block = free[sizeClass].popLast() { return block }
        let block = UInt32(words.count)
        words.append(contentsOf: repeatElement(0, count: WordPool.sizes[sizeClass]))
        return block
    }

    /// Frees a block that was allocated for `count` words, or for any count with the same capacity.
    mutating func release(_ block: UInt32, _ count: Int) {
        let sizeClass = WordPool.sizeClass(of: count)
        while free.count <= sizeClass { free.append([]) }
        free[sizeClass].append(block)
    }

    mutating func store(_ content: [UInt64]) -> UInt32 {
        let block = allocate(content.count)
        for (index, word) in content.enumerated() { words[Int(block) + index] = word }
        return block
    }

    subscript(_ index: Int, of list: WordList) -> UInt64 {
        get { words[Int(list.block) + index] }
        set { words[Int(list.block) + index] = newValue }
    }

    /// Appends a word to a list. A full list moves to a larger block.
    mutating func append(_ word: UInt64, to list: inout WordList) {
        if list.count == list.capacity { move(&list, capacity: Int(list.count) + 1) }
        words[Int(list.block) + Int(list.count)] = word
        list.count += 1
    }

    /// Removes the word at an index. The last word takes its place. A list that is a quarter full moves to a smaller block.
    /// - Returns: the word that moved, or the removed one if it was the last.
    mutating func remove(at index: Int, of list: inout WordList) -> UInt64 {
        list.count -= 1
        let last = words[Int(list.block) + Int(list.count)]
        words[Int(list.block) + index] = last
        // A quarter and not a half: a list whose size swings around a bound must not move at every change. An empty list keeps its
        // block, as its owner releases it next.
        if list.count > 0, list.capacity > 4, list.count * 4 <= list.capacity { move(&list, capacity: Int(list.count) * 2) }
        return last
    }

    mutating func release(_ list: WordList) {
        if list.capacity > 0 { release(list.block, Int(list.capacity)) }
    }

    private mutating func move(_ list: inout WordList, capacity: Int) {
        // `allocate` may move the array, so blocks are offsets and no pointer is held across it.
        let target = allocate(capacity)
        for index in 0..<Int(list.count) { words[Int(target) + index] = words[Int(list.block) + index] }
        release(list)
        list.block = target
        list.capacity = UInt32(WordPool.capacity(for: capacity))
    }

    func holds(_ content: [UInt64], at block: UInt32) -> Bool {
        content.indices.allSatisfy { words[Int(block) + $0] == content[$0] }
    }

    var byteCount: Int { words.capacity * 8 + free.reduce(0) { $0 + $1.capacity * 4 } }
}

/// A list of words in a pool.
struct WordList: Sendable {
    var block: UInt32 = 0
    var count: UInt32 = 0
    var capacity: UInt32 = 0
}

/// Records of one kind in one array. The index of a removed record is reused.
struct Slab<Record: Sendable>: Sendable {
    private(set) var records: [Record] = []
    private var free: [UInt32] = []

    mutating func insert(_ record: Record) -> UInt32 {
        if let index = free.popLast() {
            records[Int(index)] = record
            return index
        }
        records.append(record)
        return UInt32(records.count - 1)
    }

    mutating func remove(_ index: UInt32) { free.append(index) }

    subscript(_ index: UInt32) -> Record {
        get { records[Int(index)] }
        set { records[Int(index)] = newValue }
    }

    var count: Int { records.count - free.count }
    var byteCount: Int { records.capacity * MemoryLayout<Record>.stride + free.capacity * 4 }
}
