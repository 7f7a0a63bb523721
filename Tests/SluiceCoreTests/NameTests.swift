import SluiceCore
import SluiceValues
import TestSupport
import Testing

@Suite struct `Names that clients bring` {
    @Test(arguments: ["Todo", "_id", "größe", "数量", "имя", "नाम_हिन्दी", "order2", "O", "_", "Ελλάς"])
    func `may be those of models in any script`(name: String) throws {
        try SchemaName.check([ObjectType(name: name, properties: [Property(id: 1, name: name, type: .int)])], beyond: Schema([]))
    }

    @Test(arguments: [
        "", "1a", "a b", "a-b", "a.b", "a\"", "\"\u{301}", "a\"\u{301}; DROP TABLE t; --", "a'", "a\\", "a\0", "a\n", "e\u{301}",
        "\u{301}a", "_\u{301}",
        "1\u{301}", "\u{212A}im", "a\u{200D}b", "a\u{202E}b", "a\u{FE0F}", "👩", "a;b", "a$", "\u{E000}", "٣a",
        String(repeating: "a", count: 64),
    ])
    func `are refused with a named error otherwise`(name: String) {
        for (type, property) in [(name, "a"), ("A", name)] {
            let error = #expect(throws: SluiceError.self) {
                try SchemaName.check(
                    [ObjectType(name: type, properties: [Property(id: 1, name: property, type: .int)])], beyond: Schema([]))
            }
            #expect(error?.code == .invalidName)
            #expect(error?.message.utf8.allSatisfy { (32..<127).contains($0) } == true, "\(error?.message ?? "")")
        }
    }

    @Test func `have Realm's bounds in bytes, and the operator's own names are not looked at`() throws {
        func check(_ name: String, _ property: String, beyond: Schema = Schema([])) throws {
            try SchemaName.check([ObjectType(name: name, properties: [Property(id: 1, name: property, type: .int)])], beyond: beyond)
        }
        try check(String(repeating: "a", count: 57), String(repeating: "é", count: 31))
        #expect(throws: SluiceError.self) { try check(String(repeating: "a", count: 58), "b") }
        #expect(throws: SluiceError.self) { try check("A", String(repeating: "é", count: 32)) }
        let known = Schema([ObjectType(name: "my-class", properties: [Property(id: 1, name: "my field", type: .int)])])
        try check("my-class", "my field", beyond: known)
        #expect(throws: SluiceError.self) { try check("my-class", "other field", beyond: known) }
    }
}

@Suite struct `An e-mail address` {
    @Test(arguments: [
        ("Kim@Corp.example", "kim@corp.example"), ("\u{212A}im@corp.example", "kim@corp.example"), ("KIM@CORP.EXAMPLE", "kim@corp.example"),
        ("Jose\u{301}@x", "josé@x"), ("JOSÉ@x", "josé@x"), ("\u{130}@x", "i\u{307}@x"), ("J\u{30C}@x", "\u{1F0}@x"), ("\u{212B}@x", "å@x"),
    ])
    func `has one form`(written: String, form: String) throws {
        #expect(Array(try EmailAddress(written).text.utf8) == Array(form.utf8))
    }

    @Test(arguments: ["", "a b@x", "a\0@x", "\0", "a\u{7}@x", "a\u{7F}@x", "a\u{85}@x", "a\u{200B}@x", "a\u{202E}@x", "a\u{A0}@x", "a\n@x"])
    func `is refused with control characters, blanks and what nobody sees`(written: String) {
        let error = #expect(throws: SluiceError.self) { try EmailAddress(written) }
        #expect(error?.code == .invalidEmail)
        #expect(error?.message.utf8.allSatisfy { (32..<127).contains($0) } == true)
    }

    @Test(arguments: seeds(3)) func `keeps its form, whatever its case and code points`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            var text = "a"
            for _ in 0..<(1 + random.below(12)) {
                guard let scalar = Unicode.Scalar(UInt32(random.below(0x2FFF) + 0x21)) else { continue }
                text.unicodeScalars.append(random.chance(20) ? "\u{301}" : scalar)
            }
            guard let form = try? EmailAddress(text).text else { continue }
            #expect(Array(try EmailAddress(form).text.utf8) == Array(form.utf8), "seed \(seed): \(text)")
            let upper = text.unicodeScalars.map { $0.isASCII ? $0.properties.uppercaseMapping : String($0) }.joined()
            #expect(try EmailAddress(upper).text.hasSameBytes(as: form), "seed \(seed): \(text)")
        }
    }
}

@Suite struct `JSON's texts` {
    @Test func `are equal when their bytes are`() throws {
        let (one, two): (JSON, JSON) = (.string("\u{212A}im"), .string("Kim"))
        #expect(one != two && Set([one, two]).count == 2)
        let object = try JSON.parse(Array("{\"é\": 1, \"e\u{301}\": 2}".utf8))
        #expect(object["é"] == .int(1) && object["e\u{301}"] == .int(2))
        #expect(JSON.object([.init("é", 1)]) != JSON.object([.init("e\u{301}", 1)]))
    }
}
