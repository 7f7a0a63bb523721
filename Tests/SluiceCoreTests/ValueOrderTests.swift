import SluiceCore
import TestSupport
import Testing

@Suite struct `The order of values` {
    @Test(arguments: seeds(10)) func `is strict, total and agrees with equality`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let values = (0..<60).map { _ in Value.random(using: &generator) }
        for left in values {
            #expect(!left.precedes(left), "seed \(seed): \(left)")
            for right in values {
                let ways = [left.precedes(right), right.precedes(left), left == right].count { $0 }
                #expect(ways == 1, "seed \(seed): \(left), \(right)")
            }
        }
        let sorted = values.sorted { $0.precedes($1) }
        for (index, value) in sorted.enumerated() {
            #expect(sorted[(index + 1)...].allSatisfy { !$0.precedes(value) }, "seed \(seed): \(value)")
        }
    }

    @Test(arguments: seeds(5)) func `gives equal sets one form, however they were built`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<50 {
            let elements = (0..<generator.below(8)).map { _ in Value.random(using: &generator) }
            let set = Value.set(elements)
            #expect(Value.set((elements + elements).shuffled(using: &generator)) == set, "seed \(seed)")
            guard case .list(let kept) = set else {
                Issue.record("seed \(seed): \(set) is no list")
                continue
            }
            #expect(Set(kept) == Set(elements) && kept.count == Set(elements).count, "seed \(seed)")
        }
    }

    @Test func `has numbers by size, text by bytes, and a prefix first`() {
        let ascending: [[Value]] = [
            [.double(-.infinity), .double(-1), .double(-0.0), .double(0), .double(1e-300), .double(2), .double(.infinity)],
            [.int(.min), .int(-1), .int(0), .int(.max)],
            [.string(""), .string("Z"), .string("a"), .string("ab"), .string("é"), .string("水")],
            [.binary([]), .binary([0]), .binary([0, 255]), .binary([1])],
            [.list([]), .list([.int(1)]), .list([.int(1), .int(0)]), .list([.int(2)])],
            [.bool(false), .bool(true)],
        ]
        for values in ascending {
            for (index, value) in values.enumerated() {
                #expect(values[(index + 1)...].allSatisfy { value.precedes($0) }, "\(value)")
            }
        }
    }
}

@Suite struct `The bound of a row` {
    @Test func `is half of what a topic takes, without the frame, and never more than a row's limit`() {
        #expect(RowBound().bytes == Limits.rowBytes)
        #expect(RowBound(recordBytes: RowBound.neededRecordBytes).bytes == Limits.rowBytes)
        #expect(RowBound(recordBytes: RowBound.neededRecordBytes - 2).bytes == Limits.rowBytes - 1)
        #expect(RowBound(recordBytes: .max).bytes == Limits.rowBytes)
        #expect(RowBound(recordBytes: Limits.recordFrameBytes + 2_000).bytes == 1_000)
        #expect(RowBound(recordBytes: Limits.recordFrameBytes).bytes == 0 && RowBound(recordBytes: 0).bytes == 0)
    }

    @Test(arguments: [(9 << 20, "9 MiB"), (480 << 10, "480 KiB"), ((1 << 20) + 1_024, "1025 KiB"), (100, "100 bytes"), (0, "0 bytes")])
    func `is written in the largest unit that fits`(bytes: Int, text: String) {
        #expect(RowBound(recordBytes: 2 * bytes + Limits.recordFrameBytes).text == text)
    }

    @Test(arguments: seeds(5)) func `counts a row alike in both forms, and no less with more in it`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<50 {
            var buffer = RowBuffer()
            let row = Row((0..<5).map { _ in generator.chance(80) ? Value.random(using: &generator) : nil })
            let place = buffer.append(row)
            let more = Row(row.values + [Value.random(using: &generator)])
            #expect(more.recordBytes > row.recordBytes, "seed \(seed)")
            for bytes in [row.recordBytes - 1, row.recordBytes] where bytes >= 0 {
                let bound = RowBound(recordBytes: 2 * bytes + Limits.recordFrameBytes)
                #expect(row.isLarger(than: bound) == (row.recordBytes > bytes), "seed \(seed)")
                #expect(buffer.isLarger(place, than: bound) == row.isLarger(than: bound), "seed \(seed)")
            }
        }
    }
}
