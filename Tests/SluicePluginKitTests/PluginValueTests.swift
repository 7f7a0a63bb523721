import SluicePluginKit
import Testing

@Suite struct `JSON values of plugins` {
    @Test func `are the gateway's own and print what JSON lacks as extended JSON`() throws {
        #expect(try PluginValue(parsing: "-0").json == "-0.0")
        #expect(PluginValue.array([.double(.nan), 1.5]).json == #"[{"$numberDouble":"NaN"},1.5]"#)
        #expect(PluginValue.maximumDepth == 100)
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
        let error = #expect(throws: JSONError.self) { try PluginValue(parsing: text) }
        #expect(error?.line == line, "\(error.map { "\($0)" } ?? "")")
    }

    @Test func `depth is bounded`() {
        let deep = String(repeating: "[", count: 100_000)
        #expect(throws: JSONError.self) { try PluginValue(parsing: deep) }
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
