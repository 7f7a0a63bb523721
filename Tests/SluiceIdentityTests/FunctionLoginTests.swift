import IdentityTestSupport
import Logging
import SluiceCore
import SluiceIdentity
import SluicePorts
import SluiceValues
import Testing

@Suite struct `A login by a function` {
    private static func identity(_ body: JSON, _ http: ScriptedHTTP) async throws(SluiceError) -> ProvenIdentity {
        let function = AppFunction(
            "login", isPrivate: true, target: .webhook(WebhookTarget(url: "https://hooks.example/login", secret: "hook")))
        let functions = FunctionDispatcher(
            [function], of: .init(id: "shop"), keys: ["hook": Array("key".utf8)],
            ports: .init(http: http, environment: ManualEnvironment(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
        let logins = TokenLogins([FunctionLogin.provider: .function(FunctionLogin("login", of: functions))])
        return try await logins.identity(by: FunctionLogin.provider, body)
    }

    private static func answering(_ answer: JSON) -> ScriptedHTTP {
        ScriptedHTTP { _ in OutboundAnswer(status: 200, body: answer.utf8) }
    }

    @Test func `passes the payload on, and takes a text or an object with an id`() async throws {
        let http = Self.answering(["result": "ada"])
        let identity = try await Self.identity(["user": "a", "pin": 7, "options": ["device": [:]]], http)
        #expect(identity == ProvenIdentity(provider: "custom-function", id: "ada", data: .object([])))
        let sent = try JSON.parse(try #require(http.requests.first).body)
        #expect(sent["arguments"] == [["user": "a", "pin": 7]] && sent["user"] == .null)
        let named = try await Self.identity([:], Self.answering(["result": ["id": "ada", "name": "Ada"]]))
        #expect(named == ProvenIdentity(provider: "custom-function", id: "ada", data: ["name": "Ada"]))
    }

    @Test func `is rejected with the function's own text`() async {
        let error = await Self.failure(Self.answering(["error": ["message": "wrong pin"]]))
        #expect(error?.code == .loginTokenRejected && error?.message == "wrong pin")
    }

    @Test(arguments: [.null, 7, "", ["name": "Ada"], ["id": 7], .string(String(repeating: "x", count: 2_000))] as [JSON])
    func `is an error of the function without an id`(result: JSON) async {
        #expect(await Self.failure(Self.answering(.object([.init("result", result)])))?.code == .functionFailed)
    }

    @Test func `waits for a service that is away, and is no wrong login`() async {
        #expect(await Self.failure(ScriptedHTTP { _ in OutboundAnswer(status: 503) })?.code == .functionUnavailable)
        let late = ScriptedHTTP { _ throws(SluiceError) in throw SluiceError(.outboundTimeout, "Late.") }
        #expect(await Self.failure(late)?.code == .functionTimeout)
    }

    private static func failure(_ http: ScriptedHTTP) async -> SluiceError? {
        do throws(SluiceError) {
            _ = try await identity(["pin": 1], http)
            return nil
        } catch {
            return error
        }
    }
}
