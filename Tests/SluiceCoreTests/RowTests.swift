import SluiceCore
import TestSupport
import Testing

@Suite struct RowTests {
    @Test(arguments: seeds(20)) func `rows come back from the buffer as they went in`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var buffer = RowBuffer()
        for _ in 0..<3 {
            buffer.removeAll()
            let rows = (0..<50).map { _ in
                Row(
                    (0..<Int.random(in: 0..<8, using: &generator)).map { _ in
                        Bool.random(using: &generator) ? Value.random(using: &generator) : nil
                    })
            }
            let places = rows.map { buffer.append($0) }
            for (row, place) in zip(rows, places) { #expect(buffer.withView(place) { Row($0) } == row, "seed \(seed)") }
        }
    }

    @Test(arguments: seeds(5)) func `a copied row does not depend on its first buffer`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var (source, copy) = (RowBuffer(), RowBuffer())
        _ = copy.append(Row([.string("in front")]))
        let row = Row((0..<6).map { _ in Value.random(using: &generator) })
        let place = source.append(row)
        let copied = source.withView(place) { copy.append($0) }
        source.removeAll()
        #expect(copy.withView(copied) { Row($0) } == row, "seed \(seed)")
    }

    @Test func `cells can be set out of order`() {
        var buffer = RowBuffer()
        let place = buffer.appendAbsent(count: 3)
        buffer.set(place, 2, Value.string("last"))
        buffer.set(place, 0, Value.int(1))
        #expect(buffer.withView(place) { $0.values() } == [.int(1), nil, .string("last")])
    }

    @Test func `a property beyond the row is absent`() {
        var buffer = RowBuffer()
        let place = buffer.append(Row([.int(1)]))
        #expect(buffer.withView(place) { $0.value(5) } == nil)
    }

    @Test(arguments: seeds(10)) func `damaged container bytes are refused, not trapped on`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var refused = 0
        for _ in 0..<200 {
            var bytes = ValueCoding.encode(.list([.random(using: &generator), .random(using: &generator)]))
            bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            bytes.removeLast(Int.random(in: 0...bytes.count, using: &generator))
            if bytes.withUnsafeBufferPointer({ ValueCoding.decode($0, as: .list) }) == nil { refused += 1 }
        }
        #expect(refused > 0, "seed \(seed)")
    }

    @Test(arguments: seeds(10)) func `the order of values is total and agrees with equality`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let values = (0..<40).map { _ in Value.random(using: &generator) }
        for left in values {
            for right in values {
                let count = [left.precedes(right), right.precedes(left), left == right].filter(\.self).count
                #expect(count == 1, "seed \(seed): \(left) and \(right)")
            }
        }
        #expect(Value.set(values) == Value.set(values.reversed() + values), "seed \(seed)")
    }
}
