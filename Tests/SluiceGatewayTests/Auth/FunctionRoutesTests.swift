import HTTPTypes
import IdentityTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluicePorts
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(1)))
struct `Calls of functions by clients` {
    private static let path = "/api/client/v2.0/app/shop/functions/call"

    private static func fixture(
        _ http: ScriptedHTTP, _ change: (inout AppFunction) -> Void = { _ in }
    ) async throws -> (AuthFixture, token: String, user: String) {
        var function = AppFunction("sum", target: .webhook(WebhookTarget(url: "https://hooks.example/sum", secret: "hook")))
        change(&function)
        let functions = FunctionDispatcher(
            [function, AppFunction("hidden", isPrivate: true, target: function.target)], of: .init(id: "shop"),
            keys: ["hook": Array("key".utf8)],
            ports: .init(
                http: http, environment: ManualEnvironment(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
        let fixture = try await AuthFixture(functions: functions)
        let login = try await fixture.call(.post, "/api/client/v2.0/app/shop/auth/providers/anon-user/login", .object([]))
        return (fixture, try #require(login.json["access_token"]?.string), try #require(login.json["user_id"]?.string))
    }

    private static func answering(_ result: JSON) -> ScriptedHTTP {
        ScriptedHTTP { _ in OutboundAnswer(status: 200, body: JSON.object([.init("result", result)]).utf8) }
    }

    @Test func `reach the service with the user, and return its result as it is`() async throws {
        let result: JSON = ["total": ["$numberLong": "3"], "list": [1, .null]]
        let http = Self.answering(result)
        let (fixture, token, user) = try await Self.fixture(http)
        let answer = try await fixture.call(
            .post, Self.path, ["name": "sum", "arguments": [["$numberInt": "1"], "x"], "service": ""], token: token)
        #expect(answer.status == 200 && answer.json == result)
        let body = try JSON.parse(try #require(http.requests.first).body)
        #expect(body["arguments"] == [["$numberInt": "1"], "x"] && body["user"]?["id"]?.string == user)
        // Arguments may be left out.
        #expect(try await fixture.call(.post, Self.path, ["name": "sum"], token: token).status == 200)
    }

    @Test func `return an object that looks like an error in a form that clients do not take for one`() async throws {
        let (fixture, token, _) = try await Self.fixture(Self.answering(["error": "none today"]))
        let answer = try await fixture.call(.post, Self.path, ["name": "sum", "arguments": []], token: token)
        #expect(answer.status == 200 && answer.json == ["error": "none today"])
        #expect(answer.headers[.contentType] == "application/json; charset=utf-8")
    }

    @Test func `need a token of the app's users`() async throws {
        let http = Self.answering(1)
        let (fixture, token, user) = try await Self.fixture(http)
        #expect(try await fixture.call(.post, Self.path, ["name": "sum"]).status == 401)
        #expect(try await fixture.call(.post, Self.path, ["name": "sum"], token: "x").status == 401)
        let other = try await fixture.call(.post, "/api/client/v2.0/app/other/functions/call", ["name": "sum"], token: token)
        #expect(other.status == 404)
        try await fixture.users.setDisabled(true, of: user)
        let disabled = try await fixture.call(.post, Self.path, ["name": "sum"], token: token)
        #expect(disabled.status == 401 && disabled.json["error_code"] == "UserDisabled")
        #expect(http.requests.isEmpty)
    }

    @Test func `have the errors that the SDKs know`() async throws {
        let cases: [(OutboundAnswer, Int, ErrorCode)] = [
            (OutboundAnswer(status: 200, body: Array(#"{"error":{"message":"no stock"}}"#.utf8)), 400, .functionFailed),
            (OutboundAnswer(status: 500), 503, .functionUnavailable),
        ]
        for (script, status, code) in cases {
            let (fixture, token, _) = try await Self.fixture(ScriptedHTTP { _ in script })
            let answer = try await fixture.call(.post, Self.path, ["name": "sum"], token: token)
            #expect(answer.status == status && answer.json["error_code"]?.string == "FunctionExecutionError", "\(answer.json.text)")
            #expect(answer.json["code"]?.int == Int64(code.rawValue))
            #expect(answer.headers[.contentType] == "application/json")
        }
        let late = ScriptedHTTP { _ throws(SluiceError) in throw SluiceError(.outboundTimeout, "Late.", value: "hooks.example") }
        let (fixture, token, _) = try await Self.fixture(late)
        let timeout = try await fixture.call(.post, Self.path, ["name": "sum"], token: token)
        #expect(timeout.status == 504 && timeout.json["error_code"] == "ExecutionTimeLimitExceeded")
        #expect(timeout.json["code"]?.int == Int64(ErrorCode.functionTimeout.rawValue))
        #expect(!timeout.json.text.contains("hooks.example"))
        for name in ["hidden", "none"] {
            let absent = try await fixture.call(.post, Self.path, ["name": .string(name)], token: token)
            #expect(absent.status == 404 && absent.json["error_code"] == "FunctionNotFound")
            #expect(absent.json["error"]?.string == "function not found: '\(name)'")
        }
        let (closed, another, _) = try await Self.fixture(Self.answering(1)) { $0.condition = .constant(false) }
        let refused = try await closed.call(.post, Self.path, ["name": "sum"], token: another)
        #expect(refused.status == 403 && refused.json["error_code"] == "NoMatchingRuleFound")
        #expect(refused.json["code"]?.int == Int64(ErrorCode.functionRefused.rawValue))
    }

    @Test func `are refused if they are malformed, too large, or for a collection`() async throws {
        let http = Self.answering(1)
        let (fixture, token, _) = try await Self.fixture(http)
        for body: JSON in [[:], ["name": 1], ["name": ""], ["name": "sum", "arguments": ["a": 1]], []] {
            #expect(try await fixture.call(.post, Self.path, body, token: token).status == 400, "\(body.text)")
        }
        let large = try await fixture.call(
            .post, Self.path, ["name": "sum", "arguments": [.string(String(repeating: "x", count: 1 << 20))]], token: token)
        #expect(large.status == 413)
        let collection = try await fixture.call(
            .post, Self.path, ["name": "find", "arguments": [], "service": "mongodb-atlas"], token: token)
        #expect(collection.status == 400 && collection.json["error_code"] == "NotCallable")
        #expect(http.requests.isEmpty)
    }
}
