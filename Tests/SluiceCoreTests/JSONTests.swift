import SluiceCore
import SluiceValues
import TestSupport
import Testing

@Suite struct JSONTests {
    @Test func `reads every kind of value`() throws {
        let json = try JSON.parse(#" {"a":[1,-2.5e3,true,false,null,"x"],"b":{}} "#)
        #expect(json == ["a": [1, .double(-2_500), true, false, .null, "x"], "b": .object([])])
    }

    @Test func `keeps integers exact and falls back to doubles beyond 64 bits`() throws {
        #expect(try JSON.parse("9223372036854775807") == .int(.max))
        #expect(try JSON.parse("-9223372036854775808") == .int(.min))
        #expect(try JSON.parse("9223372036854775808") == .double(9_223_372_036_854_775_808))
        #expect(try JSON.parse("1.0") == .double(1))
        guard case .double(let zero) = try JSON.parse("-0") else { Issue.record("-0 is no double"); return }
        #expect(zero.sign == .minus)
    }

    @Test func `reads escapes and surrogate pairs`() throws {
        #expect(try JSON.parse(#""\"\\\/\b\f\n\r\t\u00e9\ud83d\udeeb""#) == .string("\"\\/\u{8}\u{c}\n\r\té🛫"))
    }

    @Test(
        arguments: [
            ("", "line 1, column 1: expected a value, found the end of the text."),
            ("[1,]", "line 1, column 4: expected a value, found ']'."),
            ("{\n  \"é\" 1}", "line 2, column 7: expected ':' after the key \"é\", found '1'."),
            ("{\"a\":1,\n\"a\":2}", "line 2, column 1: the key \"a\" is given twice."),
            ("[01]", "line 1, column 3: expected ',' or ']', found '1'."),
            ("1e999", "line 1, column 1: the number 1e999 is out of range."),
            ("\"\\ud800\"", "line 1, column 8: half of a surrogate pair stands alone."),
            ("\"a\tb\"", "line 1, column 3: a string contains the control character 0x09; write it as an escape."),
            ("\"a", "line 1, column 3: expected '\"' at the end of a string, found the end of the text."),
            ("tru", "line 1, column 1: expected a value, found 't'."),
            ("1 2", "line 1, column 3: expected the end of the text, found '2'."),
            ("{a:1}", "line 1, column 2: expected a key in quotes, found 'a'."),
            ("\u{feff}1", "line 1, column 1: expected a value, found the byte 0xef."),
            ("-", "line 1, column 2: expected a digit, found the end of the text."),
        ])
    func `refuses what is not JSON and says where`(text: String, message: String) {
        #expect(throws: SluiceError(.badJSON, message)) { try JSON.parse(text) }
    }

    @Test(arguments: [[0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22]] as [[UInt8]])
    func `refuses ill-formed UTF-8`(bytes: [UInt8]) {
        #expect(throws: SluiceError(.badJSON, "line 1, column 2: a string is not well-formed UTF-8.")) { try JSON.parse(bytes) }
    }

    @Test func `bounds the depth`() throws {
        let deepest = String(repeating: "[", count: Limits.nestingDepth) + String(repeating: "]", count: Limits.nestingDepth)
        #expect(try JSON.parse(deepest).array?.count == 1)
        #expect(throws: SluiceError.self) { try JSON.parse("[" + deepest + "]") }
    }

    @Test func `finds equal keys among many`() {
        let members = (0..<50).map { "\"k\($0)\":\($0)" } + ["\"k40\":1"]
        #expect(throws: SluiceError.self) { try JSON.parse("{" + members.joined(separator: ",") + "}") }
    }

    @Test func `knows the place of each key`() throws {
        let members = try #require(try JSON.parse("{\"a\": 1,\n  \"b\": [\n],\n \"c\": 3, \"d\": 4}").members)
        #expect(members.map(\.line) == [1, 2, 4, 4])
        #expect(members.map(\.column) == [2, 3, 2, 10])
    }

    @Test(arguments: [
        (0.1, "0.1"), (1, "1.0"), (1e300, "1e+300"), (1e16, "10000000000000000.0"), (-1e18, "-1000000000000000000.0"), (-0.0, "-0.0"),
        (.nan, "null"), (.infinity, "null"),
    ])
    func `prints doubles in their shortest form and never NaN`(value: Double, text: String) {
        #expect(JSON.double(value).text == text)
    }

    @Test(arguments: seeds(20)) func `what is printed reads back`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<50 {
            let json = ExtendedJSON.json(Value.random(using: &generator))
            #expect(try JSON.parse(json.utf8) == json, "seed \(seed)")
        }
    }

    @Test(arguments: seeds(20)) func `random bytes never trap`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let alphabet = Array(#"{}[]",:\u0123eE+-.tfn \#("\n")é"#.utf8)
        var refused = 0
        for _ in 0..<300 {
            let bytes = (0..<Int.random(in: 0..<30, using: &generator)).map { _ in alphabet.randomElement(using: &generator) ?? 0 }
            do { _ = try JSON.parse(bytes) } catch { refused += error.code == .badJSON ? 1 : 0 }
        }
        #expect(refused > 0, "seed \(seed)")
    }
}
