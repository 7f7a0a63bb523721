import SluiceCore
import SluicePorts
import SluiceValues

/// Runs functions by the hooks of the plugins behind them.
struct PluginRunner: Sendable {
    let plugins: any FunctionPlugins
    let environment: any Environment

    /// Calls the plugin, by its hook `authenticate` for a login.
    func run(
        _ call: FunctionCall, of function: AppFunction, at target: PluginTarget, id: String
    ) async throws(FunctionFailure) -> JSON {
        var asked = PluginFunctionCall(
            target.plugin, subject(of: call, function), id: id, milliseconds: target.milliseconds, answerBytes: target.answerBytes)
        if case .user = call.caller { asked.isFromUser = true }
        let end = environment.monotonicNanoseconds() + UInt64(target.milliseconds) * 1_000_000
        let answer: PluginFunctionAnswer
        do throws(SluiceError) { answer = try await plugins.call(asked) } catch {
            // A call whose turn did not come in time is late, too.
            let isLate = error.code == .pluginTimeout || environment.monotonicNanoseconds() >= end
            throw failure(error, function.name, target, isLate: isLate)
        }
        switch answer {
        case .result(let json): return json
        case .denied(let text):
            throw FunctionFailure(WebhookAnswer.error(text.isEmpty ? nil : text, of: function.name), isOutage: false)
        }
    }

    private func subject(of call: FunctionCall, _ function: AppFunction) -> PluginFunctionCall.Subject {
        if call.isLogin, let payload = call.arguments.first { return .login(payload: payload) }
        return .function(
            name: function.name, arguments: call.arguments, user: call.user, runAs: function.identity.name(caller: call.user?.id))
    }

    /// Returns the error for the caller. The plugin and its error are for operators alone.
    private func failure(_ error: SluiceError, _ function: String, _ target: PluginTarget, isLate: Bool) -> FunctionFailure {
        func failure(_ code: ErrorCode, _ message: String, isOutage: Bool) -> FunctionFailure {
            FunctionFailure(SluiceError(code, message, cause: .error(error)), isOutage: isOutage)
        }
        switch error.code {
        case .pluginBadAnswer:
            return failure(.functionFailed, "The answer of the function '\(function)' cannot be used.", isOutage: false)
        case .limitsExceeded:
            return failure(.functionFailed, "The call of the function '\(function)' or its answer is too large.", isOutage: false)
        case _ where isLate:
            return failure(
                .functionTimeout, "The function '\(function)' did not answer within \(target.milliseconds) ms.", isOutage: true)
        // A crash may be due to the arguments of one user. The plugin's host is replaced, and its own breaker counts the ends.
        default:
            return failure(
                .functionUnavailable, "The function '\(function)' does not answer.", isOutage: error.code == .pluginUnavailable)
        }
    }
}
