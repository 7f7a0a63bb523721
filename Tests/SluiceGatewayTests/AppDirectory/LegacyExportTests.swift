import SluiceCore
import SluiceGateway
import SluiceValues
import TestSupport
import Testing

/// Exports of earlier years, and repositories that hold more than the app.
struct LegacyExportTests {
    // MARK: Roles before February 2023

    private static let sync = "sync/config.json"

    /// The fixture without rule files, with `permissions`.
    private static func app(_ permissions: String, _ change: [String: String?] = [:]) throws -> AppConfiguration {
        var files = AppFixture.replacing("\"state\":", with: "\"permissions\": \(permissions), \"state\":", in: sync)
        files[AppFixture.orders("rules")] = nil
        files["data_sources/mongodb-atlas/default_rule.json"] = nil
        for (path, text) in change { files[path] = text }
        return try AppDirectory.read(files: files)
    }

    private static func roles(_ app: AppConfiguration, _ path: String) throws -> [JSON] {
        let text = try #require(app.files["data_sources/mongodb-atlas/\(path)"])
        return try #require(try JSON.located(Array(text.utf8))["roles"]?.array)
    }

    @Test func `default roles and roles of a collection are read as rule files`() throws {
        let app = try Self.app(
            """
            {
              "rules": { "orders": [{ "name": "own", "applyWhen": {}, "read": true, "write": { "owner": "%%user.id" } }],
                         "Person": [{ "name": "all", "applyWhen": {}, "read": true, "write": true }],
                         "gone": [{ "name": "x", "applyWhen": {}, "read": true, "write": true }] },
              "defaultRoles": [{ "name": "reader", "applyWhen": { "%%user.type": "normal" }, "read": true, "write": false }]
            }
            """)
        let all: JSON = true
        #expect(
            try Self.roles(app, "default_rule.json") == [
                [
                    "name": "reader", "apply_when": ["%%user.type": "normal"], "document_filters": ["read": true, "write": false],
                    "read": all, "write": all, "insert": all, "delete": all, "search": all,
                ]
            ])
        #expect(try Self.roles(app, "shop/orders/rules.json")[0]["document_filters"] == ["read": true, "write": ["owner": "%%user.id"]])
        #expect(try Self.roles(app, "shop/people/rules.json")[0]["name"] == "all")
        #expect(app.notes.contains { $0.kind == .adapted && $0.file == Self.sync && $0.line == 3 }, "\(app.notes)")
        #expect(app.notes.contains { $0.message.contains("The collection 'gone' does not exist") && $0.line == 6 }, "\(app.notes)")
    }

    @Test func `a role's lines are those of sync_config_json`() throws {
        let app = try Self.app(
            """
            { "defaultRoles": [{
              "name": "a",
              "applyWhen": {},
              "read":
                { "owner":
                   "%%user.id" },
              "write": false
            }] }
            """)
        let text = try #require(app.files["data_sources/mongodb-atlas/default_rule.json"])
        let role = try #require(try JSON.located(Array(text.utf8))["roles"]?.array?.first?.members)
        let lines = Dictionary(uniqueKeysWithValues: role.map { ($0.key, $0.line) })
        #expect(lines["name"] == 4 && lines["apply_when"] == 5 && lines["document_filters"] == 6)
        let filters = role.first { $0.key == "document_filters" }?.value
        #expect(filters?.members?.map(\.line) == [6, 9] && filters?["read"]?.members?.map(\.line) == [7])
    }

    @Test func `a rule file with document filters wins, quietly`() throws {
        let permissions = #"{ "defaultRoles": [{ "name": "old", "applyWhen": {}, "read": true, "write": true }] }"#
        let rules = try #require(AppFixture.files[AppFixture.orders("rules")])
        let app = try Self.app(permissions, [AppFixture.orders("rules"): rules])
        #expect(app.files[AppFixture.orders("rules")] == rules && app.files["data_sources/mongodb-atlas/default_rule.json"] == nil)
        #expect(!app.notes.contains { $0.message.contains("permissions") }, "\(app.notes)")
    }

    @Test func `a rule file without document filters was for other accesses than sync`() throws {
        let permissions = #"{ "defaultRoles": [{ "name": "old", "applyWhen": {}, "read": true, "write": true }] }"#
        let app = try Self.app(
            permissions, [AppFixture.orders("rules"): #"{ "roles": [{ "name": "api", "apply_when": {}, "read": true, "write": true }] }"#])
        #expect(app.files[AppFixture.orders("rules")] == nil)
        #expect(try Self.roles(app, "default_rule.json").map { $0["name"] } == ["old"])
    }

    /// The migration as App Services documents it, written down once more.
    @Test func `every role is migrated as documented`() throws {
        let seed = UInt64.random(in: .min ... .max)
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let expressions: [JSON] = [true, false, ["owner": "%%user.id"], ["store": ["$in": [1, 2]]], ["%%user.type": "normal"]]
            var members = [JSON.Member("name", .string("r\(Int.random(in: 0..<9, using: &random))"))]
            for key in ["applyWhen", "read", "write", "insert", "delete", "search", "fields"] where Bool.random(using: &random) {
                members.append(JSON.Member(key, expressions.randomElement(using: &random) ?? true))
            }
            members.shuffle(using: &random)
            let role = JSON.object(members)
            let new = try Self.roles(try Self.app(JSON.object([.init("defaultRoles", .array([role]))]).text), "default_rule.json")[0]
            let shown: Comment = "seed \(seed): \(role.text) → \(new.text)"
            for key in ["read", "write"] { #expect(new["document_filters"]?[key] == role[key] ?? false, shown) }
            #expect(new["read"] == true && new["write"] == true, shown)
            for key in ["insert", "delete", "search"] { #expect(new[key] == role[key] ?? true, shown) }
            for key in ["name", "fields"] { #expect(new[key] == role[key], shown) }
            #expect(new["apply_when"] == role["applyWhen"] && new["applyWhen"] == nil, shown)
            let keys = new.members?.map(\.key) ?? []
            #expect(Set(keys).count == keys.count, shown)
        }
    }

    // MARK: The app id

    @Test func `the app id is of the main file, else of the CLI's record, and the command line's comes first`() throws {
        var files = AppFixture.removing("realm_config.json")
        files["root_config.json"] = #"{ "config_version": 20230101, "name": "shop", "features": {} }"#
        #expect(AppFixture.problems(of: files).map(\.code) == [.configMissing])
        #expect(AppFixture.problems(of: files).first?.fix.contains("--app-id") == true)
        #expect(try AppDirectory.read(files: files, appID: "given-1").appID == "given-1")
        files[".mdb/meta.json"] = #"{ "app_id": "65df4be8e06711bee5244be6", "client_app_id": "shop-xyz" }"#
        #expect(try AppDirectory.read(files: files).appID == "shop-xyz")
        #expect(try AppDirectory.read(files: files, appID: "given-1").appID == "given-1")
        files["realm_config.json"] = #"{ "app_id": "shop-abc" }"#
        #expect(try AppDirectory.read(files: files).appID == "shop-abc")
        let wrong = #expect(throws: AppDirectoryError.self) { try AppDirectory.read(files: files, appID: "a b") }
        #expect(wrong?.problems.first?.message.contains("'a b' is not a name") == true)
    }

    // MARK: Files of others

    @Test func `files of other programs are passed over, whatever they hold`() throws {
        let others = [
            "tsconfig.json": "{ // comment\n}", "package.json": "[", "Shop.xcodeproj/project.xcworkspace/contents.json": "{",
            "Shop/Assets.xcassets/Contents.json": "{", "mobile/realm_config.json": "{", "mobile/sync/config.json": "{",
            "data_sources/mongodb-atlas/shop/orders/notes.json": "{", "sync/notes.json": "{", "src/sync.json": "{", "service/x.json": "{",
            "plugins/Own/settings.json": "{", "data_sources/README.json": "{",
        ]
        let app = try AppDirectory.read(files: AppFixture.files.merging(others) { $1 })
        let expected = try AppDirectory.read(files: AppFixture.files)
        #expect(app.schema == expected.schema && app.notes == expected.notes && app.files == expected.files)
    }

    // MARK: Older layouts

    /// The file of 2020 has the settings of custom user data too.
    @Test func `config json names the app of an export of 2020, and is passed over as the file of another program`() throws {
        let old = #"{ "app_id": "old-abc", "config_version": 20200603, "name": "old", "location": "AU" }"#
        var files = AppFixture.files
        let named = try AppDirectory.read(files: files).appID
        for text in [#"{ "app_id": "other" }"#, "{ broken", "", "[]", old] {
            files["config.json"] = text
            #expect(try AppDirectory.read(files: files).appID == named, "realm_config.json counts first")
        }
        files["realm_config.json"] = nil
        #expect(try AppDirectory.read(files: files).appID == "old-abc")
        files["config.json"] = #"{ "app_id": "other" }"#
        let error = #expect(throws: AppDirectoryError.self) { try AppDirectory.read(files: files) }
        #expect(error?.problems.first?.file == "realm_config.json")
    }

    @Test func `services and auth_providers are read as data sources and providers`() throws {
        let collection = """
            { "database": "shop", "collection": "items",
              "roles": [{ "name": "all", "apply_when": {}, "document_filters": { "read": true, "write": true }, "read": true, "write": true }],
              "schema": { "title": "Item", "bsonType": "object",
                "properties": { "_id": { "bsonType": "objectId" }, "part": { "bsonType": "objectId" } } },
              "relationships": { "part": { "ref": "#/relationship/mongodb-atlas/shop/items", "foreign_key": "_id", "is_list": false } } }
            """
        let files = [
            "stitch.json": #"{ "app_id": "old-abc", "name": "old" }"#,
            "services/mongodb-atlas/config.json":
                #"{ "name": "mongodb-atlas", "type": "mongodb-atlas", "config": { "flexible_sync": { "state": "enabled", "queryable_fields_names": ["part2"] } } }"#,
            "services/mongodb-atlas/rules/shop.items.json": collection,
            "services/mail/config.json": #"{ "name": "mail", "type": "twilio" }"#,
            "auth_providers/anon-user.json": #"{ "name": "anon-user", "type": "anon-user", "disabled": false }"#,
        ]
        let app = try AppDirectory.read(files: files)
        #expect(app.appID == "old-abc" && app.schema["Item"]?["part"]?.type == .link(to: "Item"))
        #expect(app.isEnabled(provider: "anon-user") && app.queryableFields.global == ["part2"])
        #expect(app.files["data_sources/mongodb-atlas/shop/items/rules.json"] == collection)
        #expect(app.notes.contains { $0.description == "services/mail/ has no effect here." }, "\(app.notes)")
    }

    static let partitions: [(files: [String: String?], place: String)] = [
        ([sync: #"{ "type": "partition", "state": "enabled", "partition": { "key": "_partition" } }"#], "sync/config.json:1:44"),
        ([sync: #"{ "state": "enabled", "partition": { "key": "_partition", "type": "string" } }"#], "sync/config.json:1:23"),
        (
            [
                sync: nil,
                "data_sources/mongodb-atlas/config.json":
                    #"{ "name": "m", "type": "mongodb-atlas", "config": { "sync": { "partition": { "key": "_partition" } } } }"#,
            ], "data_sources/mongodb-atlas/config.json:1:63"
        ),
        (
            [
                sync: nil,
                "services/atlas/config.json":
                    #"{ "name": "atlas", "type": "mongodb-atlas", "config": { "sync": { "partition": { "key": "_partition" } } } }"#,
            ], "services/atlas/config.json:1:67"
        ),
    ]

    @Test(arguments: partitions)
    func `partition-based sync is refused in these words, wherever it stands`(test: (files: [String: String?], place: String)) {
        var files = AppFixture.files
        for (path, text) in test.files { files[path] = text }
        let problem = AppFixture.problems(of: files).first { $0.message.contains("partition-based") }
        #expect(problem?.message.contains("partition-based sync by '_partition', which is not served") == true)
        #expect(
            problem?.place == test.place && problem?.fix.contains("sluice migrate partitions DIR") == true, "\(String(describing: problem))"
        )
    }

    @Test func `a partition of null is none`() {
        var files = AppFixture.files
        files[Self.sync] = files[Self.sync]?.replacing("{", with: #"{ "partition": null, "#, maxReplacements: 1)
        #expect(AppFixture.problems(of: files).isEmpty, "\(AppFixture.problems(of: files))")
    }

    @Test func `an app without sync is said to be one`() {
        for text in [nil, #"{ "development_mode_enabled": false }"#, "{}"] {
            var files = AppFixture.files
            files[Self.sync] = text
            #expect(
                AppFixture.problems(of: files).contains {
                    $0.message.contains("the app does not use Device Sync") || $0.message.contains("The app does not use Device Sync")
                }, "\(text ?? "-")")
        }
    }

    @Test func `an export without a class says so, with an example that is read`() throws {
        let files = AppFixture.files.filter { !$0.key.hasPrefix("data_sources/mongodb-atlas/shop/") }
        let app = try AppDirectory.read(files: files)
        #expect(!app.hasClasses)
        let note = try #require(app.notes.first { $0.message.hasPrefix("The export has no class") })
        #expect(note.kind == .missing && note.fix.contains("schema.json"))
        let example = try #require(note.fix.firstRange(of: #"{"title""#)).lowerBound
        let added = files.merging(["data_sources/mongodb-atlas/shop/items/schema.json": String(note.fix[example...].prefix { $0 != "." })])
        { $1 }
        #expect(try AppDirectory.read(files: added).schema.types.map(\.name) == ["Item"])
    }

    @Test func `an app without a role says so, with an example that is read`() throws {
        var files = AppFixture.files.filter { !$0.key.hasSuffix("rules.json") }
        files["data_sources/mongodb-atlas/default_rule.json"] = #"{ "roles": [] }"#
        let note = try #require(try AppDirectory.read(files: files).notes.first { $0.message.contains("no role and no plugin") })
        let example = try #require(note.fix.firstRange(of: #"{"roles""#)).lowerBound
        files["data_sources/mongodb-atlas/default_rule.json"] = String(note.fix[example...].dropLast())
        #expect(try !AppDirectory.read(files: files).notes.contains { $0.message.contains("no role and no plugin") })
    }

    // MARK: Logins

    @Test func `providers that are not offered and custom data without a collection are notes`() throws {
        var files = AppFixture.adding(
            "auth/custom_user_data.json", #"{ "enabled": true, "mongo_service_name": "mongodb-atlas", "database_name": "shop" }"#)
        files["auth/providers.json"] =
            #"{ "anon-user": { "type": "anon-user" }, "push": { "type": "push-thing" }, "custom-function": { "type": "custom-function" } }"#
        let app = try AppDirectory.read(files: files)
        #expect(app.users.customData == nil && app.isEnabled(provider: "anon-user"))
        #expect(
            app.notes.contains {
                $0.file == "auth/custom_user_data.json" && $0.kind == .missing && $0.message.contains("'collection_name'")
            }, "\(app.notes)")
        #expect(app.notes.contains { $0.message.contains("'push-thing' is not a login provider") }, "\(app.notes)")
        #expect(app.notes.contains { $0.message.contains("'config.authFunctionName' is missing") && $0.line == 1 }, "\(app.notes)")
    }
}
