import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceSDK
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// Functions and logins of an app in a plugin, from the SDK through a gateway to the plugin's own process.
@Suite(.timeLimit(.minutes(5))) struct `Functions in a plugin` {
    private static let roles = """
        {
            "database": "public", "collection": "orders",
            "roles": [
                {
                    "name": "chief", "apply_when": { "%%true": { "%function": { "name": "isChief", "arguments": ["%%user.data.name"] } } },
                    "document_filters": { "read": true, "write": true }, "read": true, "write": true, "insert": true, "delete": true
                },
                {
                    "name": "north", "apply_when": {},
                    "document_filters": { "read": { "store": "north" }, "write": { "store": "north" } },
                    "read": true, "write": true, "insert": true, "delete": true
                }
            ]
        }
        """

    private static func list(chiefs: [String], _ plugin: String = "FrontDesk") throws -> String {
        let file = Built.plugin(plugin)
        let config = plugin == "FrontDesk" ? JSON.object([.init("chiefs", .array(chiefs.map { .string($0) }))]).text : "null"
        return """
            { "plugins": [{ "file": "\(file)", "sha256": "\(try PluginList.sha256(of: file))", "config": \(config) }] }
            """
    }

    private static func files(chiefs: [String] = ["Bearer of ann"]) throws -> [String: String] {
        let names = ["add", "fail", "crash", "hang", "unknown"].map { #"{ "name": "\#($0)" }"# }
        return [
            "functions/config.json": """
            [
                \(names.joined(separator: ", ")), { "name": "isChief", "private": true }, { "name": "enter", "private": true },
                { "name": "addAsSystem", "run_as_system": true, "can_evaluate": { "%%user.data.name": "Bearer of ann" } }
            ]
            """,
            "sluice.json": """
            { "functions": { "*": { "url": "plugin:FrontDesk" }, "hang": { "url": "plugin:FrontDesk", "timeout_ms": 500 } } }
            """,
            "auth/providers.json": """
            {
                "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false },
                "custom-function": {
                    "name": "custom-function", "type": "custom-function", "disabled": false, "config": { "authFunctionName": "enter" }
                }
            }
            """,
            "plugins.json": try list(chiefs: chiefs), ShopApp.table("orders", "rules"): roles,
        ]
    }

    private static func login(_ gateway: RunningGateway, _ badge: String) async throws -> User {
        let folder = try Phone.Folder()
        let app = App(id: gateway.app, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder.url))
        return try await app.login(credentials: .function(payload: ["badge": .string(badge)]))
    }

    private static func orders(_ user: User) async throws -> Set<String> {
        var configuration = user.flexibleSyncConfiguration(
            initialSubscriptions: { $0.append(QuerySubscription<Order>(name: "all", where: "store IN {'north', 'south'}")) })
        configuration.objectTypes = [Order.self, Tag.self]
        let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
        return Set(realm.objects(Order.self).map(\._id))
    }

    @MainActor
    @Test func `log a user in, answer the user, and decide on the role of the session`() async throws {
        try await RunningGateway.with(files: try Self.files()) { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store) VALUES ('n', 'north'), ('s', 'south')")
            let (ann, bob) = (try await Self.login(gateway, "ann"), try await Self.login(gateway, "bob"))
            #expect(try await Self.login(gateway, "ann").id == ann.id && ann.profile.name == "Bearer of ann")
            #expect(ann.identities == [UserIdentity(providerType: "custom-function", identifier: "ann")])
            let refused = await #expect(throws: AppError.self) { try await Self.login(gateway, "guest-1") }
            #expect(refused?.code == .authError && refused?.message == "Show a badge." && refused?.httpStatusCode == 401)

            let sum = try await ann.functions.add(1, 2, .int64(39))
            #expect(sum == ["sum": .int64(42), "user": .string(ann.id), "as": .string(ann.id)])
            let failed = await #expect(throws: AppError.self) { try await ann.functions.add([]) }
            #expect(failed?.code == .functionExecutionError && failed?.message == "There is nothing to add.")
            for name in ["isChief", "enter", "nothing"] {
                let function: FunctionCallable = ann.functions[dynamicMember: name]
                let absent = await #expect(throws: AppError.self) { try await function([]) }
                #expect(absent?.code == .functionNotFound, "\(name)")
            }
            let closed = await #expect(throws: AppError.self) { try await bob.functions.addAsSystem(1) }
            #expect(closed?.httpStatusCode == 403)
            #expect(try await ann.functions.addAsSystem(1) == ["sum": .int64(1), "user": .string(ann.id), "as": "system"])

            #expect(try await Self.orders(ann) == ["n", "s"])
            #expect(try await Self.orders(bob) == ["n"])

            let metrics = try await gateway.text("/metrics")
            #expect(metrics.contains(#"sluice_function_calls_total{function="add"} 2"#), "\(metrics)")
            #expect(metrics.contains(#"sluice_function_failures_total{function="add"} 1"#))
            #expect(metrics.contains(#"sluice_function_calls_total{function="enter"} 4"#))
            #expect(metrics.contains(#"sluice_plugin_calls_total{hook="authenticate"}"#))
            let console = try await gateway.text("/console")
            #expect(console.contains("the plugin FrontDesk"), "\(console)")
        }
    }

    @Test func `leave their sessions alone, and show no client what is for operators`() async throws {
        let log = LinesOfLog()
        try await RunningGateway.with(files: try Self.files(), logger: Logger(label: "test") { _ in log }) { gateway in
            let token = try await gateway.anonymousToken()
            let session = try await gateway.openSession(["Order"])
            let cases = [
                ("fail", 503, ErrorCode.functionUnavailable, "FunctionExecutionError"),
                ("crash", 503, .functionUnavailable, "FunctionExecutionError"),
                ("hang", 504, .functionTimeout, "ExecutionTimeLimitExceeded"), ("unknown", 400, .functionFailed, "FunctionExecutionError"),
            ]
            for (name, status, code, word) in cases {
                let answer = try await gateway.request(
                    "POST", "/api/client/v2.0/app/shop/functions/call", #"{"name": "\#(name)", "arguments": []}"#, token: token)
                #expect(answer.status == status && answer.code == Int(code.rawValue), "\(answer)")
                #expect(answer.json["error_code"]?.string == word, "\(answer)")
                for hidden in ["FrontDesk", "/secret/place", "signal", "call_function"] {
                    #expect(!answer.json.text.contains(hidden), "\(answer)")
                }
            }
            // The process of the rules did not end with that of the functions.
            let plugins = try await gateway.request("GET", "/admin/v1/plugins", admin: true).json["generations"]?.array?.first?["plugins"]
            let desks = (plugins?.array ?? []).filter { $0["name"] == "FrontDesk" }
            #expect(desks.map { $0["for_functions"] } == [false, true], "\(desks)")
            #expect(desks.first?["hosts_ended"] == 0 && (desks.last?["hosts_ended"]?.int ?? 0) >= 2, "\(desks)")
            let again = try await gateway.request(
                "POST", "/api/client/v2.0/app/shop/functions/call", #"{"name": "add", "arguments": [1, 2]}"#, token: token)
            #expect(again.status == 200 && again.json["sum"] == ["$numberLong": "3"], "\(again)")
            #expect(session.error == nil)
            session.close()
        }
    }

    @Test func `are those of the edited directory after a reload of the plugin`() async throws {
        let folder = try Phone.Folder()
        let files = ShopApp.files.merging(try Self.files(chiefs: [])) { $1 }
        for (path, text) in files { try folder.put(text, at: path) }
        try await RunningGateway.deploy { deployment in
            try await deployment.run(files, directory: folder.url.path) { @MainActor gateway in
                try await gateway.sql("INSERT INTO orders (_id, store) VALUES ('n', 'north'), ('s', 'south')")
                let ann = try await Self.login(gateway, "ann")
                #expect(try await Self.orders(ann) == ["n"])
                try folder.put(try Self.list(chiefs: ["Bearer of ann"]), at: "plugins.json")
                try await gateway.untilMetric("sluice_rule_generation", is: 2)
                // The result for the rules before is not the result for these.
                #expect(try await Self.orders(try await Self.login(gateway, "ann")) == ["n", "s"])
                #expect(try await ann.functions.add(1) == ["sum": .int64(1), "user": .string(ann.id), "as": .string(ann.id)])
                // A directory whose functions have no plugin any more is refused, and the plugin goes on.
                try folder.put(try Self.list(chiefs: [], "DenyAllC"), at: "plugins.json")
                try await gateway.untilMetric("sluice_rules_refused_total", is: 1)
                #expect(try await ann.functions.add(2) == ["sum": .int64(2), "user": .string(ann.id), "as": .string(ann.id)])
            }
        }
    }

    private static let callersFiles = [
        "functions/config.json": """
        [
            { "name": "admit", "private": true }, { "name": "confirm", "private": true }, { "name": "reset", "private": true },
            { "name": "greet", "private": true }, { "name": "file", "private": true }
        ]
        """,
        "sluice.json": #"{ "functions": { "*": { "url": "plugin:FrontDesk" } } }"#,
        "auth/custom_user_data.json": #"{ "enabled": true, "on_user_creation_function_name": "admit" }"#,
        "auth/providers.json": """
        {
            "local-userpass": {
                "name": "local-userpass", "type": "local-userpass", "disabled": false,
                "config": {
                    "autoConfirm": false, "runConfirmationFunction": true, "confirmationFunctionName": "confirm",
                    "runResetFunction": true, "resetFunctionName": "reset"
                }
            }
        }
        """,
        "triggers/onLogin.json": """
        {
            "name": "onLogin", "type": "AUTHENTICATION", "disabled": false, "function_name": "greet",
            "config": { "operation_type": "LOGIN", "providers": ["local-userpass"] }
        }
        """,
        "triggers/onOrder.json": """
        {
            "name": "onOrder", "type": "DATABASE", "disabled": false, "function_name": "file",
            "config": {
                "operation_types": ["INSERT"], "service_name": "postgres", "database": "public", "collection": "orders",
                "match": {}, "project": {}, "full_document": true
            }
        }
        """,
    ]

    /// The plugin rejects each call that has a user, acts for one, or is not what its name says.
    @Test func `admit and confirm users, reset passwords, and learn of logins and changes`() async throws {
        var files = Self.callersFiles
        files["plugins.json"] = try Self.list(chiefs: [])
        try await RunningGateway.with(files: files) { gateway in
            let folder = try Phone.Folder()
            let app = App(id: gateway.app, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder.url))
            let (auth, eve) = (app.emailPasswordAuth, "eve@example.com")
            let known = await #expect(throws: AppError.self) { try await auth.registerUser(email: "no@example.com", password: "secret-1") }
            #expect(known?.code == .functionExecutionError && known?.message == "We know you.")
            let spam = await #expect(throws: AppError.self) { try await auth.registerUser(email: "spam@example.com", password: "secret-1") }
            #expect(spam?.httpStatusCode == 400 && spam?.message.contains("failed to confirm user spam@example.com") == true)
            try await auth.registerUser(email: eve, password: "secret-1")
            let wrong = await #expect(throws: AppError.self) {
                try await auth.callResetPasswordFunction(email: eve, password: "secret-2", args: ["red"])
            }
            #expect(wrong?.message.contains("failed to reset password for user \(eve)") == true, "\(String(describing: wrong))")
            try await auth.callResetPasswordFunction(email: eve, password: "secret-2", args: ["blue"])
            let user = try await app.login(credentials: .emailPassword(email: eve, password: "secret-2"))
            #expect(try await gateway.count("SELECT count(*) FROM sluice.user_account") == 1 && !user.id.isEmpty)
            try await gateway.sql("INSERT INTO orders (_id, store) VALUES ('n', 'north')")
            for name in ["greet", "file"] {
                let isServed = try await eventually(every: .milliseconds(50)) {
                    try await gateway.text("/metrics").contains(#"sluice_plugin_counts_total{name="FrontDesk.served_\#(name)"} 1"#)
                }
                #expect(isServed, "\(name)")
            }
            let metrics = try await gateway.text("/metrics")
            // `admit` is asked once the address is confirmed.
            for (name, calls) in [("confirm", 3), ("admit", 2), ("reset", 2), ("greet", 1), ("file", 1)] {
                #expect(metrics.contains("sluice_function_calls_total{function=\"\(name)\"} \(calls)\n"), "\(name) in \(metrics)")
                let failure = "sluice_function_failures_total{function=\"\(name)\"} "
                #expect(metrics.contains(failure) == (name == "admit") && (name != "admit" || metrics.contains("\(failure)1\n")), "\(name)")
            }
        }
    }

    /// The error of a gateway that does not start.
    private static func startError(_ files: [String: String]) async -> SluiceError? {
        do {
            try await RunningGateway.with(files: files) { _ in }
            return nil
        } catch {
            return SluiceError(of: error)
        }
    }

    @Test func `whose plugin is absent or has no such hook keep a gateway from starting`() async throws {
        for plugin in ["DenyAllC", "FaultyC"] {
            let error = await Self.startError(try Self.files().merging(["plugins.json": try Self.list(chiefs: [], plugin)]) { $1 })
            #expect(error?.code == .configMissing && error?.message.contains("sluice.json:1:") == true, "\(String(describing: error))")
            #expect(error?.message.contains("There is no plugin 'FrontDesk'") == true && error?.message.contains("'\(plugin)'") == true)
        }
        var files = try Self.files()
        files["plugins.json"] = try Self.list(chiefs: [], "DenyAllC")
        files["sluice.json"] = #"{ "functions": { "*": { "url": "plugin:DenyAllC" } } }"#
        let error = await Self.startError(files)
        #expect(
            error?.code == .configInvalid && error?.message.contains("has no hook call_function") == true, "\(String(describing: error))")
        #expect(error?.message.contains("With the hook the app has no plugin.") == true)
    }
}
