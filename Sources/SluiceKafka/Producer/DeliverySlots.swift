/// The owners of the answers to come: a slot for each record or batch that has been handed over.
///
/// The library carries one machine word with each record. It holds the slot's number and generation, so that an answer after the
/// slot's release finds no owner instead of a wrong one.
struct DeliverySlots {
    enum Owner {
        case record(CheckedContinuation<Int64, any Error>)
        case batch(KafkaDelivery)
    }

    /// The word: 20 bits of generation, 20 bits of slot, 24 bits of the record's index in its batch.
    struct Token: Equatable {
        var word: UInt64

        init(word: UInt64) { self.word = word }
        init(slot: Int, generation: UInt32, record: Int = 0) {
            word = UInt64(generation & 0xF_FFFF) << 44 | UInt64(slot & 0xF_FFFF) << 24 | UInt64(record & 0xFF_FFFF)
        }

        var slot: Int { Int(word >> 24 & 0xF_FFFF) }
        var generation: UInt32 { UInt32(word >> 44) }
        var record: Int { Int(word & 0xFF_FFFF) }

        func with(record: Int) -> Token { Token(word: word & ~0xFF_FFFF | UInt64(record & 0xFF_FFFF)) }
    }

    private struct Slot {
        var generation: UInt32
        var owner: Owner?
    }

    private var slots: [Slot] = []
    private var free: [Int] = []

    var count: Int { slots.count - free.count }

    mutating func insert(_ owner: Owner) -> Token {
        if let slot = free.popLast() {
            slots[slot].owner = owner
            return Token(slot: slot, generation: slots[slot].generation)
        }
        slots.append(Slot(generation: 0, owner: owner))
        return Token(slot: slots.count - 1, generation: 0)
    }

    /// Returns the owner of a token; nil if the token's slot has been released.
    subscript(token: Token) -> Owner? {
        guard token.slot < slots.count, slots[token.slot].generation == token.generation else { return nil }
        return slots[token.slot].owner
    }

    /// Releases a slot.
    ///
    /// - Returns: The owner; nil if the slot had been released before.
    @discardableResult
    mutating func remove(_ token: Token) -> Owner? {
        guard let owner = self[token] else { return nil }
        slots[token.slot].owner = nil
        // The new generation invalidates tokens of the released slot.
        slots[token.slot].generation = (slots[token.slot].generation + 1) & 0xF_FFFF
        free.append(token.slot)
        return owner
    }

    /// Releases every slot and returns the owners.
    mutating func removeAll() -> [Owner] {
        var owners: [Owner] = []
        for slot in slots.indices {
            guard let owner = remove(Token(slot: slot, generation: slots[slot].generation)) else { continue }
            owners.append(owner)
        }
        return owners
    }
}
