import IdentityTestSupport
import Logging
import SluiceCore
import SluiceIdentity
import SluicePorts
import SluiceValues
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct `A function with a plugin` {
    private static let ada = UserContext(id: "u1", data: ["email": "ada@example.com"])

    @Test func `receives the call, the user and the bounds of its entry`() async throws {
        let plugins = ScriptedPlugins { _ in .result(["sum": 3]) }
        let functions = Self.functions(plugins) {
            $0.identity = .user(id: "u2")
            $0.target = .plugin(Self.target(milliseconds: 700, answerBytes: 30))
        }
        #expect(functions.canCall("sum"))
        let result = try await functions.call(FunctionCall("sum", arguments: [1, ["$numberInt": "2"]], caller: .user(Self.ada)))
        #expect(result == ["sum": 3])
        let call = try #require(plugins.calls.first)
        #expect(call.plugin == "Desk" && call.milliseconds == 700 && call.answerBytes == 30 && call.isFromUser && call.id.utf8.count == 32)
        #expect(call.subject == .function(name: "sum", arguments: [1, ["$numberInt": "2"]], user: Self.ada, runAs: "u2"))
    }

    @Test func `receives the gateway's own calls, with the user of rules`() async throws {
        let plugins = ScriptedPlugins { _ in .result(true) }
        let functions = Self.functions(plugins) { $0.isPrivate = true }
        _ = try await functions.call(FunctionCall("sum", arguments: [], caller: .system, id: "event 1"))
        _ = try await functions.call(FunctionCall("sum", arguments: [], caller: .rules(Self.ada)))
        #expect(plugins.calls.map(\.isFromUser) == [false, false] && plugins.calls[0].id == "event 1")
        #expect(
            plugins.calls.map(\.subject) == [
                .function(name: "sum", arguments: [], user: nil, runAs: "system"),
                .function(name: "sum", arguments: [], user: Self.ada, runAs: "u1"),
            ])
    }

    @Test func `is called only by those who may`() async throws {
        let plugins = ScriptedPlugins { _ in .result(1) }
        let hidden = Self.functions(plugins) { $0.isPrivate = true }
        #expect(await Self.failure(hidden, .user(Self.ada))?.code == .functionNotFound)
        let closed = Self.functions(plugins) { $0.condition = .constant(false) }
        #expect(await Self.failure(closed, .user(Self.ada))?.code == .functionRefused)
        #expect(plugins.calls.isEmpty)
    }

    @Test func `gives its own error to the caller`() async {
        let error = await Self.failure(Self.functions(ScriptedPlugins { _ in .denied("no stock") }), .user(Self.ada))
        #expect(error?.code == .functionFailed && error?.message == "no stock")
        let silent = await Self.failure(Self.functions(ScriptedPlugins { _ in .denied("") }), .user(Self.ada))
        #expect(silent?.message == "The function 'sum' failed.")
        let long = String(repeating: "é", count: 9_000)
        let cut = await Self.failure(Self.functions(ScriptedPlugins { _ in .denied(long) }), .user(Self.ada))
        #expect(cut?.message.unicodeScalars.count == 2_000)
    }

    @Test(arguments: [
        (ErrorCode.pluginFailed, ErrorCode.functionUnavailable, "does not answer"),
        (.pluginCrashed, .functionUnavailable, "does not answer"),
        (.pluginUnavailable, .functionUnavailable, "does not answer"), (.pluginTimeout, .functionTimeout, "within 10000 ms"),
        (.pluginBadAnswer, .functionFailed, "cannot be used"), (.limitsExceeded, .functionFailed, "too large"),
    ])
    func `keeps its plugin and the cause of its error from clients`(code: ErrorCode, expected: ErrorCode, text: String) async throws {
        let plugins = ScriptedPlugins { _ throws(SluiceError) in
            throw SluiceError(code, "Desk ended at /secret/place.", fix: "Repair Desk.", cause: .text("SELECT 1"))
        }
        let error = try #require(await Self.failure(Self.functions(plugins), .user(Self.ada)))
        #expect(error.code == expected && error.message.contains(text), "\(error)")
        let client = ClientError(error)
        for hidden in ["Desk", "/secret/place", "SELECT"] {
            #expect(!client.message.contains(hidden) && !client.fix.contains(hidden), "\(client)")
        }
        #expect(error.operatorText.contains("Desk ended at /secret/place."))
    }

    @Test func `whose turn did not come in its time is late`() async {
        let environment = ManualEnvironment()
        let plugins = ScriptedPlugins { _ throws(SluiceError) in
            environment.advance(seconds: 10)
            throw SluiceError(.pluginUnavailable, "Desk did not begin call_function.")
        }
        #expect(await Self.failure(Self.functions(plugins, environment), .user(Self.ada))?.code == .functionTimeout)
    }

    @Test func `that hangs again and again is left alone for a while`() async {
        let environment = ManualEnvironment()
        let plugins = ScriptedPlugins { _ throws(SluiceError) in throw SluiceError(.pluginTimeout, "Late.") }
        let functions = Self.functions(plugins, environment)
        for _ in 0..<CircuitBreaker.failures { #expect(await Self.failure(functions, .user(Self.ada))?.code == .functionTimeout) }
        #expect(await Self.failure(functions, .user(Self.ada))?.code == .functionUnavailable)
        #expect(plugins.calls.count == CircuitBreaker.failures)
        environment.advance(seconds: 2)
        #expect(await Self.failure(functions, .user(Self.ada))?.code == .functionTimeout)
    }

    /// A crash may be due to the arguments of one user.
    @Test func `that crashes for one user answers the others`() async {
        let plugins = ScriptedPlugins { _ throws(SluiceError) in throw SluiceError(.pluginCrashed, "Gone.") }
        let functions = Self.functions(plugins)
        for _ in 0..<CircuitBreaker.failures * 2 { _ = await Self.failure(functions, .user(Self.ada)) }
        #expect(plugins.calls.count == CircuitBreaker.failures * 2)
    }

    @Test func `has a bound of waiting calls of users, with an error that names it`() async throws {
        let (calls, came) = AsyncStream.makeStream(of: CheckedContinuation<Void, Never>.self, bufferingPolicy: .bufferingOldest(100))
        let plugins = ScriptedPlugins { call in
            if call.isFromUser { await withCheckedContinuation { _ = came.yield($0) } }
            return .result(1)
        }
        let names = (0..<3).map { "f\($0)" }
        let functions = FunctionDispatcher(
            names.map { AppFunction($0, target: .plugin(PluginTarget("Desk"))) }, of: .init(id: "shop"), keys: [:],
            ports: Self.ports(plugins, ManualEnvironment()))
        await withTaskGroup(of: SluiceError?.self) { group in
            for number in 0..<CallsInFlight.perPlugin {
                group.addTask { await Self.failure(functions, .user(UserContext(id: "\(number)")), names[number % 2]) }
            }
            var running: [CheckedContinuation<Void, Never>] = []
            for await call in calls {
                running.append(call)
                if running.count == CallsInFlight.perPlugin { break }
            }
            let refused = await Self.failure(functions, .user(Self.ada), "f2")
            #expect(
                refused?.code == .tooManyRequests && refused?.message.hasPrefix("64 calls wait") == true, "\(String(describing: refused))")
            #expect(refused?.message.contains("Desk") == false)
            // The gateway's own calls have no such bound.
            #expect(await Self.failure(functions, .system, "f2") == nil)
            for call in running { call.resume() }
            for await error in group { #expect(error == nil) }
        }
    }

    @Test func `of a login is the hook for logins`() async throws {
        let plugins = ScriptedPlugins { _ in .result(["id": "ada", "name": "Ada"]) }
        let logins = TokenLogins([FunctionLogin.provider: .function(FunctionLogin("sum", of: Self.functions(plugins)))])
        let identity = try await logins.identity(by: FunctionLogin.provider, ["pin": 7, "options": ["device": [:]]])
        #expect(identity == ProvenIdentity(provider: "custom-function", id: "ada", data: ["name": "Ada"]))
        #expect(plugins.calls.map(\.subject) == [.login(payload: ["pin": 7])] && plugins.calls.first?.isFromUser == false)
    }

    @Test func `rejects a login with its own text`() async {
        let logins = TokenLogins([
            FunctionLogin.provider: .function(FunctionLogin("sum", of: Self.functions(ScriptedPlugins { _ in .denied("wrong pin") })))
        ])
        let error = await #expect(throws: SluiceError.self) { try await logins.identity(by: FunctionLogin.provider, [:]) }
        #expect(error?.code == .loginTokenRejected && error?.message == "wrong pin")
    }

    @Test func `is counted like every other one`() async {
        let counted = Mutex<[ErrorCode?]>([])
        let plugins = ScriptedPlugins { call throws(SluiceError) in
            guard case .function(_, [1], _, _) = call.subject else { throw SluiceError(.pluginFailed, "No.") }
            return .result(1)
        }
        var ports = Self.ports(plugins, ManualEnvironment())
        ports.called = { function, _, error in
            #expect(function == "sum")
            counted.withLock { $0.append(error?.code) }
        }
        let functions = FunctionDispatcher([Self.function()], of: .init(id: "shop"), keys: [:], ports: ports)
        _ = try? await functions.call(FunctionCall("sum", arguments: [1], caller: .system))
        _ = try? await functions.call(FunctionCall("sum", arguments: [2], caller: .system))
        #expect(counted.withLock(\.self) == [nil, .functionUnavailable])
    }

    // MARK: Helpers

    private static func target(milliseconds: Int, answerBytes: Int) -> PluginTarget {
        var target = PluginTarget("Desk")
        (target.milliseconds, target.answerBytes) = (milliseconds, answerBytes)
        return target
    }

    private static func function(_ change: (inout AppFunction) -> Void = { _ in }) -> AppFunction {
        var function = AppFunction("sum", target: .plugin(PluginTarget("Desk")))
        change(&function)
        return function
    }

    private static func ports(_ plugins: ScriptedPlugins, _ environment: ManualEnvironment) -> FunctionDispatcher.Ports {
        .init(
            http: ScriptedHTTP { _ in OutboundAnswer(status: 500) }, plugins: plugins, environment: environment,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private static func functions(
        _ plugins: ScriptedPlugins, _ environment: ManualEnvironment = ManualEnvironment(), _ change: (inout AppFunction) -> Void = { _ in }
    ) -> FunctionDispatcher {
        FunctionDispatcher([function(change)], of: .init(id: "shop"), keys: [:], ports: ports(plugins, environment))
    }

    private static func failure(
        _ functions: FunctionDispatcher, _ caller: FunctionCall.Caller, _ name: String = "sum"
    ) async -> SluiceError? {
        do throws(SluiceError) {
            _ = try await functions.call(FunctionCall(name, arguments: [], caller: caller))
            return nil
        } catch {
            return error
        }
    }
}

/// Plugins as a closure of the call. It records the calls.
private final class ScriptedPlugins: FunctionPlugins {
    typealias Script = @Sendable (PluginFunctionCall) async throws(SluiceError) -> PluginFunctionAnswer

    private let script: Script
    private let received = Mutex<[PluginFunctionCall]>([])

    init(_ script: @escaping Script) { self.script = script }

    var calls: [PluginFunctionCall] { received.withLock(\.self) }

    func call(_ call: PluginFunctionCall) async throws(SluiceError) -> PluginFunctionAnswer {
        received.withLock { $0.append(call) }
        return try await script(call)
    }
}
