import SluiceCore

/// Hash functions of the index. Clients choose keys, so hashes are seeded: colliding keys cannot be prepared.
enum Hashing {
    @inline(__always)
    static func mix(_ a: UInt64, _ b: UInt64) -> UInt64 {
        // A folded 128-bit product, as in wyhash: one multiplication mixes both inputs.
        let product = (a ^ 0x9e37_79b9_7f4a_7c15).multipliedFullWidth(by: b ^ 0xe703_7ed1_a0b4_28db)
        return product.high ^ product.low
    }

    static func hash(_ words: [UInt64], seed: UInt64) -> UInt64 {
        // The length first, so that a list and its extension by a zero word start differently.
        var hash = mix(seed, UInt64(words.count))
        for word in words { hash = mix(hash ^ word, seed) }
        return hash
    }

    @inline(__always)
    static func hash(_ bytes: UnsafeBufferPointer<UInt8>, seed: UInt64) -> UInt64 {
        var hash = mix(seed, UInt64(bytes.count))
        guard let base = UnsafeRawPointer(bytes.baseAddress) else { return hash }
        var offset = 0
        while offset + 8 <= bytes.count {
            hash = mix(hash ^ base.loadUnaligned(fromByteOffset: offset, as: UInt64.self), seed)
            offset += 8
        }
        // The length is part of the start, so the packed rest needs no padding of its own.
        var rest: UInt64 = 0
        while offset < bytes.count {
            rest = rest << 8 | UInt64(bytes[offset])
            offset += 1
        }
        return mix(hash ^ rest, seed)
    }
}

/// A key read in place: the value of the indexed property. Two keys are equal if type and content are, byte for byte.
struct KeyView {
    let cell: Cell
    let bytes: UnsafeBufferPointer<UInt8>

    @inline(__always)
    init(_ row: RowView, _ property: Int) {
        let cell = row[property]
        // In a bucket the tag `absent` means all keys, so a missing value must not have it. It is looked up as null.
        self.cell = cell.tag == .absent ? .null : cell
        bytes = cell.tag.isInArena ? row.bytes(of: cell) : UnsafeBufferPointer(start: nil, count: 0)
    }

    @inline(__always)
    func hash(type: Int, seed: UInt64) -> UInt64 {
        let own = Hashing.mix(seed &+ UInt64(truncatingIfNeeded: type), UInt64(cell.tag.rawValue))
        if bytes.baseAddress != nil { return Hashing.hash(bytes, seed: own) }
        return Hashing.mix(own ^ cell.bits, seed ^ UInt64(cell.length))
    }

    @inline(__always)
    func isSame(_ other: KeyView) -> Bool {
        guard cell.tag == other.cell.tag, cell.length == other.cell.length else { return false }
        if !cell.tag.isInArena { return cell.bits == other.cell.bits }
        for index in 0..<bytes.count where bytes[index] != other.bytes[index] { return false }
        return true
    }
}
