import SluiceCore
package import SluiceIdentity
import SluicePorts
import SluiceValues

/// The function that an app calls with each new user, before the account exists.
package struct UserCreation: Sendable {
    private let function: String
    private let functions: any AppFunctions

    /// - Returns: nil if no service runs the function.
    package init?(_ function: String?, of functions: any AppFunctions) {
        guard let function, functions.canCall(function) else { return nil }
        self.function = function
        self.functions = functions
    }

    /// Calls the function.
    ///
    /// - Throws: The error of the function or of its service. The account must not be created then.
    func permit(_ account: UserAccount) async throws(SluiceError) {
        _ = try await functions.call(
            FunctionCall(function, arguments: [account.context.json], caller: .system, id: "user-creation-\(account.id)"))
    }
}
