import SluiceCore
import SluiceQuery

/// An index of subscriptions: `(type, key) → distinct residual programs → subscribers`.
///
/// A change is looked up under the keys of its old and new image, and among the entries without a key. Each distinct program found runs
/// once per image. Only the subscribers of matching programs are touched. The cost therefore follows the matches and the distinct
/// programs of a key, not the number of subscriptions.
///
/// All data is in flat integer arrays with free lists. Adding and removing costs O(entries of the subscriber). Memory: 16 bytes per entry
/// of a subscription, 8 to 11 in its program's list, 4 per subscriber id. About 50 for each distinct (key, program), about 16 per
/// comparison of each distinct program, and about 70 for each key.
///
/// Subscriber ids must be below 2^31. Reuse small numbers: some arrays are as long as the largest id.
package struct PredicateIndex: Sendable {
    static let none = UInt32.max
    /// A flag in a subscriber's word: the subscriber may match several times for one change.
    static let isRepeated: UInt64 = 1 << 31

    /// The index's state of one class.
    struct TypeState: Sendable {
        /// The indexed property. -1 if there is none.
        var property: Int
        /// The bucket of the entries without a key.
        var unkeyed = PredicateIndex.none
        var members = 0
    }

    /// One key of a class, or the rows of all keys, with the distinct programs under it.
    struct Bucket: Sendable {
        var type: UInt32
        var hash: UInt64
        /// The key's cell, with its bytes in the pool. The tag `absent` means all keys.
        var key: Cell
        var keyBlock: UInt32
        /// Two words per program, so that a change reads them in sequence. First: the offset of its code (low half) and its node (high
        /// half). Second: the offset of its subscribers (low half) and their number (high half).
        ///
        /// A subscriber's word: its id (bits 0-30), the flag `isRepeated` (bit 31), its member (high half).
        var entries = WordList()
    }

    /// One program under one key, and its subscribers.
    struct Node: Sendable {
        var bucket: UInt32
        var program: UInt32
        /// Its index in the bucket.
        var slot: UInt32
        /// The capacity of its subscriber list.
        var capacity: UInt32 = 0
    }

    struct ProgramRecord: Sendable {
        var hash: UInt64
        /// `none` if the program is not flat; then it is in `trees`.
        var block: UInt32
        var wordCount: UInt32
        var references: UInt32
    }

    /// One entry of one subscriber.
    struct Member: Sendable {
        var node: UInt32
        /// Its index in the node.
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
    /// Programs that are not flat. Subscriptions never have them; other callers may.
    var trees: [UInt32: Program] = [:]

    /// - Parameters:
    ///   - indexedProperties: for each class the index of its indexed property, or `nil`.
    ///   - seed: a random number, so that clients cannot prepare colliding keys.
    package init(indexedProperties: [Int?], seed: UInt64 = 0) {
        self.seed = Hashing.mix(seed, 0x2545_f491_4f6c_dd1d)
        types = indexedProperties.map { TypeState(property: $0 ?? -1) }
    }

    /// Adopts a schema with more types. The indexed property of a type with subscribers must not change.
    package mutating func setIndexedProperties(_ indexedProperties: [Int?]) {
        // Buckets hold keys of the old property. Under another one they would never be found again.
        for (index, property) in indexedProperties.enumerated() {
            if index < types.count { types[index].property = property ?? -1 } else { types.append(TypeState(property: property ?? -1)) }
        }
    }

    /// `true` if a change of this type can match a subscriber.
    package func hasSubscribers(type: Int) -> Bool { types.indices.contains(type) && types[type].members > 0 }

    /// The number of entries of all subscribers.
    package var entryCount: Int { members.count }
    /// The number of distinct programs.
    package var programCount: Int { programs.count }
    /// The bytes in use and in reserve.
    package var byteCount: Int {
        pool.byteCount + buckets.byteCount + nodes.byteCount + programs.byteCount + members.byteCount + heads.capacity * 4
            + bucketTable.byteCount + nodeTable.byteCount + programTable.byteCount
    }
}
