package import Logging
package import SluiceCore
package import SluicePorts
package import SluiceValues
import Synchronization

/// Runs the functions of the app by signed requests to the services behind them.
///
/// A service that does not answer is left alone for a while (`CircuitBreaker`), so that its callers fail at once.
package final class WebhookFunctions: AppFunctions {
    /// The waits between the attempts of an idempotent function, in milliseconds. Up to as much again is added at random.
    package static let backOff: [UInt64] = [100, 400, 1_600]

    /// The facts about the app that conditions and services need.
    package struct App: Sendable {
        package var id: String
        /// The values of `%%values`.
        package var values: [String: JSON]
        /// The value of `%%environment.tag`.
        package var environmentTag: String

        package init(id: String, values: [String: JSON] = [:], environmentTag: String = "") {
            self.id = id
            self.values = values
            self.environmentTag = environmentTag
        }

        /// Returns the value of a name such as `%%user.id` in a condition or an argument; nil for none.
        package func value(of name: String, for user: UserContext) -> JSON? {
            let path = name.split(separator: ".", omittingEmptySubsequences: false)
            switch path.first {
            case "%%user": return user.json.value(at: path.dropFirst())
            case "%%values": return path.count < 2 ? nil : values[String(path[1])]?.value(at: path.dropFirst(2))
            case "%%environment": return path.dropFirst() == ["tag"] ? .string(environmentTag) : nil
            case "%%true": return true
            case "%%false": return false
            default: return nil
            }
        }
    }

    /// The systems that calls use.
    package struct Ports: Sendable {
        package var http: any OutboundHTTP
        package var environment: any Environment
        package var logger: Logger
        /// Receives the duration of each call in nanoseconds, and its error.
        package var called: @Sendable (_ function: String, _ nanoseconds: UInt64, SluiceError?) -> Void

        package init(
            http: any OutboundHTTP, environment: any Environment, logger: Logger,
            called: @escaping @Sendable (_ function: String, _ nanoseconds: UInt64, SluiceError?) -> Void = { _, _, _ in }
        ) {
            self.http = http
            self.environment = environment
            self.logger = logger
            self.called = called
        }
    }

    /// The end of a call without a result.
    private struct Failure: Error {
        var error: SluiceError
        /// `true` if the service did not answer. An answer to the arguments of one user says nothing about calls of others.
        var isOutage: Bool

        init(_ error: SluiceError, isOutage: Bool) {
            self.error = error
            self.isOutage = isOutage
        }
    }

    private struct State {
        var calls = CallsInFlight()
        var breakers: [String: CircuitBreaker] = [:]
    }

    private let app: App
    private let functions: [String: AppFunction]
    /// The texts of secrets by name, as bytes.
    private let keys: [String: [UInt8]]
    private let ports: Ports
    private let state = Mutex(State())

    /// - Parameter keys: The secret of each target, by its name.
    package init(_ functions: [AppFunction], of app: App, keys: [String: [UInt8]], ports: Ports) {
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
        guard let target = function.target, let key = keys[target.secret] else {
            throw SluiceError(
                .functionUnavailable, "The function '\(function.name)' has no service.", fix: "Name its URL in sluice.json.")
        }
        try begin(call)
        let message = WebhookMessage(call, of: function, app: app.id, id: call.id ?? newID())
        let start = ports.environment.monotonicNanoseconds()
        do throws(Failure) {
            let result = try await run(message, function, target, key)
            end(call, since: start, nil)
            return result
        } catch {
            end(call, since: start, error)
            throw error.error
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

    private func begin(_ call: FunctionCall) throws(SluiceError) {
        let now = ports.environment.monotonicNanoseconds()
        let (isWithinBounds, wait) = state.withLock { state -> (Bool, Int?) in
            guard state.calls.begin(call.name, user: call.userID) else { return (false, nil) }
            guard let wait = state.breakers[call.name, default: CircuitBreaker()].begin(now: now) else { return (true, nil) }
            state.calls.end(call.name, user: call.userID)
            return (true, wait)
        }
        guard isWithinBounds else {
            throw SluiceError(
                .tooManyRequests,
                "More than \(CallsInFlight.perFunction) calls of the function '\(call.name)', or \(CallsInFlight.perUser) of the user, run.",
                fix: "Wait for the end of earlier calls.")
        }
        if let wait {
            throw SluiceError(
                .functionUnavailable, "The service of the function '\(call.name)' does not answer.",
                fix: "Try again in \(wait) s. The gateway calls it again then.")
        }
    }

    private func end(_ call: FunctionCall, since start: UInt64, _ failure: Failure?) {
        let now = ports.environment.monotonicNanoseconds()
        let (before, after) = state.withLock { state -> (Bool, Bool) in
            state.calls.end(call.name, user: call.userID)
            var breaker = state.breakers[call.name] ?? CircuitBreaker()
            let before = breaker.isOpen
            if failure?.isOutage == true { breaker.failed(now: now) } else { breaker.answered() }
            state.breakers[call.name] = breaker
            return (before, breaker.isOpen)
        }
        ports.called(call.name, now - start, failure?.error)
        if after, !before, let error = failure?.error {
            ports.logger.warning(
                "The service of a function does not answer. Calls fail at once, until it does.",
                metadata: ["function": "\(call.name)", "error": .string(error.description)])
        } else if before, !after {
            ports.logger.info("The service of a function answers again.", metadata: ["function": "\(call.name)"])
        }
    }

    /// Sends the request, again if the function is idempotent.
    private func run(
        _ message: WebhookMessage, _ function: AppFunction, _ target: WebhookTarget, _ key: [UInt8]
    ) async throws(Failure) -> JSON {
        let environment = ports.environment
        let end = environment.monotonicNanoseconds() + UInt64(target.milliseconds) * 1_000_000
        var waits = (target.isIdempotent ? Self.backOff : []).makeIterator()
        while true {
            let now = environment.monotonicNanoseconds()
            guard now < end else {
                throw Failure(
                    SluiceError(.functionTimeout, "The function '\(function.name)' did not answer within \(target.milliseconds) ms."),
                    isOutage: true)
            }
            let request = message.request(
                to: target, key: key, seconds: environment.wallMilliseconds() / 1_000, milliseconds: Int((end - now + 999_999) / 1_000_000))
            do throws(Failure) {
                return try await result(of: request, function)
            } catch {
                guard error.error.code == .functionUnavailable, let wait = waits.next() else { throw error }
                let pause = (wait + environment.random() % wait) * 1_000_000
                guard environment.monotonicNanoseconds() + pause < end, (try? await environment.sleep(nanoseconds: pause)) != nil else {
                    throw error
                }
            }
        }
    }

    private func result(of request: OutboundRequest, _ function: AppFunction) async throws(Failure) -> JSON {
        let answer = try await send(request, function)
        do throws(SluiceError) { return try WebhookAnswer.result(of: answer, function: function.name) } catch {
            throw Failure(error, isOutage: answer.isFromGateway)
        }
    }

    private func send(_ request: OutboundRequest, _ function: AppFunction) async throws(Failure) -> OutboundAnswer {
        do throws(SluiceError) {
            return try await ports.http.send(request)
        } catch {
            // The host and the reason are for operators alone.
            switch error.code {
            case .outboundTimeout:
                throw Failure(
                    SluiceError(.functionTimeout, "The function '\(function.name)' did not answer in time.", cause: .error(error)),
                    isOutage: true)
            case .tooManyRequests:
                throw Failure(
                    SluiceError(
                        .tooManyRequests, "The function '\(function.name)' waits for other services.", fix: error.fix, cause: .error(error)),
                    isOutage: false)
            case .outboundTooLarge:
                throw Failure(
                    SluiceError(.functionFailed, "The answer of the function '\(function.name)' is too large.", cause: .error(error)),
                    isOutage: false)
            default:
                // A client that gives up ends its call here.
                throw Failure(
                    SluiceError(
                        .functionUnavailable, "The service of the function '\(function.name)' does not answer.", cause: .error(error)),
                    isOutage: !Task.isCancelled)
            }
        }
    }

    /// Returns 32 hexadecimal digits.
    private func newID() -> String {
        Hex.encode((0..<2).flatMap { _ in withUnsafeBytes(of: ports.environment.random().bigEndian, Array.init) })
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
