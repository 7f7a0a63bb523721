import Foundation
import SluiceValues
import TestSupport
import Testing

/// Texts of bytes and ids: each form reads back, and nothing else reads as the same value.
@Suite struct `Text forms` {
    private static func bytes(_ count: Int, _ random: inout SplitMix64) -> [UInt8] { (0..<count).map { _ in UInt8(random.below(256)) } }

    @Test(arguments: seeds(10)) func `base64 agrees with Foundation at every length`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for count in 0..<70 {
            let bytes = Self.bytes(count, &random)
            let text = Base64.encode(bytes)
            #expect(text == Data(bytes).base64EncodedString(), "seed \(seed): \(bytes)")
            #expect(Base64.decode(text) == bytes, "seed \(seed): \(text)")
            let url = Base64.encode(url: bytes)
            #expect(url == text.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: ""), "seed \(seed): \(bytes)")
            #expect(Base64.decode(url: url.utf8) == bytes, "seed \(seed): \(url)")
        }
    }

    @Test(arguments: seeds(10)) func `damaged base64 is refused, or is the one text of other bytes`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<300 {
            var text = Array(Base64.encode(Self.bytes(1 + random.below(20), &random)).utf8)
            switch random.below(3) {
            case 0: text[random.below(text.count)] = UInt8(random.below(128))
            case 1: text.remove(at: random.below(text.count))
            default: text.insert(UInt8(ascii: "="), at: random.below(text.count + 1))
            }
            let damaged = String(decoding: text, as: UTF8.self)
            guard let decoded = Base64.decode(damaged) else { continue }
            #expect(Base64.encode(decoded) == damaged, "seed \(seed): \(damaged)")
        }
    }

    @Test(arguments: seeds(10)) func `hexadecimal digits of either case read back`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for count in 0..<40 {
            let bytes = Self.bytes(count, &random)
            let text = Hex.encode(bytes)
            #expect(text.utf8.count == 2 * count && text == text.lowercased(), "seed \(seed): \(text)")
            #expect(Hex.decode(text) == bytes && Hex.decode(text.uppercased()) == bytes, "seed \(seed): \(text)")
            #expect(Hex.decode(text + "0") == nil && Hex.decode(text + "0g") == nil, "seed \(seed): \(text)")
        }
    }

    @Test(arguments: seeds(10)) func `ids read back in either case, and at their own length alone`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<100 {
            let uuid = UUIDBytes(high: random.next(), low: random.next())
            let object = ObjectIdentifierBytes(high: random.next(), low: UInt32(truncatingIfNeeded: random.next()))
            let (long, short) = (uuid.description, object.description)
            #expect(UUIDBytes(long) == uuid && UUIDBytes(long.uppercased()) == uuid, "seed \(seed): \(long)")
            #expect(UUID(uuidString: long)?.uuidString.lowercased() == long.lowercased(), "seed \(seed): \(long)")
            #expect(ObjectIdentifierBytes(hex: short) == object && short.utf8.count == 24, "seed \(seed): \(short)")
            let cut = random.below(long.count)
            #expect(UUIDBytes(long.prefix(cut)) == nil && UUIDBytes(long + "0") == nil, "seed \(seed): \(long)")
            #expect(ObjectIdentifierBytes(hex: short.prefix(min(cut, 23))) == nil, "seed \(seed): \(short)")
        }
    }
}

@Suite struct Base64Tests {
    @Test(arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")])
    func `agrees with the examples of RFC 4648`(plain: String, text: String) {
        #expect(Base64.encode(Array(plain.utf8)) == text)
        #expect(Base64.decode(text) == Array(plain.utf8))
    }

    @Test(arguments: ["Z", "Zg=", "Zg", "Zh==", "Zm9=", "=AAA", "Z===", "Zm 9", "Zg==Zg=="])
    func `refuses damaged text`(text: String) { #expect(Base64.decode(text) == nil) }

    @Test(arguments: ["", "+/+/", "-_-_", "Zg", "Zm8", "Zm9v", "Zg==", "Z", "Zh", "Zm9v YQ"])
    func `of URLs has its own alphabet and no padding`(text: String) {
        let plain = text.replacing("-", with: "+").replacing("_", with: "/")
        let isOther = text.contains { "+/=".contains($0) }
        let padded = plain + String(repeating: "=", count: (4 - plain.count % 4) % 4)
        #expect(Base64.decode(url: text.utf8) == (isOther ? nil : Base64.decode(padded)))
    }
}
