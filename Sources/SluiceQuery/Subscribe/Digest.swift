import SluiceCore

/// A 128-bit digest of a condition, equal in every process. It does not resist attacks, so conditions of equal digests are compared in
/// full.
struct Digest: Hashable, Comparable, Sendable {
    private var high: UInt64 = 0x243F_6A88_85A3_08D3
    private var low: UInt64 = 0x1319_8A2E_0370_7344

    private var words = 0

    /// Returns the digest of a condition without parts, and its size in words of 8 bytes.
    static func of(leaf condition: BoundPredicate) -> (Digest, words: Int) {
        let digest = Digest(leaf: condition)
        return (digest, digest.words)
    }

    private init(leaf condition: BoundPredicate) {
        switch condition {
        case .constant(let value): add(value ? 1 : 2)
        case .test(let subject, let test): add(3, subject, test)
        case .not(.test(let subject, let test)): add(4, subject, test)
        case .properties(let left, let comparison, let right, let foldsCase):
            add(5)
            add(UInt64(left) << 32 | UInt64(UInt32(truncatingIfNeeded: right)))
            add(UInt64(comparison.rawValue) << 1 | (foldsCase ? 1 : 0))
        case .within(let property, let geometry):
            add(10)
            add(UInt64(property))
            for number in geometry.numbers { add(number.bitPattern) }
        case .not(let inner):
            self = Digest(leaf: inner)
            add(6)
        case .and, .or: add(7)
        }
    }

    init(parts: [Digest], isAnd: Bool) {
        add(isAnd ? 8 : 9)
        add(UInt64(parts.count))
        for part in parts {
            add(part.high)
            add(part.low)
        }
    }

    /// Returns the digest for another class.
    func seeded(_ name: String) -> Digest {
        var digest = self
        digest.add(bytes: Array(name.utf8))
        return digest
    }

    static func < (lhs: Digest, rhs: Digest) -> Bool { lhs.high == rhs.high ? lhs.low < rhs.low : lhs.high < rhs.high }

    private mutating func add(_ word: UInt64) {
        words += 1
        high = (high ^ word) &* 0x9E37_79B9_7F4A_7C15
        high ^= high >> 29
        low = (low &+ word) &* 0xC2B2_AE3D_27D4_EB4F
        low ^= low >> 31
    }

    private mutating func add(_ kind: UInt64, _ subject: Subject, _ test: Test) {
        let quantifier: UInt64 =
            switch subject {
            case .property: 0
            case .count: 1
            case .elements(_, .any): 2
            case .elements(_, .all): 3
            case .elements(_, .none): 4
            }
        add(kind << 32 | quantifier << 16 | UInt64(test.comparison.rawValue) << 8 | (test.foldsCase ? 1 : 0))
        add(UInt64(subject.property))
        add(UInt64(ValueCoding.tag(of: test.value).rawValue))
        add(bytes: ValueCoding.encode(test.value))
    }

    private mutating func add(bytes: [UInt8]) {
        var word: UInt64 = 0
        for (index, byte) in bytes.enumerated() {
            word = word << 8 | UInt64(byte)
            if index & 7 == 7 {
                add(word)
                word = 0
            }
        }
        add(word)
        add(UInt64(bytes.count))
    }
}
