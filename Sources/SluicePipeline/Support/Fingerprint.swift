/// 64 bits that stand for texts, the same in every process: FNV-1a (Fowler, Noll, Vo). Not made against an adversary; whoever makes
/// two texts of one fingerprint deceives himself only.
package struct Fingerprint: Hashable, Sendable {
    package private(set) var rawValue: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package init(_ text: String) { add(text) }

    /// Adds a text and its end.
    package mutating func add(_ text: String) {
        for byte in text.utf8 { add(byte) }
        add(0xFF)
    }

    private mutating func add(_ byte: UInt8) { rawValue = (rawValue ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
}
