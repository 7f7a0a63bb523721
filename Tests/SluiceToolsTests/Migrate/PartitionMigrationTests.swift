import Foundation
import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// Flexible apps that `sluice migrate partitions` makes of partition-based ones.
struct PartitionMigrationTests {
    private static let task = """
        { "title": "Task", "bsonType": "object", "required": ["_id", "realm_id"], "properties": {
          "_id": { "bsonType": "objectId" }, "realm_id": { "bsonType": "string" }, "name": { "bsonType": "string" } } }
        """
    private static let user = """
        { "title": "Person", "bsonType": "object", "required": ["_id"], "properties": { "_id": { "bsonType": "string" },
          "realm_id": { "bsonType": "string" }, "team": { "bsonType": "string" }, "isAdmin": { "bsonType": "bool" },
          "readable": { "bsonType": "array", "items": { "bsonType": "string" } },
          "memberOf": { "bsonType": "array", "items": { "title": "Membership", "bsonType": "object",
            "properties": { "partition": { "bsonType": "string" } } } } } }
        """

    private static let own = #"{ "%%user.id": "%%partition" }"#

    static func export(_ read: String, _ write: String = own, functions: [String: String] = [:]) -> [String: String] {
        var files = [
            "realm_config.json": #"{ "app_id": "old-abcde", "name": "old" }"#,
            "auth/providers.json": #"{ "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false } }"#,
            "auth/custom_user_data.json":
                #"{ "enabled": true, "database_name": "app", "collection_name": "people", "user_id_field": "_id" }"#,
            "sync/config.json": """
            { "type": "partition", "state": "enabled", "development_mode_enabled": false, "service_name": "m", "database_name": "app",
              "partition": { "key": "realm_id", "type": "string", "permissions": { "read": \(read), "write": \(write) } },
              "last_disabled": 1 }
            """,
            "data_sources/m/config.json": #"{ "name": "m", "type": "mongodb-atlas" }"#,
            "data_sources/m/app/tasks/schema.json": task, "data_sources/m/app/people/schema.json": user,
        ]
        for (name, source) in functions { files["functions/\(name).js"] = source }
        return files
    }

    private static func filters(_ root: String) throws -> JSON {
        let migration = try PartitionMigration(at: root)
        let rule = try #require(migration.changes.first { $0.path == "data_sources/m/default_rule.json" })
        return try #require(try JSON.parse(rule.after)["roles"]?.array?.first?["document_filters"])
    }

    // MARK: Expressions

    @Test(arguments: [
        ("true", "true"), ("false", "false"), ("{}", "true"),
        (#"{ "%%user.id": "%%partition" }"#, #"{"realm_id":"%%user.id"}"#),
        (#"{ "%%partition": "%%user.id" }"#, #"{"realm_id":"%%user.id"}"#),
        (#"{ "%%partition": "PUBLIC" }"#, #"{"realm_id":"PUBLIC"}"#),
        (#"{ "%%partition": { "%in": ["PUBLIC", "%%user.id"] } }"#, #"{"realm_id":{"$in":["PUBLIC","%%user.id"]}}"#),
        (#"{ "%%user.custom_data.team": "%%partition" }"#, #"{"realm_id":"%%user.custom_data.team"}"#),
        (#"{ "%%user.custom_data.readable": "%%partition" }"#, #"{"realm_id":{"$in":"%%user.custom_data.readable"}}"#),
        (#"{ "%%user.custom_data.readable": { "$in": ["%%partition"] } }"#, #"{"realm_id":{"$in":"%%user.custom_data.readable"}}"#),
        (
            #"{ "%%user.custom_data.other": "%%partition" }"#,
            #"{"$or":[{"realm_id":"%%user.custom_data.other"},{"realm_id":{"$in":"%%user.custom_data.other"}}]}"#
        ),
        (
            #"{ "%%user.custom_data.memberOf": { "$elemMatch": { "partition": "%%partition" } } }"#,
            #"{"realm_id":{"$in":"%%user.custom_data.memberOf.partition"}}"#
        ),
        (
            #"{ "%or": [{ "%%partition": "PUBLIC" }, { "%%user.id": "%%partition" }, { "%%user.custom_data.isAdmin": true }] }"#,
            #"{"$or":[{"realm_id":"PUBLIC"},{"realm_id":"%%user.id"},{"%%user.custom_data.isAdmin":true}]}"#
        ),
        (
            #"{ "%%partition": "PUBLIC", "%%user.custom_data.isAdmin": true }"#,
            #"{"realm_id":"PUBLIC","%%user.custom_data.isAdmin":true}"#
        ),
        (#"{ "%not": { "%%partition": "PRIVATE" } }"#, #"{"$not":{"realm_id":"PRIVATE"}}"#),
        (#"{ "%%true": "%%false" }"#, "false"), (#"{ "$and": [true, { "%%partition": "a" }] }"#, #"{"realm_id":"a"}"#),
    ])
    func `a permission becomes a filter on the partition key`(permission: String, filter: String) async throws {
        try await ExportCheckTests.with(Self.export(permission)) { root in
            let denied = try PartitionMigration(at: root).denied
            #expect(try Self.filters(root)["read"]?.text == filter)
            #expect(denied.isEmpty, "\(denied)")
        }
    }

    @Test(arguments: [
        (#"{ "%%user.id": { "$gt": "%%partition" } }"#, "'%%user.id' is compared with"),
        (#"{ "owner": "%%user.id" }"#, "'owner' is no expansion"),
        (#"{ "%not": { "%%user.custom_data.other": "%%partition" } }"#, "does not say whether it is a list"),
        (
            #"{ "%%true": { "%function": { "name": "gone", "arguments": ["%%partition"] } } }"#,
            "function gone: its source is not in the export"
        ),
        ("3", "3 is no expression"), ("null", "has no permission for it"),
    ])
    func `a permission that no role can express denies, with the reason`(permission: String, reason: String) async throws {
        try await ExportCheckTests.with(Self.export(permission)) { root in
            let migration = try PartitionMigration(at: root)
            #expect(try Self.filters(root)["read"] == false)
            #expect(
                migration.denied.count == 1 && migration.denied[0].hasPrefix("read: ") && migration.denied[0].contains(reason),
                "\(migration.denied)")
        }
    }

    // MARK: Functions

    private static func function(_ name: String) -> String {
        #"{ "%%true": { "%function": { "arguments": ["%%partition"], "name": "\#(name)" } } }"#
    }

    private static let pieces = """
        exports = function (partition) {
          const [kind, value] = partition.split("=");
          switch (kind) {
            case "user": return value === context.user.id;
            case "team": return context.user.custom_data.readable.includes(value);
            default: return false;
          }
        };
        """

    /// Partition values made of a kind and a value, as an app's functions take them apart.
    private static let bucket = """
        // Decides on "user=<id>", "team=<name>" and "PUBLIC".
        exports = async function (partition) {
          console.log(`Checking ${partition}`);
          const splitPartition = partition.split("=");
          let partitionKey; let partitionValue;
          if (splitPartition.length === 2) {
            partitionKey = splitPartition[0];
            partitionValue = splitPartition[1];
          } else {
            return partition === 'PUBLIC';
          }
          switch (partitionKey) {
            case "user":
              return partitionValue === context.user.id;
            case "team": {
              const { readable } = context.user.custom_data;
              return readable && readable.includes(partitionValue);
            }
            case "all":
            case "world":
              return partitionValue == "everyone";
            default:
              console.error("unknown");
              return false;
          }
        };
        """

    @Test(arguments: [
        ("exports = (p) => p === `user=${context.user.id}`;", #"{"realm_id":{"%concat":["user=","%%user.id"]}}"#),
        (
            #"exports = function(p) { return p == "user=" + context.user.id || p === "PUBLIC" }"#,
            #"{"$or":[{"realm_id":{"%concat":["user=","%%user.id"]}},{"realm_id":"PUBLIC"}]}"#
        ),
        (
            "exports = async (p) => { return context.user.custom_data.readable.includes(p); };",
            #"{"realm_id":{"$in":"%%user.custom_data.readable"}}"#
        ),
        ("exports = (p) => context.user.custom_data.readable.indexOf(p) !== -1", #"{"realm_id":{"$in":"%%user.custom_data.readable"}}"#),
        ("exports = (p) => context.user.custom_data.readable.indexOf(p) >= 0", #"{"realm_id":{"$in":"%%user.custom_data.readable"}}"#),
        ("exports = (p) => ['a', 'b'].includes(p)", #"{"realm_id":{"$in":["a","b"]}}"#),
        (
            "exports = (p) => context.user.custom_data.memberOf.some(m => m.partition === p)",
            #"{"realm_id":{"$in":"%%user.custom_data.memberOf.partition"}}"#
        ),
        (
            """
            exports = async function(p) {
              const people = context.services.get("m").db("app").collection("people");
              const me = await people.findOne({ _id: context.user.id });
              if (!me) { return false; }
              if (me.isAdmin) return true;
              return me.team === p;
            };
            """, #"{"$or":[{"%%user.custom_data.isAdmin":true},{"realm_id":"%%user.custom_data.team"}]}"#
        ),
        (
            "exports = p => { try { return context.functions.execute('inner', p) } catch (e) { return false } }",
            #"{"realm_id":"%%user.id"}"#
        ),
        (
            "exports = (p) => { if (context.user.custom_data.role !== 'admin') { throw new Error('no') } return true }",
            #"{"%%user.custom_data.role":"admin"}"#
        ),
        (
            """
            exports = async function(p) {
              const me = await context.services.get("m").db("app").collection("people").findOne({ _id: context.user.id });
              if (me.role === "director") return true;
              return context.functions.execute("pieces", p);
            };
            """,
            #"{"$or":[{"%%user.custom_data.role":"director"},"#
                + #"{"realm_id":{"%concat":["user=","%%user.id"]},"%%user.custom_data._id":{"$exists":true}},"#
                + #"{"realm_id":{"$in":{"%concat":["team=","%%user.custom_data.readable"]}}}]}"#
        ),
        (
            bucket,
            #"{"$or":[{"realm_id":{"%concat":["user=","%%user.id"]}},"#
                + #"{"realm_id":{"$in":{"%concat":["team=","%%user.custom_data.readable"]}}},"#
                + #"{"realm_id":"all=everyone"},{"realm_id":"world=everyone"},{"realm_id":"PUBLIC"}]}"#
        ),
    ])
    func `a function that compares the partition with the user becomes a filter`(source: String, filter: String) async throws {
        let files = Self.export(
            Self.function("canRead"),
            functions: ["canRead": source, "inner": "exports = function (q) { return q === context.user.id }", "pieces": Self.pieces])
        try await ExportCheckTests.with(files) { root in
            let migration = try PartitionMigration(at: root)
            #expect(migration.denied.isEmpty, "\(migration.denied)")
            #expect(try Self.filters(root)["read"]?.text == filter)
        }
    }

    @Test(arguments: [
        ("exports = (p) => p.startsWith('a')", "a call of 'startsWith' is not understood"),
        ("exports = (p) => { const [kind] = p.split('='); return kind === 'user' }", "a part of their value"),
        ("exports = (p) => { for (const x of y) { } }", "'for' is not understood"),
        (
            "exports = async (p) => { const d = await context.services.get('m').db('app').collection('teams').findOne({ _id: p }); return d }",
            "reads the collection app.teams"
        ),
        (
            "exports = async (p) => { const d = await context.services.get('m').db('app').collection('people').findOne({ _id: p }); return d }",
            "another document of app.people"
        ),
        ("exports = (p) => other(p)", "a call is not understood"), ("const x = 1", "it exports no function"),
        ("const can = (p) => true; exports = can", "it exports 'can', and only a function that stands behind 'exports =' is read"),
        ("exports = (p) => p === 'a'; const help = 1", "its source has more behind the exported function, from 'const' on"),
        (
            "exports = (p) => { if (!context.user.custom_data.banned) return p === 'a' }",
            "asks whether '%%user.custom_data.banned' is empty"
        ),
        ("exports = p => context.functions.execute('canRead', p)", "functions call each other without end"),
        ("exports = (p) => { sendMail(p); return true }", "it does more than decide"), ("exports = (p) => p === /x/", "is not understood"),
        ("exports = (p) => context.user.identities.includes(p)", "which roles do not have"),
        ("exports = (p) => { return p === '", "does not end"),
    ])
    func `a function beyond these shapes denies, with the reason`(source: String, reason: String) async throws {
        try await ExportCheckTests.with(Self.export(Self.function("canRead"), functions: ["canRead": source])) { root in
            let migration = try PartitionMigration(at: root)
            #expect(migration.denied.count == 1 && migration.denied[0].contains(reason), "\(migration.denied)")
            #expect(try Self.filters(root)["read"] == false)
        }
    }

    // MARK: Files

    @Test func `the result runs, and the export before names the command`() async throws {
        let files = Self.export(#"{ "%%user.id": "%%partition" }"#).merging([
            "data_sources/m/app/tasks/rules.json":
                #"{ "database": "app", "collection": "tasks", "roles": [{ "name": "owner", "apply_when": {}, "read": true, "write": true }] }"#
        ]) { $1 }
        try await ExportCheckTests.with(files) { root in
            let before = try await ExportCheck.report(at: root, appID: nil)
            #expect(!before.runs && before.refusals.contains { $0.text.contains("sluice migrate partitions") })
            let migration = try PartitionMigration(at: root)
            let copy = root + "-copy"
            defer { try? FileManager.default.removeItem(atPath: copy) }
            try migration.write(to: copy)
            #expect(try await !ExportCheck.report(at: root, appID: nil).runs)
            let after = try await ExportCheck.report(at: copy, appID: nil)
            #expect(after.runs, "\(after.text)")
            #expect(after.app?.queryableFields.indexed == "realm_id" && after.app?.queryableFields.global == ["realm_id"])
            #expect(migration.notes.contains { $0.hasPrefix("data_sources/m/app/tasks/rules.json: its roles never applied") })
            #expect(migration.text.contains("-   \"partition\""), "\(migration.text)")
            #expect(migration.text.contains("new file data_sources/m/default_rule.json"))
            let existing = #expect(throws: SluiceError.self) { try migration.write(to: copy) }
            #expect(existing?.message.hasSuffix("-copy exists.") == true)
            let inside = #expect(throws: SluiceError.self) { try migration.write(to: root + "/auth/copy") }
            #expect(inside?.message.contains("is inside of") == true)
            try migration.write(to: nil)
            #expect(try await ExportCheck.report(at: root, appID: nil).runs)
            #expect(throws: SluiceError.self) { try PartitionMigration(at: root) }
        }
    }

    @Test(arguments: ["data_sources", "services"]) func `settings in a data source, as in older exports, are found`(
        folder: String
    ) async throws {
        let sync = """
            { "state": "enabled", "database_name": "app",
              "partition": { "key": "realm_id", "type": "string", "permissions": { "read": true, "write": { "%%user.id": "%%partition" } } } }
            """
        var files = Self.export("true")
        files["sync/config.json"] = nil
        files["\(folder)/m/config.json"] = #"{ "name": "m", "type": "mongodb-atlas", "config": { "clusterName": "c", "sync": \#(sync) } }"#
        files["realm_config.json"] = """
            { "app_id": "old-abcde", "name": "old", "custom_user_data_config": { "enabled": true, "mongo_service_name": "m",
              "database_name": "app", "collection_name": "people", "user_id_field": "_id" } }
            """
        files["auth/custom_user_data.json"] = nil
        if folder == "services" {
            for (name, schema) in [("tasks", Self.task), ("people", Self.user)] {
                files["data_sources/m/app/\(name)/schema.json"] = nil
                files["services/m/rules/app.\(name).json"] =
                    #"{ "database": "app", "collection": "\#(name)", "roles": [{ "name": "old", "apply_when": {} }], "schema": \#(schema) }"#
            }
            files["data_sources/m/config.json"] = nil
        }
        try await ExportCheckTests.with(files) { root in
            let before = try await ExportCheck.report(at: root, appID: nil)
            #expect(!before.runs && before.refusals.contains { $0.text.contains("sluice migrate partitions") }, "\(before.text)")
            let migration = try PartitionMigration(at: root)
            try migration.write(to: nil)
            let after = try await ExportCheck.report(at: root, appID: nil)
            #expect(after.runs, "\(after.text)")
            #expect(after.app?.schema["Task"] != nil && after.app?.users.customData?.userIDField == "_id", "\(after.text)")
            #expect(try Self.filtersWritten(root) == ["read": true, "write": ["realm_id": "%%user.id"]])
        }
    }

    private static func filtersWritten(_ root: String) throws -> JSON? {
        let text = try String(contentsOfFile: root + "/data_sources/m/default_rule.json", encoding: .utf8)
        return try JSON.parse(text)["roles"]?.array?.first?["document_filters"]
    }

    @Test func `a key of several types is queryable without an index`() async throws {
        var files = Self.export("true")
        files["data_sources/m/app/people/schema.json"] = Self.user.replacingOccurrences(
            of: #""realm_id": { "bsonType": "string" }"#, with: #""realm_id": { "bsonType": "long" }"#)
        try await ExportCheckTests.with(files) { root in
            let migration = try PartitionMigration(at: root)
            let sync = try #require(migration.changes.first { $0.path == "sync/config.json" })
            #expect(try JSON.parse(sync.after)["indexed_queryable_fields_names"] == nil)
            #expect(migration.notes.contains { $0.contains("queryable without an index") })
        }
    }

    @Test func `an app without partitions is an error that says so`() async throws {
        let error = await #expect(throws: SluiceError.self) {
            try await ExportCheckTests.with(ExportCheckTests.plain) { _ = try PartitionMigration(at: $0) }
        }
        #expect(error?.code == .configInvalid && error?.message == "The app does not use partition-based sync.")
    }

    /// No source may trap or run without end, whatever is cut from it or put into it.
    @Test(arguments: seeds(20)) func `damaged sources are reasons`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        var text = Array(Self.bucket)
        let marks = Array("(){}[]=>!&|`$\"'\\.?:;,+-0aé\n")
        for _ in 0..<1 + random.below(6) where !text.isEmpty {
            switch random.below(4) {
            case 0: text.remove(at: random.below(text.count))
            case 1: text.insert(random.pick(marks), at: random.below(text.count))
            case 2: text.insert(contentsOf: "[99999999999999999999]", at: random.below(text.count))
            default: text.removeSubrange(random.below(text.count)...)
            }
        }
        let source = String(text)
        try await ExportCheckTests.with(Self.export(Self.function("canRead"), functions: ["canRead": source])) { root in
            let denied = try PartitionMigration(at: root).denied
            let filter = try Self.filters(root)["read"]
            #expect(denied.isEmpty || (denied.count == 1 && filter == false), "seed \(seed): \(source)")
            // Whatever is left of the function, it permits no partition that the whole one denies.
            #expect(filter != true, "seed \(seed): \(source)")
        }
    }
}
