import SluiceCore
import SluicePorts
import SluiceValues

/// The end of a function's call without a result.
struct FunctionFailure: Error {
    var error: SluiceError
    /// `true` if the target did not answer. An answer to the arguments of one user says nothing about calls of others.
    var isOutage: Bool

    init(_ error: SluiceError, isOutage: Bool) {
        self.error = error
        self.isOutage = isOutage
    }
}

/// Runs functions by signed requests to the services behind them.
package struct WebhookRunner: Sendable {
    /// The waits between the attempts of an idempotent function, in milliseconds. Up to as much again is added at random.
    package static let backOff: [UInt64] = [100, 400, 1_600]

    let http: any OutboundHTTP
    let environment: any Environment

    /// Sends the request, again if the function is idempotent.
    func run(
        _ message: WebhookMessage, of function: String, at target: WebhookTarget, key: [UInt8]
    ) async throws(FunctionFailure) -> JSON {
        let end = environment.monotonicNanoseconds() + UInt64(target.milliseconds) * 1_000_000
        var waits = (target.isIdempotent ? Self.backOff : []).makeIterator()
        while true {
            let now = environment.monotonicNanoseconds()
            guard now < end else {
                throw FunctionFailure(
                    SluiceError(.functionTimeout, "The function '\(function)' did not answer within \(target.milliseconds) ms."),
                    isOutage: true)
            }
            let request = message.request(
                to: target, key: key, seconds: environment.wallMilliseconds() / 1_000, milliseconds: Int((end - now + 999_999) / 1_000_000))
            do throws(FunctionFailure) {
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

    private func result(of request: OutboundRequest, _ function: String) async throws(FunctionFailure) -> JSON {
        let answer = try await send(request, function)
        do throws(SluiceError) { return try WebhookAnswer.result(of: answer, function: function) } catch {
            throw FunctionFailure(error, isOutage: answer.isFromGateway)
        }
    }

    private func send(_ request: OutboundRequest, _ function: String) async throws(FunctionFailure) -> OutboundAnswer {
        do throws(SluiceError) {
            return try await http.send(request)
        } catch {
            // The host and the reason are for operators alone.
            switch error.code {
            case .outboundTimeout:
                throw FunctionFailure(
                    SluiceError(.functionTimeout, "The function '\(function)' did not answer in time.", cause: .error(error)),
                    isOutage: true)
            case .tooManyRequests:
                throw FunctionFailure(
                    SluiceError(
                        .tooManyRequests, "The function '\(function)' waits for other services.", fix: error.fix, cause: .error(error)),
                    isOutage: false)
            case .outboundTooLarge:
                throw FunctionFailure(
                    SluiceError(.functionFailed, "The answer of the function '\(function)' is too large.", cause: .error(error)),
                    isOutage: false)
            default:
                // A client that gives up ends its call here.
                throw FunctionFailure(
                    SluiceError(
                        .functionUnavailable, "The service of the function '\(function)' does not answer.", cause: .error(error)),
                    isOutage: !Task.isCancelled)
            }
        }
    }
}
