import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluicePluginHost
import SluiceValues
import Testing

@Suite struct `The functions of an app directory` {
    private static let settings = """
        {
            "secrets": { "hook": { "environment": "HOOK" } },
            "functions": {
                "*": { "url": "https://hooks.example/all", "secret": "hook" },
                "sum": {
                    "url": "http://10.0.0.1:8080/sum", "secret": "hook", "timeout_ms": 500, "answer_bytes": 1000, "idempotent": true,
                    "allow_private_addresses": true
                }
            }
        }
        """

    private static func files(_ list: String, _ settings: String? = settings) -> [String: String] {
        var files = AppFixture.adding("functions/config.json", list)
        files["sluice.json"] = settings
        return files
    }

    @Test func `are those of the list, with the services of the operator's file`() throws {
        let app = try AppDirectory.read(
            files: Self.files(
                """
                [
                    { "name": "sum", "private": false, "can_evaluate": { "%%user.type": "normal" }, "disable_arg_logs": true },
                    { "name": "admin", "private": true, "run_as_system": true, "id": "5" },
                    { "name": "other", "run_as_user_id": "u1" }
                ]
                """))
        var sum = WebhookTarget(url: "http://10.0.0.1:8080/sum", secret: "hook")
        (sum.milliseconds, sum.answerBytes, sum.isIdempotent, sum.allowsPrivateAddresses) = (500, 1_000, true, true)
        let all = WebhookTarget(url: "https://hooks.example/all", secret: "hook")
        #expect(
            app.functions == [
                AppFunction("sum", condition: try Condition(["%%user.type": "normal"]), target: .webhook(sum)),
                AppFunction("admin", isPrivate: true, identity: .system, target: .webhook(all)),
                AppFunction("other", identity: .user(id: "u1"), target: .webhook(all)),
            ])
        #expect(!app.notes.contains { $0.file.hasPrefix("functions/") }, "\(app.notes)")
    }

    @Test func `have a file each in older exports`() throws {
        var files = AppFixture.removing("functions/config.json")
        files["functions/b/config.json"] = #"{ "id": "1", "name": "b", "private": true, "can_evaluate": {} }"#
        files["functions/a/config.json"] = #"{ "name": "a" }"#
        files["functions/a/source.js"] = "exports = () => 1"
        // Of another program, and of a package that a function uses.
        files["functions/lib/config.json"] = "{}"
        files["functions/node_modules/x/config.json"] = "{"
        let app = try AppDirectory.read(files: files)
        #expect(app.functions == [AppFunction("a"), AppFunction("b", isPrivate: true)])
        let notes = app.notes.filter { $0.file.hasPrefix("functions/") }
        #expect(notes.count == 1 && notes[0].message == "No service runs the functions a, b: calls of them fail.", "\(notes)")
        #expect(notes.first?.fix.contains("sluice.json") == true)
    }

    @Test(
        arguments: [
            (#"{ "authFunctionName": "sum" }"#, "sum", nil), (#"{ "authFunctionName": "other" }"#, nil, "No service runs 'other'"),
            ("{}", nil, "'config.authFunctionName' is missing"),
            (#"{ "authFunctionName": "" }"#, nil, "'config.authFunctionName' is missing"),
        ] as [(String, String?, String?)])
    func `log users in if a service runs the one of the provider`(config: String, function: String?, note: String?) throws {
        var files = Self.files(#"[{ "name": "sum" }]"#)
        files["auth/providers.json"] = """
            {
                "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false },
                "custom-function": { "name": "custom-function", "type": "custom-function", "disabled": false, "config": \(config) }
            }
            """
        let app = try AppDirectory.read(files: files)
        #expect(app.isEnabled(provider: "custom-function") == (function != nil))
        #expect(app.users.providers.first { $0.type == "custom-function" }?.function == function)
        let notes = app.notes.filter { $0.file == "auth/providers.json" }
        #expect(notes.count == (note == nil ? 0 : 1), "\(notes)")
        if let note { #expect(notes.first?.message.contains(note) == true, "\(notes)") }
    }

    @Test func `without a service are named in one note`() throws {
        let list = (1...25).map { #"{ "name": "f\#($0)" }"# }.joined(separator: ",")
        let notes = try AppDirectory.read(files: Self.files("[\(list)]", nil)).notes.filter { $0.file == "functions/config.json" }
        #expect(notes.count == 1)
        #expect(notes.first?.message.contains("f1, f2, ") == true && notes.first?.message.contains("f20 and 5 more") == true, "\(notes)")
    }

    @Test(arguments: [
        #"{ "%%user.id": { "%function": { "name": "f" } } }"#, #"{ "%%request.remoteIPAddress": "10.0.0.1" }"#,
        #"{ "owner": "%%user.id" }"#,
    ])
    func `with a condition that is not understood are closed to users, with a note`(condition: String) throws {
        let app = try AppDirectory.read(files: Self.files("[\n{ \"name\": \"sum\",\n\"can_evaluate\": \(condition) }]"))
        #expect(app.functions.first?.condition == .constant(false))
        let note = app.notes.first { $0.file == "functions/config.json" }
        #expect(note?.line == 3 && note?.message.contains("users cannot call the function 'sum'") == true, "\(app.notes)")
    }

    @Test(arguments: [
        (#""summ": { "url": "https://a.example", "secret": "hook" }"#, "The app has no function 'summ'.", "'sum'"),
        (#""sum": { "url": "https://a.example", "secret": "hok" }"#, "There is no secret 'hok'.", "environment"),
        (#""sum": { "url": "http://a.example", "secret": "hook" }"#, "must start with https://", "allow_private_addresses"),
        (#""sum": { "url": "ftp://a.example", "secret": "hook", "allow_private_addresses": true }"#, "must start with https://", ""),
        (#""sum": { "url": "https://a.example" }"#, "'secret' is missing", ""), (#""sum": { "secret": "hook" }"#, "'url' is missing", ""),
        (#""sum": { "url": "https://a.example", "secret": "hook", "timeout": 1 }"#, "'timeout' is not a known key", "timeout_ms"),
        (#""sum": { "url": "https://a.example", "secret": "hook", "timeout_ms": 99 }"#, "99 is out of range", "100 to 300000"),
        (#""sum": { "url": "https://a.example", "secret": "hook", "answer_bytes": 99999999 }"#, "out of range", "1 to 16777216"),
    ])
    func `with a mistake in the operator's file are refused, with place and fix`(entry: String, message: String, fix: String) {
        let settings = "{ \"secrets\": { \"hook\": { \"environment\": \"HOOK\" } },\n\"functions\": {\n\(entry) } }"
        let problems = AppFixture.problems(of: Self.files(#"[{ "name": "sum" }]"#, settings))
        #expect(problems.count == 1, "\(problems)")
        #expect(problems.first?.file == "sluice.json" && problems.first?.line == 3, "\(problems)")
        #expect(problems.first?.message.contains(message) == true && problems.first?.fix.contains(fix) == true, "\(problems)")
    }

    // MARK: Plugins

    private static func plugin(_ entry: String) -> String {
        "{ \"secrets\": { \"hook\": { \"environment\": \"HOOK\" } },\n\"functions\": {\n\"sum\": {\(entry) } } }"
    }

    @Test func `have a plugin in the place of a URL, with its bounds`() throws {
        let settings = """
            { "functions": {
                "sum": { "url": "plugin:Desk", "timeout_ms": 60000, "answer_bytes": 10 },
                "*": { "url": "plugin:Other" }
            } }
            """
        var files = Self.files(#"[{ "name": "sum" }, { "name": "enter" }, { "name": "more" }]"#, settings)
        files["auth/providers.json"] = """
            {
                "custom-function": {
                    "name": "custom-function", "type": "custom-function", "disabled": false, "config": { "authFunctionName": "enter" }
                }
            }
            """
        let app = try AppDirectory.read(files: files)
        var desk = PluginTarget("Desk")
        (desk.milliseconds, desk.answerBytes) = (60_000, 10)
        let targets = app.functions.map(\.target)
        #expect(targets == [.plugin(desk), .plugin(PluginTarget("Other")), .plugin(PluginTarget("Other"))])
        #expect(app.isEnabled(provider: "custom-function") && !app.notes.contains { $0.file.hasPrefix("functions/") })
        #expect(app.functionPlugins.map(\.plugin) == ["Desk", "Other", "Other"])
        #expect(app.functionPlugins.map(\.hook) == [.callFunction, .authenticate, .callFunction])
        #expect(app.functionPlugins.map(\.line) == [2, 3, 3] && app.functionPlugins.allSatisfy { $0.file == "sluice.json" })
    }

    @Test(arguments: [
        (#""url": "plugin:Desk", "secret": "hook""#, "'secret' has no meaning for a function with a plugin.", "Remove it"),
        (#""url": "plugin:Desk", "idempotent": true"#, "'idempotent' has no meaning", "answer_bytes, timeout_ms, url"),
        (#""url": "plugin:Desk", "allow_private_addresses": false"#, "'allow_private_addresses' has no meaning", "write its URL"),
        (#""url": "plugin:Desk", "time_ms": 5"#, "'time_ms' is not a known key", "timeout_ms"),
        (#""url": "plugin:Desk", "timeout_ms": 60001"#, "60001 is out of range", "100 to 60000"),
        (#""url": "plugin:""#, "name of the plugin is missing", "plugin:NAME"),
        (#""url": "Plugin:Desk", "secret": "hook""#, "must start with https://", "plugin:NAME"),
    ])
    func `with a plugin and a mistake are refused, with place and fix`(entry: String, message: String, fix: String) {
        let problems = AppFixture.problems(of: Self.files(#"[{ "name": "sum" }]"#, Self.plugin(entry)))
        #expect(problems.count == 1, "\(problems)")
        #expect(problems.first?.file == "sluice.json" && problems.first?.line == 3, "\(problems)")
        #expect(problems.first?.message.contains(message) == true && problems.first?.fix.contains(fix) == true, "\(problems)")
    }

    @Test func `need a plugin that is loaded and has the hook`() throws {
        let files = Self.files(#"[{ "name": "sum" }]"#, Self.plugin(#""url": "plugin:Desk""#))
        let function = try #require(try AppDirectory.read(files: files).functionPlugins.first)
        func info(_ name: String, _ hooks: Set<Hook>) -> PluginInfo { PluginInfo(name: name, version: "1", hooks: hooks) }
        #expect(function.problem(with: [info("Desk", [.callFunction])]) == nil)
        let absent = try #require(function.problem(with: [info("Rules", [.openSession]), info("Desks", [.callFunction])]))
        #expect(absent.code == .configMissing && absent.place.hasPrefix("sluice.json:3:"))
        #expect(absent.message.contains("no plugin 'Desk' for the function 'sum'. The app has 'Rules', 'Desks'."), "\(absent)")
        #expect(absent.fix == "Did you mean 'Desks'?")
        let bare = try #require(function.problem(with: [info("Desk", [.authenticate]), info("Other", [.callFunction])]))
        #expect(bare.code == .configInvalid && bare.message.contains("has no hook call_function. With the hook the app has 'Other'."))
        let none = try #require(function.problem(with: []))
        #expect(none.message.contains("The app has no plugin.") && none.fix.contains("plugins.json"))
    }

    // MARK: Rules

    private static let rules = "data_sources/mongodb-atlas/shop/orders/rules.json"

    private static func role(_ condition: String) -> String {
        """
        {
            "roles": [{
                "name": "chief",
                "apply_when": \(condition),
                "document_filters": { "read": true, "write": true }, "read": true, "write": true
            }]
        }
        """
    }

    @Test func `are called by rules, each call once`() throws {
        var files = Self.files(#"[{ "name": "sum", "private": true }]"#)
        files[Self.rules] = Self.role(
            """
            {
                "$or": [
                    { "%%true": { "%function": { "name": "sum", "arguments": ["%%user.id", 1] } } },
                    { "%function": { "name": "sum", "arguments": ["%%user.id", 1] } }, { "%function": { "name": "sum" } }
                ]
            }
            """)
        let app = try AppDirectory.read(files: files)
        #expect(app.ruleCalls == [RuleCall("sum", arguments: ["%%user.id", 1]), RuleCall("sum")])
        #expect(!app.notes.contains { $0.file == Self.rules }, "\(app.notes)")
    }

    @Test(arguments: [
        (#"{ "%function": { "name": "summ" } }"#, "the app has no such function", "'sum'"),
        (#"{ "%function": { "name": "idle" } }"#, "no service runs it", "sluice.json"),
        (#"{ "%function": { "name": "sum", "arguments": ["%%root.owner"] } }"#, "'%%root.owner' has no value", "%%user"),
    ])
    func `that rules cannot call are noted, with file and line`(condition: String, message: String, fix: String) throws {
        var files = Self.files(#"[{ "name": "sum" }, { "name": "idle" }]"#, Self.settings.replacing(#""*": {"#, with: #""none": {"#))
        files["functions/config.json"] = #"[{ "name": "sum" }, { "name": "idle" }, { "name": "none" }]"#
        files[Self.rules] = Self.role(condition)
        let app = try AppDirectory.read(files: files)
        #expect(app.ruleCalls.isEmpty)
        let notes = app.notes.filter { $0.file == Self.rules }
        #expect(notes.count == 1 && notes[0].line == 4, "\(notes)")
        #expect(notes.first?.message.contains(message) == true && notes.first?.fix.contains(fix) == true, "\(notes)")
    }

    @Test func `are called by rules in a bounded number of ways`() throws {
        var files = Self.files(#"[{ "name": "sum" }]"#)
        let calls = (0...RuleCall.most).map { #"{ "%function": { "name": "sum", "arguments": [\#($0)] } }"# }
        files[Self.rules] = Self.role(#"{ "$or": [\#(calls.joined(separator: ","))] }"#)
        let app = try AppDirectory.read(files: files)
        #expect(app.ruleCalls.count == RuleCall.most)
        #expect(app.notes.contains { $0.message.contains("more than \(RuleCall.most) different calls") }, "\(app.notes)")
    }
}
