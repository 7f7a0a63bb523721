import FoundationEssentials
import Glibc
import Logging
import SluiceCore
import SluicePluginHost
import SluicePorts
import SluiceValues
import Synchronization

/// The plugin as the build put it beside the test bundle: it is tested through its interface, like anybody's.
private enum Library {
    /// `SLUICE_TEST_PLUGIN_HOST` is the folder of another build, such as one with a sanitizer (`dev/asan`), whose host it needs.
    static let hosted = ProcessInfo.processInfo.environment["SLUICE_TEST_PLUGIN_HOST"]

    static let folder: String = {
        if let hosted { return hosted }
        var buffer = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        let path = String(decoding: buffer.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return path.split(separator: "/").dropLast().map { "/" + $0 }.joined()
    }()
}

/// Collects warnings.
private final class Warnings: LogHandler, Sendable {
    let texts = Mutex<[String]>([])
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .trace }
        set {}
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    func log(event: LogEvent) {
        guard event.level == .warning else { return }
        texts.withLock { $0.append(event.metadata.map { "\($0["text"] ?? "")" } ?? "") }
    }
}

/// An app with one data source, and the questions that tests put to its rules.
struct App {
    var directory: [String: String] = [:]
    var queryable: Set<String> = [
        "owner_id", "team", "collaborators", "size", "open", "ref", "day", "tag", "account", "ratio", "weight", "extra",
        "note", "parent", "notes",
    ]

    var isDevelopment = false
    /// The columns of the table of custom user data.
    var customDataFields: [String]?

    /// The same in development mode, in which fields may come later.
    var inDevelopment: App {
        var app = self
        app.isDevelopment = true
        return app
    }

    static let schema = Schema([
        ObjectType(
            name: "Task",
            properties: [
                property(1, "_id", .objectId), property(2, "owner_id", .string), property(3, "team", .string),
                property(4, "collaborators", .string, .list), property(5, "size", .int), property(6, "open", .bool),
                property(7, "title", .string), property(8, "ref", .objectId), property(9, "day", .timestamp),
                property(10, "tag", .uuid), property(11, "place", .embedded("Place")), property(12, "account", .decimal),
                property(13, "address", .embedded("Address")), property(14, "places", .embedded("Address"), .list),
                property(15, "ratio", .double), property(16, "weight", .float), property(17, "extra", .mixed),
                property(18, "note", .link(to: "Note")), property(19, "parent", .link(to: "Task")),
                property(20, "notes", .link(to: "Note"), .list),
            ]),
        ObjectType(name: "Place", kind: .embedded, properties: [property(1, "city", .string)], primaryKey: nil),
        ObjectType(name: "Spot", kind: .embedded, properties: [property(1, "x", .int), property(2, "y", .int)], primaryKey: nil),
        ObjectType(
            name: "Address", kind: .embedded,
            properties: [property(1, "city", .string), property(2, "zip", .string), property(3, "spot", .embedded("Spot"))],
            primaryKey: nil),
        ObjectType(name: "Note", properties: [property(1, "_id", .string), property(2, "owner_id", .string)]),
        ObjectType(name: "Event", kind: .asymmetric, properties: [property(1, "_id", .string), property(2, "owner_id", .string)]),
    ])

    static let task = schema["Task"]!

    private static func property(
        _ id: UInt32, _ name: String, _ type: PropertyType, _ collection: CollectionKind = .none
    ) -> Property {
        Property(id: id, name: name, type: type, collection: collection, isOptional: name != "_id" && collection == .none)
    }

    /// - Parameters:
    ///   - roles: text of the `roles` list of Task.
    ///   - defaults: text of the `roles` list of the data source.
    init(roles: String? = nil, defaults: String? = nil) {
        for (folder, title) in [("tasks", "Task"), ("notes", "Note"), ("events", "Event")] {
            directory["data_sources/main/app/\(folder)/schema.json"] = #"{"title": "\#(title)", "bsonType": "object"}"#
        }
        if let roles { directory[Self.rulesPath] = #"{"collection": "tasks", "database": "app", "roles": \#(roles)}"# }
        if let defaults { directory["data_sources/main/default_rule.json"] = #"{"roles": \#(defaults)}"# }
    }

    static let rulesPath = "data_sources/main/app/tasks/rules.json"

    /// One role for everybody with the given filters.
    static func filters(read: String, write: String, more: String = "") -> App {
        App(
            roles: """
                [{"name": "all", "apply_when": true, "read": true, "write": true\(more),
                  "document_filters": {"read": \(read), "write": \(write)}}]
                """)
    }

    func with(_ path: String, _ text: String) -> App {
        var app = self
        app.directory[path] = text
        return app
    }

    /// The session plan of a user.
    func plan(for user: UserContext, types: [String] = ["Task", "Note", "Event"]) async throws -> SessionPlan {
        try await configured { chain, _ in try await chain.openSession(user: user, types: types) ?? SessionPlan(types: [:]) }
    }

    func task(for user: UserContext) async throws -> TypePlan { try await plan(for: user)["Task"] }

    /// What the rules say to single writes.
    func verdicts(on writes: [ProposedWrite], by user: UserContext) async throws -> [WriteVerdict] {
        try await configured { chain, _ in await chain.checkWrites(user: user, writes: writes, schema: Self.schema) }
    }

    /// The read query for a user, the write filter being false.
    static func query(_ filter: String, for user: UserContext = user("ann")) async throws -> String {
        try await App.filters(read: filter, write: "false").task(for: user).read
    }

    /// A filter of Task, and values of one property to decide about.
    struct Question {
        let property: String
        let filter: String
        let values: [Value]
    }

    /// Returns the query that each filter comes to, and the verdicts on inserts of its values by a role with the filter as `insert`.
    ///
    /// One app answers all of them, with two roles for each, since a configuration takes longer than a hundred decisions.
    static func answers(to questions: [Question]) async throws -> [(query: String, verdicts: [WriteVerdict])] {
        let roles = questions.enumerated().flatMap { number, question in
            [
                #"{"name": "q\#(number)", "apply_when": {"%%user.id": "q\#(number)"}, "read": true, "write": true,"#
                    + #""document_filters": {"read": \#(question.filter), "write": false}}"#,
                #"{"name": "i\#(number)", "apply_when": {"%%user.id": "i\#(number)"}, "read": true, "write": true,"#
                    + #""document_filters": {"read": true, "write": true}, "insert": \#(question.filter)}"#,
            ]
        }
        return try await App(roles: "[\(roles.joined(separator: ","))]").configured { chain, _ in
            var answers: [(query: String, verdicts: [WriteVerdict])] = []
            for (number, question) in questions.enumerated() {
                let plan = try await chain.openSession(user: user("q\(number)"), types: ["Task"]) ?? SessionPlan(types: [:])
                let writes = question.values.map {
                    ProposedWrite(type: task, operation: .insert, before: nil, after: [question.property: $0])
                }
                answers.append((plan["Task"].read, await chain.checkWrites(user: user("i\(number)"), writes: writes, schema: schema)))
            }
            return answers
        }
    }

    var warnings: [String] { get async throws { try await configured { _, warnings in warnings } } }

    /// Why the app is refused; nil when it is not.
    var refusal: String? {
        get async {
            do {
                try await configured { _, _ in }
                return nil
            } catch { return (error as? SluiceError)?.message ?? "\(error)" }
        }
    }

    private func configured<R>(_ body: (PluginChain, [String]) async throws -> R) async throws -> R {
        let warnings = Warnings()
        let logger = Logger(label: "test") { _ in warnings }
        var spec = PluginSpec(
            path: "\(Library.folder)/libAppServicesRules.so", mode: Library.hosted == nil ? .inProcess : .process, deadline: 30_000_000_000)
        spec.seesSecrets = true
        let chain = PluginChain(plugins: [spec], hostExecutable: "\(Library.folder)/sluice-plugin-host", logger: logger)
        try await chain.start()
        do {
            let app = AppDescription.json(
                appID: "test", directory: directory, schema: Self.schema, queryableFields: QueryableFields(global: queryable),
                isDevelopment: isDevelopment, customDataFields: customDataFields)
            try await chain.configure(app: app)
            let result = try await body(chain, warnings.texts.withLock { $0 })
            await chain.stop()
            return result
        } catch {
            await chain.stop()
            throw error
        }
    }
}

func user(_ id: String, _ customData: String = "{}", type: String = "normal") -> UserContext {
    UserContext(id: id, type: type, data: ["email": "ann@example.com"], customData: (try? JSON.parse(customData)) ?? .null)
}
