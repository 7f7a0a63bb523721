import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluiceValues
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
        (#""type": "DATABASE", "function_name": "nowhere", "config": {}"#, "no service runs", "sluice.json"),
        (#""type": "DATABASE", "function_name": "greet", "config": { "collection": "tasks" }"#, "no collection and database", "each"),
        (
            #""type": "DATABASE", "function_name": "greet", "config": { "database": "todo", "collection": "others" }"#,
            "no class for todo.others", "SQL trigger"
        ),
        (
            #""type": "DATABASE", "function_name": "greet", "config": { "database": "shop", "collection": "readings" }"#,
            "the class Reading is asymmetric", "SQL trigger"
        ),
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

    private static func database(_ config: String) -> [String: String] {
        ["t": #"{ "name": "t", "type": "DATABASE", "function_name": "greet", "config": { \#(place), \#(config) } }"#]
    }

    private static let place = #""database": "shop", "collection": "orders""#

    @Test func `of a database have the settings of their files`() throws {
        let app = try Self.app(
            Self.database(
                """
                "operation_types": ["INSERT", "update", "REPLACE"], "full_document": true, "full_document_before_change": true,
                "unordered": true, "match": { "fullDocument.done": true }, "project": { "_id": 0 }, "tolerate_resume_errors": true
                """))
        var shape = ChangeEventShape(database: "shop", collection: "orders")
        (shape.hasFullDocument, shape.hasPreImage) = (true, true)
        var trigger = DatabaseTrigger("t", on: "Order", [.insert, .update], function: "greet", shape: shape)
        trigger.isUnordered = true
        trigger.match = try Condition(filter: ["fullDocument.done": true])
        trigger.projection = try ChangeProjection(["_id": 0])
        #expect(app.databaseTriggers.running == [trigger] && app.databaseTriggers.skipping.isEmpty)
        #expect(Self.notes(app).isEmpty, "\(app.notes)")
    }

    @Test(arguments: [
        (#""operation_types": ["UPDATE"], "match": { "fullDocument.a": { "$regex": "^a" } }"#, "'$regex' in match is not evaluated"),
        (#""operation_types": ["UPDATE"], "project": { "a": 1, "b": 0 }"#, "'b' in project is not evaluated"),
        (#""operation_types": ["DROP"]"#, "its operation 'drop' is unknown"),
        (#""operation_types": ["REPLACE"]"#, "no operation that occurs"),
    ])
    func `of a database are not run if they would be evaluated otherwise`(config: String, message: String) throws {
        let app = try Self.app(Self.database(config))
        #expect(app.databaseTriggers.running.isEmpty)
        let notes = Self.notes(app)
        #expect(notes.count == 1 && notes[0].message.contains(message) && notes[0].line == 1, "\(notes)")
    }

    @Test func `of a database skip what happens while they are disabled, if they say so`() throws {
        let app = try Self.app([
            "a": #"{ "name": "a", "type": "DATABASE", "disabled": true, "config": { "skip_catchup_events": true } }"#,
            "b": #"{ "name": "b", "type": "DATABASE", "disabled": true, "config": { "skip_catchup_events": false } }"#,
        ])
        #expect(app.databaseTriggers.running.isEmpty && app.databaseTriggers.skipping == ["a"])
        #expect(Self.notes(app).isEmpty)
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
