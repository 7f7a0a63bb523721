/// A 64-bit hash of texts, equal in every process: FNV-1a (Fowler, Noll, Vo).
/// It is not collision-resistant against an adversary. A client that forges a collision harms only itself.
package struct Fingerprint: Hashable, Sendable {
    package private(set) var rawValue: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    package init(_ text: String) { add(text) }

    /// Adds a text and a terminator.
    package mutating func add(_ text: String) {
        for byte in text.utf8 { add(byte) }
        add(0xFF)
    }

    private mutating func add(_ byte: UInt8) { rawValue = (rawValue ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
}
