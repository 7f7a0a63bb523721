/// A hash table from hashes to indices, by open addressing with linear probing: 8 bytes a slot, at most three quarters full. The caller
/// defines the meaning of an index and the equality of two.
struct FlatTable: Sendable {
    /// The high half is the hash, the low half the index plus one. 0 is empty.
    private var slots: [UInt64] = []
    private(set) var count = 0

    private var mask: Int { slots.count - 1 }

    @inline(__always)
    private static func position(_ slot: UInt64) -> Int { Int(slot >> 32) }

    @inline(__always)
    func find(_ hash: UInt64, _ isSame: (UInt32) -> Bool) -> UInt32? {
        guard count > 0 else { return nil }
        return slots.withUnsafeBufferPointer { slots in
            let mask = slots.count - 1
            let wanted = hash >> 32
            var position = Int(wanted) & mask
            while slots[position] != 0 {
                let slot = slots[position]
                if slot >> 32 == wanted {
                    let index = UInt32(truncatingIfNeeded: slot) - 1
                    // Equal halves of hashes are no proof: 32 bits collide. The records decide.
                    if isSame(index) { return index }
                }
                position = (position + 1) & mask
            }
            return nil
        }
    }

    /// Adds an index. The table must not contain an equal one.
    mutating func insert(_ hash: UInt64, _ index: UInt32) {
        // A quarter of the slots stays empty, so every probe sequence ends.
        if (count + 1) * 4 > slots.count * 3 { grow() }
        place(hash & 0xffff_ffff_0000_0000 | UInt64(index + 1))
        count += 1
    }

    private mutating func place(_ slot: UInt64) {
        var position = FlatTable.position(slot) & mask
        while slots[position] != 0 { position = (position + 1) & mask }
        slots[position] = slot
    }

    private mutating func grow() {
        let old = slots
        slots = [UInt64](repeating: 0, count: max(8, old.count * 2))
        // A slot has the half of the hash that places it, so growing reads no keys.
        for slot in old where slot != 0 { place(slot) }
    }

    /// Removes an index that was inserted with this hash, and closes the gap in its probe sequence.
    mutating func remove(_ hash: UInt64, _ index: UInt32) {
        guard count > 0 else { return }
        let slot = hash & 0xffff_ffff_0000_0000 | UInt64(index + 1)
        var hole = FlatTable.position(slot) & mask
        // The index is part of the slot, so this finds the very entry among equal hashes.
        while slots[hole] != slot {
            if slots[hole] == 0 { return }
            hole = (hole + 1) & mask
        }
        count -= 1
        // Backward shift instead of tombstones: move up each slot whose home is not between the hole and itself.
        var next = (hole + 1) & mask
        while slots[next] != 0 {
            let home = FlatTable.position(slots[next]) & mask
            if (next - home) & mask >= (next - hole) & mask {
                slots[hole] = slots[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        slots[hole] = 0
    }

    var byteCount: Int { slots.capacity * 8 }
}
