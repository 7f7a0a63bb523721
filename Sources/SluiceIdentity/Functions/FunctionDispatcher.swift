package import Logging
package import SluiceCore
package import SluicePorts
package import SluiceValues
import Synchronization

/// Runs the functions of the app at their targets: services (`WebhookRunner`) and plugins (`PluginRunner`).
///
/// A target that does not answer is left alone for a while (`CircuitBreaker`), so that its callers fail at once.
package final class FunctionDispatcher: AppFunctions {
    /// The systems that calls use.
    package struct Ports: Sendable {
        package var http: any OutboundHTTP
        package var plugins: any FunctionPlugins
        package var environment: any Environment
        package var logger: Logger
        /// Receives the duration of each call in nanoseconds, and its error.
        package var called: @Sendable (_ function: String, _ nanoseconds: UInt64, SluiceError?) -> Void

        package init(
            http: any OutboundHTTP, plugins: any FunctionPlugins = NoFunctionPlugins(), environment: any Environment, logger: Logger,
            called: @escaping @Sendable (_ function: String, _ nanoseconds: UInt64, SluiceError?) -> Void = { _, _, _ in }
        ) {
            self.http = http
            self.plugins = plugins
            self.environment = environment
            self.logger = logger
            self.called = called
        }
    }

    private struct State {
        var calls = CallsInFlight()
        var breakers: [String: CircuitBreaker] = [:]
    }

    private let app: FunctionFacts
    private let functions: [String: AppFunction]
    /// The texts of secrets by name, as bytes.
    private let keys: [String: [UInt8]]
    private let ports: Ports
    private let state = Mutex(State())

    /// - Parameter keys: The secret of each target, by its name.
    package init(_ functions: [AppFunction], of app: FunctionFacts, keys: [String: [UInt8]], ports: Ports) {
        self.app = app
        self.functions = Dictionary(functions.map { ($0.name, $0) }) { _, last in last }
        self.keys = keys
        self.ports = ports
    }

    package func canCall(_ name: String) -> Bool { functions[name]?.target != nil }

    /// Calls a function.
    ///
    /// - Throws: As the port says, and `tooManyRequests` beyond the bounds of running calls.
    package func call(_ call: FunctionCall) async throws(SluiceError) -> JSON {
        let function = try admitted(call)
        guard let target = function.target else {
            throw SluiceError(
                .functionUnavailable, "The function '\(function.name)' has no service.", fix: "Name its URL in sluice.json.")
        }
        try begin(call, target)
        let start = ports.environment.monotonicNanoseconds()
        do throws(FunctionFailure) {
            let result = try await run(call, function, target)
            end(call, target, since: start, nil)
            return result
        } catch {
            end(call, target, since: start, error)
            throw error.error
        }
    }

    private func run(_ call: FunctionCall, _ function: AppFunction, _ target: FunctionTarget) async throws(FunctionFailure) -> JSON {
        let id = call.id ?? newID()
        switch target {
        case .webhook(let target):
            guard let key = keys[target.secret] else {
                throw FunctionFailure(
                    SluiceError(.functionUnavailable, "The function '\(function.name)' has no secret to sign requests."), isOutage: false)
            }
            let message = WebhookMessage(call, of: function, app: app.id, id: id)
            return try await WebhookRunner(http: ports.http, environment: ports.environment)
                .run(message, of: function.name, at: target, key: key)
        case .plugin(let target):
            return try await PluginRunner(plugins: ports.plugins, environment: ports.environment).run(
                call, of: function, at: target, id: id)
        }
    }

    // MARK: Permission

    private func admitted(_ call: FunctionCall) throws(SluiceError) -> AppFunction {
        let found = functions[call.name]
        switch call.caller {
        case .system, .rules:
            if let found { return found }
        case .user(let user):
            guard let found, !found.isPrivate else { break }
            guard found.condition.holds({ app.value(of: $0, for: user) }) else {
                throw SluiceError(.functionRefused, "The user may not call the function '\(found.name)'.")
            }
            return found
        }
        throw call.notFound
    }

    // MARK: Running

    private func begin(_ call: FunctionCall, _ target: FunctionTarget) throws(SluiceError) {
        let now = ports.environment.monotonicNanoseconds()
        let (bound, wait) = state.withLock { state -> (CallsInFlight.Bound?, Int?) in
            if let bound = state.calls.begin(call.name, user: call.userID, plugin: target.plugin) { return (bound, nil) }
            guard let wait = state.breakers[call.name, default: CircuitBreaker()].begin(now: now) else { return (nil, nil) }
            state.calls.end(call.name, user: call.userID, plugin: target.plugin)
            return (nil, wait)
        }
        if let bound {
            throw SluiceError(.tooManyRequests, bound.statement(of: call.name), fix: "Wait for the end of earlier calls.")
        }
        if let wait {
            throw SluiceError(
                .functionUnavailable, "The function '\(call.name)' does not answer.",
                fix: "Try again in \(wait) s. The gateway calls it again then.")
        }
    }

    private func end(_ call: FunctionCall, _ target: FunctionTarget, since start: UInt64, _ failure: FunctionFailure?) {
        let now = ports.environment.monotonicNanoseconds()
        let (before, after) = state.withLock { state -> (Bool, Bool) in
            state.calls.end(call.name, user: call.userID, plugin: target.plugin)
            var breaker = state.breakers[call.name] ?? CircuitBreaker()
            let before = breaker.isOpen
            if failure?.isOutage == true { breaker.failed(now: now) } else { breaker.answered() }
            state.breakers[call.name] = breaker
            return (before, breaker.isOpen)
        }
        ports.called(call.name, now - start, failure?.error)
        if after, !before, let error = failure?.error {
            ports.logger.warning(
                "A function does not answer. Calls fail at once, until it does.",
                metadata: ["function": "\(call.name)", "error": .string(error.description)])
        } else if before, !after {
            ports.logger.info("A function answers again.", metadata: ["function": "\(call.name)"])
        }
    }

    /// Returns 32 hexadecimal digits.
    private func newID() -> String {
        Hex.encode((0..<2).flatMap { _ in withUnsafeBytes(of: ports.environment.random().bigEndian, Array.init) })
    }
}

extension FunctionTarget {
    fileprivate var plugin: String? { if case .plugin(let target) = self { target.plugin } else { nil } }
}

extension CallsInFlight.Bound {
    fileprivate func statement(of function: String) -> String {
        switch self {
        case .function: "\(CallsInFlight.perFunction) calls of the function '\(function)' run already."
        case .user: "\(CallsInFlight.perUser) calls of the user run already."
        case .plugin: "\(CallsInFlight.perPlugin) calls wait for the functions that '\(function)' takes turns with."
        }
    }
}

extension FunctionCall {
    /// The calling user; nil for the gateway itself.
    fileprivate var userID: String? {
        switch caller {
        case .user(let user): user.id
        case .system, .rules: nil
        }
    }
}
