import SluiceCore
import SluiceValues
import TestSupport
import Testing

/// Positions in the WAL as texts.
@Suite struct `Positions as texts` {
    @Test(arguments: seeds(10)) func `positions read back and keep their order`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            // Of every magnitude.
            let (left, right) = (random.next() >> random.below(64), random.next() >> random.below(64))
            let (one, other) = (LSN(rawValue: left), LSN(rawValue: right))
            #expect(LSN(one.description) == one && LSN(one.description.lowercased()) == one, "seed \(seed): \(one)")
            #expect((one < other) == (left < right) && (one == other) == (left == right), "seed \(seed): \(one) \(other)")
            let ordinals = (UInt32(random.below(3)), UInt32(random.below(3)))
            let places = (Position(lsn: one, ordinal: ordinals.0), Position(lsn: one, ordinal: ordinals.1))
            #expect((places.0 < places.1) == (ordinals.0 < ordinals.1), "seed \(seed): \(places)")
            #expect((Position(lsn: one, ordinal: .max) < Position(lsn: other, ordinal: 0)) == (left < right), "seed \(seed)")
        }
    }
}

/// The snapshot of PostgreSQL against a model that counts transactions with 64 bits.
@Suite struct `A snapshot's transactions` {
    @Test(arguments: seeds(10)) func `are seen as by their whole numbers, wherever the 32-bit counter stands`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<50 {
            // Near a turn of the counter, or anywhere.
            let base: UInt64 = random.chance(50) ? UInt64(1 + random.below(9)) << 32 : (1 << 33) + random.next() >> 24
            let xmax = base + UInt64(random.below(50))
            let xmin = xmax - UInt64(random.below(40))
            let running = (xmin..<xmax).filter { _ in random.chance(30) }
            let snapshot = TransactionSnapshot(xmin: xmin, xmax: xmax, running: running)
            let text = "\(xmin):\(xmax):\(running.map { "\($0)" }.joined(separator: ","))"
            #expect(TransactionSnapshot(text) == snapshot, "seed \(seed): \(text)")
            for _ in 0..<60 {
                let whole = random.chance(80) ? base - 30 + UInt64(random.below(100)) : xmax - UInt64(random.below(1 << 30))
                let isSeen = whole < xmax && !running.contains(whole)
                #expect(snapshot.sees(xid: UInt32(truncatingIfNeeded: whole)) == isSeen, "seed \(seed): \(whole) in \(text)")
            }
        }
    }
}

/// Distances of words, which error messages choose suggestions by.
@Suite struct `A distance of words` {
    private static func word(_ random: inout SplitMix64) -> String {
        String((0..<random.below(7)).map { _ in random.pick(["a", "b", "c", "é"] as [Character]) })
    }

    @Test(arguments: seeds(10)) func `is symmetric, none for one word alone, and bounded by the lengths`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<300 {
            let (left, right) = (Self.word(&random), Self.word(&random))
            let distance = EditDistance.between(left, right)
            #expect(distance == EditDistance.between(right, left), "seed \(seed): \(left) \(right)")
            #expect((distance == 0) == (left == right), "seed \(seed): \(left) \(right)")
            let bounds = abs(left.count - right.count)...max(left.count, right.count)
            #expect(bounds.contains(distance), "seed \(seed): \(distance) between \(left) and \(right)")
        }
    }

    @Test(arguments: seeds(10)) func `grows by one with one edit at most`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<300 {
            let left = Self.word(&random)
            var edited = Array(left)
            switch random.below(4) {
            case 0: edited.insert("x", at: random.below(edited.count + 1))
            case 1 where !edited.isEmpty: edited.remove(at: random.below(edited.count))
            case 2 where !edited.isEmpty: edited[random.below(edited.count)] = "x"
            case 3 where edited.count > 1: edited.swapAt(0, 1)
            default: continue
            }
            #expect(EditDistance.between(left, String(edited)) <= 1, "seed \(seed): \(left) \(String(edited))")
        }
    }

    @Test(arguments: seeds(10)) func `chooses the nearest candidate, and none that is too far`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let word = Self.word(&random) + "a"
            let candidates = (0..<6).map { _ in Self.word(&random) + "b" }
            let near = candidates.map { (EditDistance.between(word, $0), $0) }
                .filter { $0.0 <= max(1, word.count / 3) && $0.0 < $0.1.count }.min { $0 < $1 }
            #expect(Suggestion.nearest(to: word, in: candidates) == near?.1, "seed \(seed): \(word) in \(candidates)")
        }
    }
}

/// The fingerprint by which merging knows that SQL has changed a value.
@Suite struct `A value's hash` {
    @Test(arguments: seeds(10)) func `is one for spellings that PostgreSQL does not keep apart`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<100 {
            let digits = Int64(random.next() >> 20)
            let zeros = random.below(6)
            let (plain, padded) = (Decimal128("\(digits)"), Decimal128("\(digits).0" + String(repeating: "0", count: zeros)))
            #expect(plain.map { ValueHash(.decimal($0)) } == padded.map { ValueHash(.decimal($0)) }, "seed \(seed): \(digits)")
            let float = Float(random.below(1_000_000)) / 64
            #expect(ValueHash(.float(float)) == ValueHash(.double(Double("\(float)") ?? .nan)), "seed \(seed): \(float)")
            let time = Timestamp.random(using: &random)
            let whole = Timestamp(seconds: time.seconds, nanoseconds: time.nanoseconds / 1_000 * 1_000)
            #expect(ValueHash(.timestamp(time)) == ValueHash(.timestamp(whole)), "seed \(seed): \(time)")
        }
        #expect(ValueHash(.double(0)) == ValueHash(.double(-0.0)) && ValueHash(.double(.nan)) == ValueHash(.double(-.nan)))
    }

    @Test(arguments: seeds(10)) func `differs for values that differ`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let number = Int64(random.next() >> 8)
            let values: [Value] = [
                .int(number), .int(number + 1), .string("\(number)"), .binary(Array("\(number)".utf8)), .list([.int(number)]),
                .list([.int(number), .null]), .list([.list([.int(number)])]), .dictionary(["k": .int(number)]),
                .dictionary(["l": .int(number)]), .link(type: "T", key: .int(number)), .link(type: "U", key: .int(number)), .null,
                .bool(true), .bool(false), .uuid(UUIDBytes(high: 1, low: UInt64(number))), .objectId(.init(high: UInt64(number), low: 1)),
            ]
            #expect(Set(values.map { ValueHash($0) }).count == values.count, "seed \(seed): \(number)")
        }
    }

    /// Stored beside the clocks of every property: a release must not change them.
    @Test(
        arguments: [
            (.null, 0xAF63_BD4C_8601_B7DF), (.bool(true), 0x082F_2307_B4E8_8E77), (.int(7), 0xAFE8_D7DA_2CF8_3782),
            (.string("ab"), 0xA67C_6365_EF1D_0654),
        ] as [(Value, UInt64)])
    func `is FNV-1a of a tag and the content`(value: Value, hash: UInt64) {
        #expect(ValueHash(value).rawValue == hash)
    }
}
