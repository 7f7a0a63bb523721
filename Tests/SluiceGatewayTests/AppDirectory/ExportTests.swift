import FoundationEssentials
import SluiceCore
import SluiceGateway
import SluiceValues
import Testing

/// A repository as App Services exports and deploys it, with everything that such a repository may have.
@Suite struct `An export of App Services` {
    private static let files: [String: String] = [
        ".gitignore": "node_modules\n", ".mdb/meta.json": "{}", "README.md": "# Todo",
        "package.json": #"{ "name": "todo", "dependencies": { "moment": "^2.29.4" } }"#, "package-lock.json": "{ // broken",
        "node_modules/moment/package.json": "{",
        "realm_config.json": """
        {
            "app_id": "todo-abcde", "config_version": 20210101, "name": "todo", "location": "US-VA",
            "provider_region": "aws-us-east-1", "deployment_model": "GLOBAL"
        }
        """,
        "auth/custom_user_data.json": #"{ "enabled": false }"#,
        "auth/providers.json": """
        {
            "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false },
            "api-key": { "name": "api-key", "type": "api-key", "disabled": true },
            "local-userpass": {
                "name": "local-userpass", "type": "local-userpass", "disabled": false,
                "config": {
                    "autoConfirm": true, "confirmEmailSubject": "", "confirmationFunctionName": "confirmUser", "emailConfirmationUrl": "",
                    "resetFunctionName": "resetUser", "resetPasswordSubject": "", "resetPasswordUrl": "", "runConfirmationFunction": false,
                    "runResetFunction": true
                }
            }
        }
        """,
        "data_sources/mongodb-atlas/config.json": """
        {
            "name": "mongodb-atlas", "type": "mongodb-atlas", "version": 1,
            "config": { "clusterName": "Cluster0", "readPreference": "primary", "wireProtocolEnabled": false }
        }
        """,
        "data_sources/mongodb-atlas/default_rule.json": #"{ "roles": [], "filters": [] }"#,
        "data_sources/mongodb-atlas/todo/Item/schema.json": """
        {
            "title": "Item", "bsonType": "object", "required": ["_id", "owner_id", "isComplete"],
            "properties": {
                "_id": { "bsonType": "objectId" }, "owner_id": { "bsonType": "string" }, "isComplete": { "bsonType": "bool" },
                "place": { "title": "Place", "bsonType": "object", "properties": { "city": { "bsonType": "string" } } }
            }
        }
        """,
        "data_sources/mongodb-atlas/todo/Item/relationships.json": "{}",
        "data_sources/mongodb-atlas/todo/Item/rules.json": """
        {
            "database": "todo", "collection": "Item",
            "roles": [
                {
                    "name": "readOwnWriteOwn", "apply_when": {},
                    "document_filters": { "write": { "owner_id": "%%user.id" }, "read": { "owner_id": "%%user.id" } },
                    "read": true, "write": true, "insert": true, "delete": true, "search": true
                }
            ]
        }
        """,
        "data_sources/mongodb-atlas/todo/Log/schema.json": "{}", "environments/development.json": #"{ "values": {} }"#,
        "environments/no-environment.json": #"{ "values": {} }"#, "environments/production.json": #"{ "values": {} }"#,
        "environments/qa.json": #"{ "values": {} }"#, "environments/testing.json": #"{ "values": {} }"#,
        "functions/config.json": #"[{ "name": "confirmUser", "private": false }]"#,
        "functions/confirmUser.js": "exports = () => ({ status: 'success' });", "functions/node_modules/moment/package.json": "{",
        "graphql/config.json": #"{ "use_natural_pluralization": true }"#, "graphql/custom_resolvers/x.json": "{}",
        "hosting/files/app.js": "\u{FEFF}void 0", "hosting/files/tsconfig.json": "{ // with a comment\n}", "hosting/metadata.json": "[]",
        "http_endpoints/config.json": "[]", "log_forwarders/all.json": #"{ "name": "all" }"#, "triggers/onInsert.json": "{}",
        "sync/config.json": """
        {
            "type": "flexible", "state": "enabled", "development_mode_enabled": false, "service_name": "mongodb-atlas",
            "database_name": "todo", "client_max_offline_days": 30, "is_recovery_mode_disabled": false, "last_disabled": 0,
            "permissions": { "rules": {}, "defaultRoles": [] }, "asymmetric_tables": null, "indexed_queryable_fields_names": null,
            "queryable_fields_names": ["_id", "owner_id", "team id", "onwer_id", "place"], "collection_queryable_fields_names": {}
        }
        """,
        "values/apiUrl.json": #"{ "name": "apiUrl", "value": "https://example.com", "from_secret": false }"#,
    ]

    /// Writes the files below a new directory for as long as the body runs.
    private static func withDirectory<R>(_ files: [String: String], _ body: (String) throws -> R) throws -> R {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-\(UUID())").path()
        defer { try? FileManager.default.removeItem(atPath: root) }
        for (path, text) in files {
            let file = URL(filePath: root + "/" + path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        return try body(root)
    }

    @Test func `is read as it is, and what has no effect is noted`() throws {
        let app = try Self.withDirectory(Self.files) { root in
            // What a browser loads need not be text.
            try Data([0xFF, 0xFE, 0x00]).write(to: URL(filePath: root + "/hosting/files/old.js"))
            return try AppDirectory.load(at: root)
        }
        #expect(app.appID == "todo-abcde" && app.schema.types.map(\.name) == ["Item", "Place"])
        #expect(app.values == ["apiUrl": "https://example.com"] && app.users.customData == nil)
        #expect(app.queryableFields.global == ["_id", "owner_id", "team id", "onwer_id", "place"] && app.queryableFields.indexed == nil)
        let unused = [
            "graphql/", "hosting/", "http_endpoints/", "log_forwarders/",
        ]
        let notes = app.notes.map(\.description)
        for name in unused { #expect(notes.filter { $0 == "\(name) has no effect here." }.count == 1, "\(name): \(notes)") }
        #expect(notes.contains { $0.contains("No service runs the functions confirmUser: calls of them fail.") }, "\(notes)")
        let place = "sync/config.json:5:5: "
        #expect(notes.contains(place + "No class has the queryable field 'team id': it has no effect."), "\(app.notes)")
        #expect(
            notes.contains(place + "No class has the queryable field 'onwer_id': it has no effect. Did you mean 'owner_id'?"),
            "\(app.notes)")
        #expect(notes.contains { $0.hasPrefix(place + "'place' cannot be queryable in any class.") }, "\(app.notes)")
        // Files of other programs are passed over.
        let others = ["node_modules", "mdb", "README", "package"]
        #expect(!notes.contains { note in others.contains { note.contains($0) } }, "\(notes)")
    }

    @Test func `is refused for a file at its root that is likely misspelt`() throws {
        let files = Self.files.merging(["plugin.json": "{}", "secret.json": "{}"]) { $1 }
        let error = #expect(throws: AppDirectoryError.self) { try Self.withDirectory(files) { try AppDirectory.load(at: $0) } }
        #expect(error?.problems.map(\.fix) == ["Did you mean 'plugins.json'?", "Did you mean 'secrets.json'?"])
    }
}
