import Foundation
import GatewayTestSupport
import NIOCore
import NetTestSupport
import SluiceCore
import SluiceSDK
import SluiceValues
import Testing

/// Functions that a gateway calls for its users: before an account exists, and behind events.
@Suite(.timeLimit(.minutes(2))) struct `Functions that the gateway calls` {
    private static func body(_ request: String) -> JSON? {
        request.split(separator: "\r\n\r\n", maxSplits: 1).last.flatMap { try? JSON.parse(Array($0.utf8)) }
    }

    /// Refuses users whose address begins with `no`, and accepts every event.
    private static func service() async throws -> RawPeer {
        try await RawPeer { request, channel in
            let argument = body(request)?["arguments"]?.array?.first
            let isRefused = argument?["data"]?["email"]?.string?.hasPrefix("no") == true
            let answer: JSON = isRefused ? ["error": ["message": "We know you."]] : ["result": .null]
            channel.writeAndFlush(RawPeer.text("200 OK", answer.text), promise: nil)
        }
    }

    private static func files(_ service: RawPeer) -> [String: String] {
        [
            "functions/config.json": #"[{ "name": "admit", "private": true }, { "name": "greet", "private": true }]"#,
            "triggers/onLogin.json": """
            {
                "name": "onLogin", "type": "AUTHENTICATION", "disabled": false, "function_name": "greet",
                "config": { "operation_type": "LOGIN", "providers": ["local-userpass"] }
            }
            """,
            "auth/custom_user_data.json": #"{ "enabled": true, "on_user_creation_function_name": "admit" }"#,
            "secrets.json": #"{ "hook": "a key of the service" }"#,
            "sluice.json": """
            { "functions": { "*": { "url": "http://127.0.0.1:\(service.port)/", "secret": "hook", "allow_private_addresses": true } } }
            """,
        ]
    }

    @Test func `log users in, each as the same user for ever`() async throws {
        let service = try await RawPeer { request, channel in
            let pin = Self.body(request)?["arguments"]?.array?.first?["pin"]?.string.flatMap { Int($0) } ?? 0
            let answer: JSON = pin > 0 ? ["result": ["id": .string("user-\(pin)"), "name": "Ada"]] : ["error": ["message": "wrong pin"]]
            channel.writeAndFlush(RawPeer.text("200 OK", answer.text), promise: nil)
        }
        var files = Self.files(service)
        files["functions/config.json"] = #"[{ "name": "enter", "private": true }]"#
        files["triggers/onLogin.json"] = ""
        files["auth/custom_user_data.json"] = ""
        files["auth/providers.json"] = """
            {
                "custom-function": {
                    "name": "custom-function", "type": "custom-function", "disabled": false, "config": { "authFunctionName": "enter" }
                }
            }
            """
        try await RunningGateway.with(files: files) { gateway in
            func login(_ pin: String) async throws -> User {
                let folder = try Phone.Folder()
                let app = App(id: gateway.app, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder.url))
                return try await app.login(credentials: .function(payload: ["pin": .string(pin)]))
            }
            let (first, again, other) = (try await login("1"), try await login("1"), try await login("2"))
            #expect(first.id == again.id && first.id != other.id)
            #expect(first.profile.name == "Ada")
            #expect(first.identities == [UserIdentity(providerType: "custom-function", identifier: "user-1")])
            let wrong = await #expect(throws: AppError.self) { try await login("0") }
            #expect(wrong?.code == .authError && wrong?.message == "wrong pin" && wrong?.httpStatusCode == 401)
        }
        await service.close()
    }

    @Test func `decide who becomes a user, and learn of each login`() async throws {
        let service = try await Self.service()
        try await RunningGateway.with(files: Self.files(service)) { gateway in
            let folder = try Phone.Folder()
            let app = App(id: gateway.app, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder.url))
            let refused = await #expect(throws: AppError.self) {
                try await app.emailPasswordAuth.registerUser(email: "no@example.com", password: "password")
            }
            #expect(refused?.code == .functionExecutionError && refused?.message == "We know you.")
            #expect(try await gateway.count("SELECT count(*) FROM sluice.user_account") == 0)
            try await app.emailPasswordAuth.registerUser(email: "yes@example.com", password: "password")
            let user = try await app.login(credentials: .emailPassword(email: "yes@example.com", password: "password"))
            // Not of the trigger's provider.
            _ = try await app.login(credentials: .anonymous)
            var called: [(function: String, argument: JSON?)] = []
            while called.last?.function != "greet", let request = await service.next(), let body = Self.body(request) {
                #expect(body["user"] == .null && body["run_as"] == "system")
                called.append((body["function"]?.string ?? "", body["arguments"]?.array?.first))
            }
            #expect(called.prefix(2).map(\.function) == ["admit", "admit"])
            #expect(called[1].argument?["id"]?.string == user.id)
            let event = called.last?.argument
            #expect(event?["operationType"] == "LOGIN" && event?["providers"] == ["local-userpass"])
            #expect(event?["user"]?["id"]?.string == user.id && event?["user"]?["data"]?["email"] == "yes@example.com")
            // Both accounts and both logins.
            #expect(try await gateway.eventually("SELECT count(*) FROM sluice.user_event", is: 0))
            try await gateway.untilMetric(#"sluice_user_events_total{kind="logged in"}"#, is: 2)
            #expect(try await gateway.metric(#"sluice_trigger_calls_total{trigger="onLogin"}"#) == 1)
        }
        await service.close()
    }
}
