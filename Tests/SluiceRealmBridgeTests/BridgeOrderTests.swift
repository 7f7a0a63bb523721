import SluiceCore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceRealmBridge

@Suite struct `The order of objects in an entry` {
    private static func key(_ random: inout SplitMix64) -> Value {
        switch random.below(4) {
        case 0: .int(Int64(truncatingIfNeeded: random.next()) >> Int64(random.below(64)))
        // Texts that differ behind the bytes that are compared first.
        case 1: .string(random.pick(["", "item 0000000000000000", "item"]) + "\(random.below(300))")
        case 2: .string(.random(using: &random))
        default: .random(using: &random)
        }
    }

    @Test(arguments: seeds(20)) func `is that of their classes and of the bytes of their keys`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var objects: Set<ObjectKey> = []
        for _ in 0..<random.below(2_000) {
            objects.insert(ObjectKey(type: random.pick(["Item", "Items", "item", "É", ""]), key: Self.key(&random)))
        }
        let encoded = objects.map { (object: $0, bytes: Array($0.type.utf8) + [0] + ValueCodec.encode($0.key)) }
        let expected = encoded.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }.map(\.object)
        #expect(BridgeOrder.sorted(objects) { $0 } == expected, "seed \(seed)")
    }
}
