import SluiceCore
import SluicePipeline
import SluiceValues
import TestSupport
import Testing

@Suite struct `A body that is cut into records` {
    private static func cut(_ pieces: [[UInt8]], _ form: RecordCutter.Form, most: Int = 1_000) throws -> [String] {
        var cutter = RecordCutter(form, recordBytes: most)
        var records: [RecordCutter.Record] = []
        for piece in pieces { try cutter.feed(piece, into: &records) }
        try cutter.finish(into: &records)
        return records.map { "\($0.number):\($0.bytes.map { String(decoding: $0, as: UTF8.self) } ?? "too long")" }
    }

    private static func cut(_ text: String, _ form: RecordCutter.Form, most: Int = 1_000) throws -> [String] {
        let whole = try cut([Array(text.utf8)], form, most: most)
        // Byte by byte gives the same.
        #expect(try cut(text.utf8.map { [$0] }, form, most: most) == whole)
        return whole
    }

    @Test func `gives the lines of NDJSON with their numbers, and passes over empty ones`() throws {
        #expect(try Self.cut("{}\n\n{\"a\":1}\r\n \t\nx", .lines) == ["1:{}", "3:{\"a\":1}\r", "5:x"])
        #expect(try Self.cut("", .lines).isEmpty)
        #expect(try Self.cut("\n\n", .lines).isEmpty)
    }

    @Test func `gives the elements of an array, whatever is inside of them`() throws {
        #expect(
            try Self.cut(" [ {\"a\": [1, {\"b\": \"],}\\\"[\"}]} ,2,\n{}]\n", .json).map { $0.filter { $0 != " " && $0 != "\n" } } == [
                "1:{\"a\":[1,{\"b\":\"],}\\\"[\"}]}", "2:2", "3:{}",
            ])
        #expect(try Self.cut("[]", .json).isEmpty)
        #expect(try Self.cut(" [ ] ", .json).isEmpty)
        #expect(try Self.cut("[1,]", .json) == ["1:1", "2:"])
        #expect(try Self.cut("[,1]", .json) == ["1:", "2:1"])
    }

    /// Bytes that differ from a newline in one bit, beside it, are the hard ones.
    @Test func `ends its lines at newlines only`() throws {
        var random = SplitMix64()
        print("seed \(random.seed)")
        for _ in 0..<300 {
            let bytes = (0..<random.below(60)).map { _ in random.pick([0x0a, 0x0b, 0x8a, 0x09, 0x0e, 0x41, 0x4a] as [UInt8]) }
            let lines = bytes.split(separator: 0x0a, omittingEmptySubsequences: false).dropLast(bytes.last == 0x0a ? 1 : 0)
            let expected = lines.enumerated().filter { !$1.allSatisfy { $0 == 0x09 } }.map { (number: $0 + 1, bytes: Array($1)) }
            var (cutter, records) = (RecordCutter(.lines), [RecordCutter.Record]())
            try cutter.feed(bytes, into: &records)
            try cutter.finish(into: &records)
            #expect(records.map(\.number) == expected.map(\.number), "seed \(random.seed): \(bytes)")
            #expect(records.map(\.bytes) == expected.map(\.bytes), "seed \(random.seed): \(bytes)")
        }
    }

    @Test func `may be one value`() throws {
        #expect(try Self.cut(" {\"a\": 1}\n", .json) == ["1:{\"a\": 1}\n"])
        #expect(try Self.cut("nonsense", .json) == ["1:nonsense"])
    }

    @Test func `names records that are too long and goes on behind them`() throws {
        #expect(try Self.cut("12345\n123456\n1\n", .lines, most: 5) == ["1:12345", "2:too long", "3:1"])
        #expect(try Self.cut("[12345,\"],\\\"3456\",1]", .json, most: 5) == ["1:12345", "2:too long", "3:1"])
        #expect(try Self.cut("{\"a\": 1}", .json, most: 5) == ["1:too long"])
    }

    @Test(arguments: ["", "  ", "[", "[1", "[1,", "[{]", "[1] x", "[1}]", "[\"]"]) func `that is no array says so`(text: String) throws {
        for pieces in [[Array(text.utf8)], text.utf8.map { [$0] }] {
            let error = #expect(throws: SluiceError.self) { try Self.cut(pieces, .json) }
            #expect(error?.code == .badJSON)
        }
    }

    /// Random objects, written as both forms, cut at random places.
    @Test func `comes back whole however it is cut`() throws {
        var random = SplitMix64()
        print("seed \(random.seed)")
        for _ in 0..<300 {
            let objects = (0..<Int(random.next() % 20)).map { _ in Self.value(&random, depth: 0) }
            let array = JSON.array(objects).text
            let lines = objects.map(\.text).joined(separator: "\n")
            for (text, form) in [(array, RecordCutter.Form.json), (lines, .lines)] {
                var cutter = RecordCutter(form)
                var records: [RecordCutter.Record] = []
                var rest = Array(text.utf8)[...]
                while !rest.isEmpty {
                    let piece = rest.prefix(1 + Int(random.next() % 40))
                    try cutter.feed(piece, into: &records)
                    rest = rest.dropFirst(piece.count)
                }
                try cutter.finish(into: &records)
                #expect(records.map(\.number) == Array(1..<(objects.count + 1)))
                #expect(try records.map { try JSON.parse($0.bytes ?? []) } == objects, "seed \(random.seed): \(text)")
            }
        }
    }

    private static func value(_ random: inout SplitMix64, depth: Int) -> JSON {
        let letters = Array("ab\"\\[]{},: \u{1}é🛩")
        let text = { (random: inout SplitMix64) in
            String((0..<Int(random.next() % 6)).map { _ in letters.randomElement(using: &random) ?? "a" })
        }
        switch random.next() % (depth < 3 ? 6 : 3) {
        case 0: return .int(Int64(bitPattern: random.next()))
        case 1: return .string(text(&random))
        case 2: return .bool(true)
        case 3: return .array((0..<Int(random.next() % 4)).map { _ in value(&random, depth: depth + 1) })
        default:
            let keys = Set((0..<Int(random.next() % 4)).map { _ in text(&random) }).sorted()
            return .object(keys.map { JSON.Member($0, value(&random, depth: depth + 1)) })
        }
    }
}
