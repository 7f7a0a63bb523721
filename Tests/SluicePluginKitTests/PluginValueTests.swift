import SluicePluginKit
import TestSupport
import Testing

@Suite struct `JSON values of plugins` {
    private func random(_ generator: inout SplitMix64, depth: Int = 0) -> PluginValue {
        switch Int.random(in: 0..<(depth < 4 ? 7 : 5), using: &generator) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &generator))
        case 2: return .int(Int64.random(in: .min ... .max, using: &generator))
        case 3: return .double(Double.random(in: -1e12...1e12, using: &generator))
        case 4:
            let scalars = (0..<Int.random(in: 0...8, using: &generator)).compactMap { _ in
                Unicode.Scalar(UInt32.random(in: 0...0x1_F6FF, using: &generator))
            }
            return .string(String(String.UnicodeScalarView(scalars)))
        case 5: return .array((0..<Int.random(in: 0...4, using: &generator)).map { _ in random(&generator, depth: depth + 1) })
        default:
            let members = (0..<Int.random(in: 0...4, using: &generator)).map { index in
                PluginValue.Member("key \(index)\n\"", random(&generator, depth: depth + 1))
            }
            return .object(members)
        }
    }

    @Test(arguments: [UInt64.random(in: 0 ... .max), 1, 2])
    func `print and parse back the same`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<300 {
            let value = random(&generator)
            #expect(try PluginValue(parsing: value.json) == value, "seed \(seed)")
        }
    }

    @Test func `keep the line of each key`() throws {
        let value = try PluginValue(parsing: "{\n  \"a\": 1,\n\n  \"b\": {\"c\": 2}}")
        #expect(value.members?.map(\.line) == [2, 4])
        #expect(value["b"]?.members?[0].line == 4)
    }

    @Test(arguments: [
        ("", 1), ("{", 1), ("[1,]", 1), ("{\"a\":1,}", 1), ("{\"a\" 1}", 1), ("01", 1), ("1.", 1), ("tru", 1), ("\"\n\"", 1),
        ("\"\\x\"", 1),
        ("\"\\ud800\"", 1), ("[1\n,2\n;3]", 3), ("1 2", 1), ("{\"a\":1,\n\"a\":2}", 2), ("1e999", 1), ("nul", 1), ("'a'", 1), ("\"abc", 1),
    ])
    func `mistakes are named with their line`(text: String, line: Int) {
        let error = #expect(throws: PluginValueError.self) { try PluginValue(parsing: text) }
        #expect(error?.line == line, "\(error.map { "\($0)" } ?? "")")
    }

    @Test func `depth is bounded`() {
        let deep = String(repeating: "[", count: 100_000)
        #expect(throws: PluginValueError.self) { try PluginValue(parsing: deep) }
    }

    @Test func `escapes are read`() throws {
        #expect(try PluginValue(parsing: #""\u00e9\n\"\\\/\ud83d\ude00\b\f\r\t""#) == .string("é\n\"\\/😀\u{8}\u{c}\r\t"))
    }

    @Test func `numbers come in every form of extended JSON`() throws {
        #expect(
            try PluginValue(parsing: #"[1, 1.5, {"$numberInt": "2"}, {"$numberLong": "3"}, {"$numberDouble": "-Infinity"}, "4"]"#).array?
                .map(\.number) == [1, 1.5, 2, 3, -.infinity, nil])
    }

    @Test func `integers beyond 64 bits become doubles`() throws {
        #expect(try PluginValue(parsing: "9223372036854775807") == .int(.max))
        #expect(try PluginValue(parsing: "9223372036854775808") == .double(9_223_372_036_854_775_808))
    }

    @Test func `members are set in place or added`() {
        var value: PluginValue = ["a": 1, "b": 2]
        value.set("a", to: 3)
        value.set("c", to: .null)
        #expect(value.json == #"{"a":3,"b":2,"c":null}"#)
    }
}
