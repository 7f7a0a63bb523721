import SluiceCore
import SluiceGateway
import SluiceIdentity
import Testing

@Suite struct `The triggers of an app directory` {
    private static func app(_ triggers: [String: String], _ others: [String: String] = [:]) throws -> AppConfiguration {
        var files = AppFixture.files
        files["functions/config.json"] = #"[{ "name": "greet" }, { "name": "nowhere" }]"#
        files["sluice.json"] = """
            {
                "secrets": { "hook": { "environment": "HOOK" } },
                "functions": { "greet": { "url": "https://hooks.example", "secret": "hook" } }
            }
            """
        for (name, text) in triggers { files["triggers/\(name).json"] = text }
        return try AppDirectory.read(files: files.merging(others) { $1 })
    }

    private static func notes(_ app: AppConfiguration) -> [ConfigNote] { app.notes.filter { $0.file.hasPrefix("triggers/") } }

    @Test func `are read in both forms of their function, in the order of the files`() throws {
        let app = try Self.app([
            "b": """
            {
                "id": "5", "name": "onLogin", "type": "AUTHENTICATION", "disabled": false, "function_name": "greet",
                "config": { "operation_type": "LOGIN", "providers": ["anon-user", "local-userpass"] }
            }
            """,
            "a": """
            {
                "name": "onCreate", "type": "AUTHENTICATION", "config": { "operation_type": "CREATE" },
                "event_processors": { "FUNCTION": { "config": { "function_name": "greet" } } }
            }
            """,
            "c": #"{ "name": "off", "type": "AUTHENTICATION", "disabled": true, "config": { "operation_type": "LOGIN" } }"#,
        ])
        #expect(
            app.triggers == [
                AuthenticationTrigger("onCreate", .create, function: "greet"),
                AuthenticationTrigger("onLogin", .login, providers: ["anon-user", "local-userpass"], function: "greet"),
            ])
        #expect(Self.notes(app).isEmpty, "\(app.notes)")
    }

    @Test(arguments: [
        (#""type": "DATABASE", "function_name": "greet", "config": { "collection": "orders" }"#, "is not run", "table of orders"),
        (
            #""type": "SCHEDULED", "function_name": "greet", "config": { "schedule": "5 9 * * *" }"#, "is not run",
            "'greet': 5 9 * * * COMMAND"
        ),
        (
            #""type": "AUTHENTICATION", "function_name": "nowhere", "config": { "operation_type": "LOGIN" }"#, "no service runs",
            "sluice.json"
        ),
        (#""type": "AUTHENTICATION", "function_name": "gone", "config": { "operation_type": "LOGIN" }"#, "no function of the app", ""),
        (#""type": "AUTHENTICATION", "event_processors": { "AWS_EVENTBRIDGE": {} }, "config": {}"#, "no function of the app", ""),
        (#""type": "AUTHENTICATION", "function_name": "greet", "config": { "operation_type": "READ" }"#, "is unknown", "LOGIN"),
        (#""type": "NEW""#, "no type that the gateway knows", ""),
    ])
    func `that are not run are notes with a replacement`(text: String, message: String, fix: String) throws {
        let app = try Self.app(["t": "{ \"name\": \"t\", \(text) }"])
        #expect(app.triggers.isEmpty)
        let notes = Self.notes(app)
        #expect(notes.count == 1 && notes[0].message.contains("'t'"), "\(notes)")
        #expect(notes.first?.message.contains(message) == true && notes.first?.fix.contains(fix) == true, "\(notes)")
    }

    @Test func `name a function for new users beside them, which needs a service`() throws {
        let file = "auth/custom_user_data.json"
        func text(_ name: String, _ isEnabled: Bool = true) -> String {
            #"{ "enabled": \#(isEnabled), "on_user_creation_function_name": "\#(name)" }"#
        }
        #expect(try Self.app([:], [file: text("greet")]).users.creationFunction == "greet")
        #expect(try Self.app([:], [file: text("greet", false)]).users.creationFunction == nil)
        #expect(try Self.app([:], [file: text("")]).users.creationFunction == nil)
        for name in ["nowhere", "gone"] {
            let app = try Self.app([:], [file: text(name)])
            #expect(app.users.creationFunction == nil)
            #expect(app.notes.contains { $0.file == file && $0.message.contains("No service runs '\(name)'") }, "\(app.notes)")
        }
    }
}
