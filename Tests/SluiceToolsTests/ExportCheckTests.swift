import Foundation
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import Testing

/// The report of `sluice migrate check`, on exports of several styles.
struct ExportCheckTests {
    static let item =
        #"{ "title": "Item", "bsonType": "object", "properties": { "_id": { "bsonType": "objectId" }, "owner_id": { "bsonType": "string" } } }"#
    static let role = """
        { "roles": [{ "name": "own", "apply_when": {}, "read": true, "write": true, "insert": true, "delete": true,
          "document_filters": { "read": { "owner_id": "%%user.id" }, "write": { "owner_id": "%%user.id" } } }] }
        """
    static let plain = [
        "root_config.json": #"{ "config_version": 20230101, "name": "todo" }"#,
        ".mdb/meta.json": #"{ "client_app_id": "todo-abcde" }"#,
        "auth/providers.json": #"{ "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false } }"#,
        "sync/config.json": #"{ "type": "flexible", "state": "enabled", "service_name": "m", "queryable_fields_names": ["owner_id"] }"#,
        "data_sources/m/config.json": #"{ "name": "m", "type": "mongodb-atlas" }"#, "data_sources/m/todo/Item/schema.json": item,
        "data_sources/m/default_rule.json": role,
    ]

    static func with<R: Sendable>(_ files: [String: String], _ body: (String) async throws -> R) async throws -> R {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: root) }
        for (path, text) in files {
            let file = URL(fileURLWithPath: root + "/" + path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        return try await body(root)
    }

    private func report(_ change: [String: String?], appID: String? = nil) async throws -> ExportReport {
        var files = Self.plain
        for (path, text) in change { files[path] = text }
        return try await Self.with(files) { try await ExportCheck.report(at: $0, appID: appID) }
    }

    @Test func `an app that runs as it is has a report of two lines`() async throws {
        let report = try await report([:])
        #expect(report.runs)
        #expect(report.text == "App todo-abcde runs as it is.\nRead: 1 class, 1 queryable field, 1 login provider.")
        #expect(report.json["runs"] == true && report.json["classes"] == ["Item"] && report.json["refusals"] == [])
    }

    @Test func `all mistakes come in one round, those of the roles too, and serve finds the same`() async throws {
        let files = Self.plain.merging([
            "root_config.json": #"{ "nam": "todo" }"#,
            "data_sources/m/default_rule.json": Self.role.replacingOccurrences(of: #""%%user.id""#, with: #"{ "$regex": "x" }"#),
        ]) { $1 }
        try await Self.with(files) { root in
            let report = try await ExportCheck.report(at: root, appID: nil)
            #expect(!report.runs)
            #expect(report.refusals.map(\.place) == ["root_config.json:1:3", "", ""], "\(report.refusals)")
            let texts = report.refusals.map(\.text)
            #expect(texts[0].contains("'nam' is not a known key") && texts[1].contains("default_rule.json line 2"), "\(texts)")
            #expect(texts[1].contains("the operator $regex of MongoDB is not supported"), "\(texts)")
            let serve = await #expect(throws: SluiceError.self) { try await ExportCheck.configuration(at: root, appID: nil) }
            #expect(serve?.message == texts.joined(separator: "\n"))
            #expect(serve?.code == .configUnknownKey)
        }
    }

    @Test func `roles of permissions are judged with the lines of sync_config_json`() async throws {
        let report = try await report([
            "data_sources/m/default_rule.json": nil,
            "sync/config.json": """
            { "type": "flexible",
              "permissions": { "rules": {}, "defaultRoles": [{
                "name": "own", "applyWhen": {},
                "read": { "ownr_id": "%%user.id" },
                "write": true }] },
              "queryable_fields_names": ["owner_id"] }
            """,
        ])
        #expect(report.refusals.count == 1 && report.refusals[0].text.contains("line 4: Item has no field ownr_id"), "\(report.refusals)")
        #expect(report.items(.adapted).map(\.place) == ["sync/config.json:2:3"])
    }

    @Test func `an app without a class does not run, for serve as well`() async throws {
        let files = Self.plain.filter { !$0.key.hasSuffix("schema.json") }
        try await Self.with(files) { root in
            let report = try await ExportCheck.report(at: root, appID: nil)
            #expect(!report.runs && report.refusals.count == 1 && report.refusals[0].message.hasPrefix("The export has no class"))
            #expect(report.additions.isEmpty, "\(report.additions)")
            let serve = await #expect(throws: SluiceError.self) { try await ExportCheck.configuration(at: root, appID: nil) }
            #expect(serve?.code == .configMissing && serve?.message.contains("The export has no class") == true)
        }
    }

    @Test func `the table of custom user data is named`() async throws {
        let custom = #"{ "enabled": true, "database_name": "todo", "collection_name": "users", "user_id_field": "id" }"#
        let report = try await report(["auth/custom_user_data.json": custom])
        #expect(report.text.hasSuffix(" 1 login provider, custom user data in todo.users."), "\(report.text)")
    }

    @Test func `a given app id makes an export without one run`() async throws {
        #expect(try await !report([".mdb/meta.json": nil]).runs)
        let given = try await report([".mdb/meta.json": nil], appID: "todo-xyz")
        #expect(given.runs && given.app?.appID == "todo-xyz")
    }

    @Test func `a role that denies, a missing secret and a collection left out are listed apart`() async throws {
        let report = try await report([
            "sync/config.json": #"{ "type": "flexible", "queryable_fields_names": ["_id"] }"#,
            "data_sources/m/todo/Log/schema.json": #"{ "title": "Log", "bsonType": "object", "properties": {} }"#,
            "data_sources/m/todo/Item/rules.json": Self.role.replacingOccurrences(of: "%%user.id", with: "%%values.key"),
            "values/key.json": #"{ "name": "key", "value": "the-key", "from_secret": true }"#,
            "values/other.json": #"{ "name": "other", "value": "the-other", "from_secret": true }"#,
            "functions/config.json": "[]",
        ])
        #expect(report.runs)
        let additions = report.additions.map(\.text)
        #expect(
            additions.count == 2 && additions[0].contains("no secret 'the-key'") && additions[1].contains("is not sync compatible"),
            "\(additions)")
        #expect(report.items(.omitted).map(\.message) == ["Log has no '_id'. The collection is not synchronised."])
        #expect(report.items(.unused).map(\.message) == ["secrets.json has no secret 'the-other': roles that use its value deny."])
        for title in ["It needs an addition", "Not synchronised, as with App Services:", "Without effect:"] {
            #expect(report.text.contains("\n\n\(title)"), "\(report.text)")
        }
    }

    @Test func `parts without a counterpart are counted, with names, places and a replacement`() async throws {
        let report = try await report([
            "functions/config.json": "[\n  { \"name\": \"hello\" },\n  { \"name\": \"other\", \"private\": true }\n]",
            "functions/hello.js": "exports = 1", "functions/lib/tool.js": "exports = 2",
            "triggers/a.json": "{\n \"name\": \"a\",\n \"type\": \"DATABASE\" }",
            "triggers/b.json": #"{ "name": "b", "type": "AUTHENTICATION" }"#,
            "triggers/c.json": #"{ "name": "c", "type": "SCHEDULED" }"#,
            "https_endpoints/config.json": #"[{ "route": "/x", "http_method": "GET" }]"#,
            "https_endpoints/data_api_config.json": #"{ "disabled": false }"#, "graphql/config.json": "{}",
            "graphql/custom_resolvers/q.json": #"{ "field_name": "q" }"#, "hosting/config.json": #"{ "enabled": true }"#,
            "hosting/files/a.js": "", "log_forwarders/l.json": #"{ "name": "l" }"#,
            "services/gcm/config.json": #"{ "name": "gcm", "type": "gcm" }"#,
            "services/mail/config.json": #"{ "name": "mail", "type": "twilio" }"#,
            "data_sources/m/todo/Item/schema.json": Self.item.replacingOccurrences(of: #""string""#, with: #""string", "minLength": 3"#),
        ])
        #expect(report.runs)
        let found = report.features.map { "\($0.kind.rawValue) \($0.names.joined(separator: ",")) \($0.places[0].text)" }
        #expect(
            found == [
                "functions hello,other,lib/tool functions/config.json:2", "databaseTriggers a triggers/a.json:3",
                "authenticationTriggers b triggers/b.json:1", "scheduledTriggers c triggers/c.json:1",
                "endpoints GET /x https_endpoints/config.json:1", "graphql q graphql/custom_resolvers/q.json",
                "dataAPI  https_endpoints/data_api_config.json:1", "validation  data_sources/m/todo/Item/schema.json:1",
                "push gcm services/gcm/config.json:1", "services mail services/mail/config.json:1", "hosting  hosting/config.json:1",
                "logForwarders l log_forwarders/l.json",
            ])
        let text = report.text
        for kind in ExportFeature.Kind.allCases { #expect(text.contains(": \(kind.replacement)"), "\(kind)") }
        #expect(text.contains("  3 functions (hello, other, lib/tool; functions/config.json:2): a service of your own"), "\(text)")
        #expect(report.json["features"]?.array?.count == 12)
    }

    @Test func `the text of a large app fits on a screen, and JSON has everything`() async throws {
        var change: [String: String?] = [:]
        for number in 0..<40 { change["data_sources/m/todo/L\(number)/schema.json"] = #"{ "title": "L\#(number)", "properties": {} }"# }
        let report = try await report(change)
        #expect(report.text.split(separator: "\n").count < 25 && report.text.contains("… and 32 more; --json lists all."), "\(report.text)")
        #expect(report.json["notes"]?.array?.count == 40)
    }

    @Test func `characters that move the cursor are not printed`() async throws {
        let report = try await report([
            "sync/config.json": "{ \"type\": \"flexible\", \"queryable_fields_names\": [\"owner_id\", \"a\\u001b[2Jb\"] }"
        ])
        #expect(report.text.contains("a\u{FFFD}[2Jb") && !report.text.contains("\u{1B}"))
    }

    @Test func `a directory that does not exist is an error`() async throws {
        let error = await #expect(throws: SluiceError.self) { try await ExportCheck.report(at: "/nowhere/app", appID: nil) }
        #expect(error?.code == .configMissing)
    }
}
