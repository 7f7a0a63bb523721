import SluiceCore
package import SluiceIdentity
import SluiceValues

/// A function of the app that confirms users or resets passwords.
package struct AccountFunction: Sendable {
    /// The answer of the function, as `{"status": …}`.
    enum Decision: String, Sendable {
        case success
        /// The function has sent the token to the user, who will use it.
        case pending
        case fail
    }

    private let name: String
    private let functions: any AppFunctions

    package init(_ name: String, of functions: any AppFunctions) {
        self.name = name
        self.functions = functions
    }

    /// Calls the function as the system.
    ///
    /// - Throws: The errors of `AppFunctions`; `functionFailed` for an answer without a known status.
    func ask(_ arguments: [JSON]) async throws(SluiceError) -> Decision {
        let answer = try await functions.call(FunctionCall(name, arguments: arguments, caller: .system))
        guard let decision = answer["status"]?.string.flatMap(Decision.init) else {
            throw SluiceError(
                .functionFailed, "The function '\(name)' returned no status.",
                fix: #"Return {"status": "success"}, or "pending" or "fail" as the status."#)
        }
        return decision
    }
}
