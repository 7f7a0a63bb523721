import SluiceCore
import SluiceQuery

/// Finds who is concerned by a change: `(type, key) → distinct residual programs → subscribers`.
///
/// A change is looked up under the key of its old and its new image and under the entries without a key; each distinct program there
/// runs once per image, and only the subscribers of those that hold are touched. So the cost follows the matches and the distinct programs
/// of a key, never the number of subscriptions.
///
/// Everything lies in flat arrays of integers with free lists; adding and removing is incremental, O(entries of the subscriber).
/// Memory: 16 bytes per entry of a subscription, 8 to 11 in its program's list, 4 per subscriber id; about 50 for each distinct
/// (key, program), about 16 per comparison for each distinct program, and about 70 for each key.
///
/// Subscriber ids are below 2^31 and should be small numbers used again: some arrays are as long as the largest.
package struct PredicateIndex: Sendable {
    static let none = UInt32.max
    /// In a subscriber's word: it may turn up several times for one change.
    static let isRepeated: UInt64 = 1 << 31

    /// What the index knows of an object type.
    struct TypeState: Sendable {
        /// The indexed property; -1 when there is none.
        var property: Int
        /// The bucket of the entries without a key.
        var unkeyed = PredicateIndex.none
        var members = 0
    }

    /// One key of a type, or the rows of all keys, and the distinct programs under it.
    struct Bucket: Sendable {
        var type: UInt32
        var hash: UInt64
        /// The key's cell, its bytes in the pool; tag `absent` for all keys.
        var key: Cell
        var keyBlock: UInt32
        /// For each program two words, so that a change reads them in a row: where its code lies (low half) and its node (high half);
        /// where its subscribers lie (low half) and how many they are (high half).
        ///
        /// A subscriber's word: its id (bits 0-30), whether it has other entries of the type (bit 31), its member (high half).
        var entries = WordList()
    }

    /// One program under one key, and its subscribers.
    struct Node: Sendable {
        var bucket: UInt32
        var program: UInt32
        /// Its place in the bucket.
        var slot: UInt32
        /// For how many subscribers there is room.
        var capacity: UInt32 = 0
    }

    struct ProgramRecord: Sendable {
        var hash: UInt64
        /// `none` when the program is not flat and lies in `trees`.
        var block: UInt32
        var wordCount: UInt32
        var references: UInt32
    }

    /// One entry of one subscriber.
    struct Member: Sendable {
        var node: UInt32
        /// Its place in the node.
        var position: UInt32
        /// The subscriber's next entry.
        var next: UInt32
        var type: UInt32
    }

    let seed: UInt64
    var types: [TypeState]
    var pool = WordPool()
    var buckets = Slab<Bucket>()
    var nodes = Slab<Node>()
    var programs = Slab<ProgramRecord>()
    var members = Slab<Member>()
    /// By subscriber: its first entry.
    var heads: [UInt32] = []
    var bucketTable = FlatTable()
    var nodeTable = FlatTable()
    var programTable = FlatTable()
    /// Programs that are not flat; subscriptions never have them, other callers may.
    var trees: [UInt32: Program] = [:]

    /// - Parameters:
    ///   - indexedProperties: for each object type the index of its indexed property, nil where it has none.
    ///   - seed: a random number, so that clients cannot prepare keys that collide.
    package init(indexedProperties: [Int?], seed: UInt64 = 0) {
        self.seed = Hashing.mix(seed, 0x2545_f491_4f6c_dd1d)
        types = indexedProperties.map { TypeState(property: $0 ?? -1) }
    }

    /// Takes over a schema with more types. The property of a type that has subscribers must stay the same.
    package mutating func setIndexedProperties(_ indexedProperties: [Int?]) {
        for (index, property) in indexedProperties.enumerated() {
            if index < types.count { types[index].property = property ?? -1 } else { types.append(TypeState(property: property ?? -1)) }
        }
    }

    /// Whether a change of this type can concern anybody.
    package func hasSubscribers(type: Int) -> Bool { types.indices.contains(type) && types[type].members > 0 }

    /// Entries of all subscribers.
    package var entryCount: Int { members.count }
    /// Programs that are different from each other.
    package var programCount: Int { programs.count }
    /// Bytes in use and in reserve.
    package var byteCount: Int {
        pool.byteCount + buckets.byteCount + nodes.byteCount + programs.byteCount + members.byteCount + heads.capacity * 4
            + bucketTable.byteCount + nodeTable.byteCount + programTable.byteCount
    }
}
