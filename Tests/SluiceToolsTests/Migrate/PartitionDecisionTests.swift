import Foundation
import Logging
import SluiceCore
import SluiceGateway
import SluicePluginHost
import SluicePorts
import SluiceTools
import SluiceValues
import Testing

/// The decisions of the roles that `sluice migrate partitions` writes, against those of App Services about partitions.
///
/// The roles run in the plugin, and its queries over objects.
struct PartitionDecisionTests {
    private static let id = "65a000000000000000000001"
    static let task = """
        { "title": "Task", "bsonType": "object", "required": ["_id"], "properties": {
          "_id": { "bsonType": "string" }, "realm_id": { "bsonType": "string" } } }
        """
    static let person = """
        { "title": "Person", "bsonType": "object", "required": ["_id"], "properties": { "_id": { "bsonType": "string" },
          "realm_id": { "bsonType": "string" }, "team": { "bsonType": "string" }, "role": { "bsonType": "string" },
          "isAdmin": { "bsonType": "bool" }, "level": { "bsonType": "long" }, "bannedAt": { "bsonType": "date" },
          "readable": { "bsonType": "array", "items": { "bsonType": "string" } },
          "memberOf": { "bsonType": "array", "items": { "title": "Membership", "bsonType": "object",
            "properties": { "partition": { "bsonType": "string" } } } } } }
        """

    /// A permission, and what App Services decides by it.
    struct Decision: CustomTestStringConvertible, Sendable {
        var permission: String
        var functions: [String: String] = [:]
        /// `true` if a role can express the permission. Otherwise it denies, with a reason.
        var isExpressible: Bool
        /// The members of the user's custom data, a partition, and `true` if the user may read it. A user without custom data has no
        /// document. A partition of nil is that of objects without one.
        var probes: [(customData: String?, partition: String?, isPermitted: Bool)]

        var testDescription: String { functions.isEmpty ? permission : functions.values.sorted().joined(separator: " ") }
    }

    static let call = #"{ "%%true": { "%function": { "name": "f", "arguments": ["%%partition"] } } }"#
    private static let find =
        "const me = await context.services.get('m').db('app').collection('people').findOne({ _id: context.user.id });"

    /// A function `f` of the partition `p`, by its statements.
    private static func function(
        _ body: String, inner: String = "return q === 'secret'", permission: String = call, isExpressible: Bool,
        _ probes: [(String?, String?, Bool)]
    ) -> Decision {
        Decision(
            permission: permission,
            functions: ["f": "exports = async function (p) { \(body) };", "inner": "exports = function (q) { \(inner) };"],
            isExpressible: isExpressible, probes: probes)
    }

    private static let expressions = [
        Decision(
            permission: #"{ "%%partition": { "%function": { "name": "f", "arguments": [] } } }"#,
            functions: ["f": "exports = () => 'PUBLIC'"], isExpressible: false, probes: [(nil, "PUBLIC", true), (nil, "x", false)]),
        Decision(
            permission: call, functions: ["f": "exports = (p) => p in context.user.custom_data.partitions"], isExpressible: false,
            probes: [(#""partitions": { "a": 1 }"#, "a", true), (#""partitions": { "a": 1 }"#, "b", false)]),
        Decision(
            permission: call, functions: ["f": "exports = (p) => p instanceof String"], isExpressible: false, probes: [(nil, "a", false)]),
        Decision(
            permission: call, functions: ["f": "exports = (p) => true\nexports = (p) => p === 'a'"], isExpressible: false,
            probes: [(nil, "a", true), (nil, "b", false)]),
        function("return p\n- 1", isExpressible: false, [(nil, "a", false)]),
        function("return p\nin context.user.custom_data", isExpressible: false, [(nil, "a", false)]),
        function("return\np === 'a'", isExpressible: true, [(nil, "a", false), (nil, "b", false)]),
        function("return p === 'a'\n", isExpressible: true, [(nil, "a", true), (nil, "b", false)]),
        function(
            "return p === `${context.user.custom_data.team - 1}`", isExpressible: false,
            [(#""team": "a""#, "a", false), (#""team": "a""#, "NaN", true)]),
        function(
            "return context.user.custom_data.isAdmin ?? p === 'a'", isExpressible: false,
            [(#""isAdmin": false"#, "a", false), (#""isAdmin": true"#, "b", true), ("", "a", true), ("", "b", false)]),
        function("return undefined ?? p === 'a'", isExpressible: true, [(nil, "a", true), (nil, "b", false)]),
    ]

    private static let documents = [
        function(
            "\(find) if (!me) return false; return me.role !== 'guest'", isExpressible: true,
            [(nil, "a", false), ("", "a", true), (#""role": "guest""#, "a", false), (#""role": "editor""#, "a", true)]),
        function(
            "\(find) return me.role !== 'guest'", isExpressible: true,
            [(nil, "a", false), ("", "a", true), (#""role": "guest""#, "a", false)]),
        function(
            "\(find) return me?.role !== 'guest'", isExpressible: true,
            [(nil, "a", true), ("", "a", true), (#""role": "guest""#, "a", false)]),
        function(
            "\(find) if (!me) { return false; } return me.bannedAt == null", isExpressible: true,
            [(nil, "a", false), ("", "a", true), (#""bannedAt": "2020-01-01T00:00:00Z""#, "a", false)]),
        function(
            "\(find) return !me.isAdmin && p === 'a'", isExpressible: true,
            [(nil, "a", false), ("", "a", true), ("", "b", false), (#""isAdmin": true"#, "a", false)]),
        function(
            "\(find) if (me === null) { return p === 'PUBLIC' } return me.team === p", isExpressible: true,
            [(nil, "PUBLIC", true), (nil, "a", false), (#""team": "a""#, "a", true), (#""team": "a""#, "PUBLIC", false)]),
        function(
            "\(find.replacing("await ", with: "")) return me.team === p", isExpressible: false,
            [(#""team": "a""#, "a", false)]),
        function(
            "\(find.replacing("await ", with: "")) return !me.isAdmin", isExpressible: false,
            [(#""isAdmin": true"#, "a", true)]),
        function(
            "return context.user.custom_data.bannedAt === null", isExpressible: false,
            [("", "a", false), (#""bannedAt": "2020-01-01T00:00:00Z""#, "a", false)]),
    ]

    private static let failure = "if (context.user.custom_data.role === 'guest') throw new Error('no');"
    private static let guest = #""role": "guest""#

    private static let failures = [
        function(
            "\(failure) return p === 'secret'",
            permission: #"{ "%not": { "%%true": { "%function": { "name": "f", "arguments": ["%%partition"] } } } }"#, isExpressible: true,
            [(guest, "a", false), (guest, "secret", false), ("", "a", true), ("", "secret", false)]),
        function(
            "\(failure) return p === 'secret'",
            permission: #"{ "$nor": [{ "%%true": { "%function": { "name": "f", "arguments": ["%%partition"] } } }] }"#, isExpressible: true,
            [(guest, "a", false), ("", "a", true), ("", "secret", false)]),
        function(
            "\(failure) return p === 'secret'",
            permission: #"{ "%%false": { "%function": { "name": "f", "arguments": ["%%partition"] } } }"#, isExpressible: true,
            [(guest, "a", false), ("", "a", true), ("", "secret", false)]),
        function(
            "return !context.functions.execute('inner', p)", inner: "\(failure) return q === 'secret'", isExpressible: true,
            [(guest, "a", false), ("", "a", true), ("", "secret", false)]),
        function("try { return p === 'a' } finally { return false }", isExpressible: false, [(nil, "a", false)]),
        function(
            "try { return context.functions.execute('inner', p) } catch (e) { return p === 'PUBLIC' }",
            inner: "\(failure) return q === 'secret'", isExpressible: false,
            [(guest, "PUBLIC", true), (guest, "a", false), ("", "PUBLIC", false), ("", "secret", true)]),
        function(
            "if (context.user.custom_data.readable.includes(p)) return true; return p === 'PUBLIC'", isExpressible: true,
            [
                ("", "PUBLIC", false), (#""readable": []"#, "PUBLIC", true), (#""readable": ["a"]"#, "a", true),
                (#""readable": []"#, "b", false),
            ]),
        function(
            "return !context.user.custom_data.readable.includes('banned')", isExpressible: true,
            [("", "a", false), (#""readable": []"#, "a", true), (#""readable": ["banned"]"#, "a", false)]),
        function(
            "return !context.user.custom_data.readable?.includes('banned')", isExpressible: true,
            [("", "a", true), (#""readable": []"#, "a", true), (#""readable": ["banned"]"#, "a", false)]),
    ]

    private static let pieces = [
        function(
            "const [kind] = p.split('='); if (kind === 'team') return context.user.custom_data.readable.includes(p); return false",
            isExpressible: false,
            [(#""readable": ["x=1", "team=2"]"#, "x=1", false), (#""readable": ["x=1", "team=2"]"#, "team=2", true)]),
        function(
            """
            const parts = p.split('='); if (parts.length !== 2) return false;
            if (parts[0] === 'team') return context.user.custom_data.readable.includes(p); return false
            """, isExpressible: false, [(#""readable": ["team=1=2"]"#, "team=1=2", false), (#""readable": ["team=1"]"#, "team=1", true)]),
        function(
            "const [kind, name] = p.split('='); return kind === 'team' && name === 'a=b'", isExpressible: true,
            [(nil, "team=a=b", false), (nil, "team=a", false)]),
        function(
            "const [kind, name] = p.split('='); return kind === 'team' && name && context.user.custom_data.readable.includes(name)",
            isExpressible: true,
            [(#""readable": ["", "a"]"#, "team=", false), (#""readable": ["", "a"]"#, "team=a", true), ("", "team=a", false)]),
    ]

    private static let values = [
        function(
            "const team = context.user.custom_data.team || 'PUBLIC'; return p === team", isExpressible: false,
            [("", "PUBLIC", true), ("", "a", false), (#""team": "a""#, "a", true), (#""team": "a""#, "PUBLIC", false)]),
        function(
            "\(find) if (!me) return false; if (!me.team) return false; return p === me.team", isExpressible: true,
            [
                ("", "a", false), (#""team": "a""#, "a", true), (#""team": "a""#, "b", false), (#""team": """#, "", false),
                (nil, "a", false),
            ]),
        function(
            "\(find) if (!me.team) return false; return p === 'PUBLIC'", isExpressible: false,
            [("", "PUBLIC", false), (#""team": "a""#, "PUBLIC", true)]),
        function(
            "if (context.user.custom_data.readable.length) return p === 'a'; return false", isExpressible: false,
            [(#""readable": []"#, "a", false), (#""readable": ["x"]"#, "a", true)]),
        function(
            "if (context.user.custom_data.role.includes('guest')) return false; return p === 'a'", isExpressible: false,
            [(#""role": "superguest""#, "a", false), (#""role": "editor""#, "a", true)]),
        function(
            "return p === 'a' && context.user.custom_data.level != '1'", isExpressible: false,
            [(#""level": 1"#, "a", false), (#""level": 2"#, "a", true)]),
        function(
            "return p === 'a' && String(context.user.custom_data.level) !== '1'", isExpressible: false,
            [(#""level": 1"#, "a", false), (#""level": 2"#, "a", true)]),
        function(
            "return context.functions.execute('inner', p) === true", inner: "return q && 'yes'", isExpressible: false, [(nil, "a", false)]),
        function("return p === String(p)", isExpressible: true, [(nil, "a", true), (nil, nil, false)]),
        function("if (p) return true; return false", isExpressible: true, [(nil, "a", true), (nil, "", false), (nil, nil, false)]),
        function(
            "const q = 'a'; if (p === 'b') { const q = p; } return p === q", isExpressible: false, [(nil, "b", false), (nil, "a", true)]),
        function(
            "switch (p) { case 'a': { const x = 1; break; } default: return false } return true", isExpressible: true,
            [(nil, "a", true), (nil, "b", false)]),
        function("return p === 99999999999999999999999", isExpressible: true, [(nil, "a", false)]),
    ]

    @Test(arguments: expressions + documents + failures + pieces + values)
    func `a role permits what the permission permits, or denies with a reason`(_ decision: Decision) async throws {
        let files = PartitionMigrationTests.export(decision.permission, "false", functions: decision.functions).merging([
            "data_sources/m/app/tasks/schema.json": Self.task, "data_sources/m/app/people/schema.json": Self.person,
        ]) { $1 }
        try await ExportCheckTests.with(files) { root in
            let migration = try PartitionMigration(at: root)
            try migration.write(to: nil)
            let app = try await ExportCheck.configuration(at: root, appID: nil)
            let decided = try await Self.permitted(decision.probes.map { ($0.customData, $0.partition) }, by: app)
            #expect(migration.denied.isEmpty == decision.isExpressible, "\(migration.denied)")
            for (probe, isPermitted) in zip(decision.probes, decided) {
                let place = "'\(probe.partition ?? "nil")' for \(probe.customData ?? "no document")"
                #expect(
                    isPermitted == (decision.isExpressible && probe.isPermitted),
                    "\(place): \(app.files["data_sources/m/default_rule.json"] ?? "")")
            }
        }
    }

    /// Returns for each user and partition whether the user sees an object of the partition.
    static func permitted(_ probes: [(customData: String?, partition: String?)], by app: AppConfiguration) async throws -> [Bool] {
        try await configured(app) { chain in
            var all: [Bool] = []
            for probe in probes {
                let members = probe.customData.map { $0.isEmpty ? #""_id": "\#(id)""# : #""_id": "\#(id)", \#($0)"# } ?? ""
                let user = UserContext(id: id, customData: try JSON.parse("{ \(members) }"))
                let plan = try await chain.openSession(user: user, types: ["Task"]) ?? SessionPlan(types: [:])
                all.append(try isSelected(by: plan["Task"].read, probe.partition, app.schema))
            }
            return all
        }
    }

    /// Runs the body with the plugin for roles.
    private static func configured<R>(_ app: AppConfiguration, _ body: (PluginChain) async throws -> R) async throws -> R {
        let path = try #require(InstalledFiles.plugin("AppServicesRules"))
        let chain = PluginChain(
            plugins: [try RuleFiles(directory: nil, inProcess: true).spec(PluginFile(path))],
            hostExecutable: try InstalledFiles.pluginHost(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await chain.start()
        let outcome: Result<R, any Error>
        do {
            try await chain.configure(
                app: AppDescription.json(
                    appID: "test", directory: app.files, schema: app.schema, queryableFields: app.queryableFields))
            outcome = .success(try await body(chain))
        } catch { outcome = .failure(error) }
        await chain.stop()
        return try outcome.get()
    }

    private static func isSelected(by query: String, _ partition: String?, _ schema: Schema) throws -> Bool {
        let type = try #require(schema["Task"])
        var rows = QueryRows(schema: schema, type: type, file: "rows")
        let object: JSON = ["_id": "1", "realm_id": partition.map { .string($0) } ?? .null]
        try rows.add(object.utf8, number: 1)
        let tool = try QueryTool(schema: schema, type: "Task", arguments: [])
        return try !tool.run(query, over: rows.graph(tool.schema)).isEmpty
    }

    /// The default role applies to classes without the partition key, too, and to those that get a schema later.
    @Test(arguments: ["true", #"{ "%%user.custom_data.isAdmin": true }"#, #"{ "%or": [{ "%%user.type": "normal" }, false] }"#])
    func `a class without the partition key has no objects for any user`(permission: String) async throws {
        for (read, write) in [(permission, permission), (permission, "false"), ("false", permission)] {
            let files = PartitionMigrationTests.export(read, write).merging([
                "data_sources/m/app/people/schema.json": Self.person,
                "data_sources/m/app/logs/schema.json": Self.task.replacing(#""Task""#, with: #""Log""#).replacing("realm_id", with: "text"),
            ]) { $1 }
            try await ExportCheckTests.with(files) { root in
                let migration = try PartitionMigration(at: root)
                #expect(migration.denied.isEmpty && migration.notes.contains { $0.hasPrefix("No client has had objects of Log") })
                try migration.write(to: nil)
                let app = try await ExportCheck.configuration(at: root, appID: nil)
                let plan = try await Self.configured(app) { chain in
                    let user = UserContext(id: Self.id, customData: ["isAdmin": true])
                    return try await chain.openSession(user: user, types: ["Task", "Log"]) ?? SessionPlan(types: [:])
                }
                #expect(plan["Task"].read != "FALSEPREDICATE", "\(read) \(write)")
                #expect(plan["Log"].read == "FALSEPREDICATE" && plan["Log"].write == "FALSEPREDICATE", "\(read) \(write): \(plan["Log"])")
                #expect(!plan["Log"].insert && !plan["Log"].delete)
            }
        }
    }
}
