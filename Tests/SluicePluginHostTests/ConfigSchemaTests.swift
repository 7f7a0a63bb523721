import SluiceCore
import SluicePluginHost
import SluiceValues
import Testing

@Suite struct `What a plugin declares of its configuration` {
    private static let declared = """
        {
            "open": { "type": "int", "min": 0, "max": 23, "required": true, "help": "the hour" },
            "share": { "type": "number", "min": 0.5, "max": 1 },
            "mode": { "type": "text", "one_of": ["strict", "lenient"] },
            "quiet": { "type": "bool" },
            "words": { "type": "list", "of": { "type": "list", "of": { "type": "text" } } },
            "limits": { "type": "map", "of": { "type": "int", "max": 9 } },
            "mail": { "type": "object", "keys": { "to": { "type": "text", "required": true }, "more": { "type": "any" } } }
        }
        """

    private static func findings(_ config: String) throws -> [ConfigSchema.Finding] {
        try ConfigSchema(declared, plugin: "OfficeHours").findings(in: try JSON.parse(Array(config.utf8)))
    }

    @Test(arguments: [
        #"{ "open": 0 }"#, #"{ "open": 23, "share": 0.5 }"#, #"{ "open": 8, "share": 1 }"#,
        #"{ "open": 8, "mode": "lenient", "quiet": true }"#,
        #"{ "open": 8, "words": [] }"#, #"{ "open": 8, "words": [[], ["a", "b"]], "limits": { "a": 1, "b": -7 } }"#,
        #"{ "open": 8, "mail": { "to": "ann", "more": [null, { "x": 1 }] } }"#,
    ])
    func `lets through what it declares`(config: String) throws {
        #expect(try Self.findings(config) == [])
    }

    @Test(arguments: [
        ("{}", ErrorCode.configMissing, "'config.open' is missing.", "Add it."),
        ("null", .configMissing, "'config.open' is missing.", "Add it."),
        (#"{ "open": -1 }"#, .configInvalid, "'config.open' must be at least 0.", ""),
        (#"{ "open": 24 }"#, .configInvalid, "'config.open' must be at most 23.", ""),
        (#"{ "open": 8.5 }"#, .configInvalid, "'config.open' must be a whole number.", ""),
        (#"{ "open": 8, "share": 0.49 }"#, .configInvalid, "'config.share' must be at least 0.5.", ""),
        (#"{ "open": 8, "share": "1" }"#, .configInvalid, "'config.share' must be a number.", ""),
        (#"{ "open": 8, "mode": "strikt" }"#, .configInvalid, "'config.mode' cannot be 'strikt'.", "Did you mean 'strict'?"),
        (#"{ "open": 8, "mode": "off" }"#, .configInvalid, "'config.mode' cannot be 'off'.", "Known are strict, lenient."),
        (#"{ "open": 8, "mode": 1 }"#, .configInvalid, "'config.mode' must be a text.", ""),
        (#"{ "open": 8, "quiet": "yes" }"#, .configInvalid, "'config.quiet' must be true or false.", ""),
        (#"{ "open": 8, "words": "a" }"#, .configInvalid, "'config.words' must be a list.", ""),
        (#"{ "open": 8, "words": ["a"] }"#, .configInvalid, "'config.words[0]' must be a list.", ""),
        (#"{ "open": 8, "words": [[], ["a", 1]] }"#, .configInvalid, "'config.words[1][1]' must be a text.", ""),
        (#"{ "open": 8, "limits": { "a": 10 } }"#, .configInvalid, "'config.limits.a' must be at most 9.", ""),
        (#"{ "open": 8, "limits": [] }"#, .configInvalid, "'config.limits' must be an object.", ""),
        (#"{ "open": 8, "mail": {} }"#, .configMissing, "'config.mail.to' is missing.", "Add it."),
        (
            #"{ "open": 8, "mail": { "to": "ann", "tto": 1 } }"#, .configUnknownKey, "'tto' is not a known key of 'config.mail'.",
            "Did you mean 'to'?"
        ),
        (#"{ "open": 8, "quite": true }"#, .configUnknownKey, "'quite' is not a known key of 'config'.", "Did you mean 'quiet'?"),
        ("[]", .configInvalid, "'config' must be an object.", ""),
    ])
    func `names what is otherwise`(config: String, code: ErrorCode, message: String, fix: String) throws {
        let findings = try Self.findings(config)
        #expect(findings.map(\.message) == [message])
        #expect(findings.first?.code == code && findings.first?.fix.contains(fix) == true, "\(findings)")
    }

    @Test func `names all of it at once, with lines`() throws {
        let findings = try Self.findings("{\n  \"open\": 24,\n  \"quiet\": 1,\n  \"mail\": {\n    \"to\": 7 } }")
        #expect(findings.map(\.line) == [2, 3, 5], "\(findings)")
    }

    @Test(arguments: [
        ("no JSON", ""), ("[]", "it is not an object"), (#"{ "a": {} }"#, "a has no type out of bool, int"),
        (#"{ "a": { "type": "integer" } }"#, "a has no type out of"),
        (#"{ "a": { "type": "int", "least": 1 } }"#, #"a has an unknown member "least""#),
        (#"{ "a": { "type": "list", "of": { "type": "word" } } }"#, "a.of has no type out of"),
        (#"{ "a": { "type": "object", "keys": { "b": 1 } } }"#, "a.b has no type out of"),
        (#"{ "a": { "type": "object", "keys": [] } }"#, "a. is not an object"),
    ])
    func `is refused where it cannot be understood`(text: String, said: String) {
        let error = #expect(throws: SluiceError.self) { try ConfigSchema(text, plugin: "OfficeHours") }
        #expect(error?.code == .pluginBadAnswer && error?.message.hasPrefix("OfficeHours declares a configuration") == true, "\(text)")
        #expect(error?.message.contains(said) == true, "\(error?.message ?? "")")
    }
}
