package import SluiceCore
package import SluicePorts
package import SluiceValues

/// A call of a function of the app.
package struct FunctionCall: Hashable, Sendable {
    /// The origin of a call.
    package enum Caller: Hashable, Sendable {
        case user(UserContext)
        /// The gateway itself: a provider, a confirmation or a trigger. It may call private functions.
        case system
    }

    package var name: String
    /// The arguments, in extended JSON.
    package var arguments: [JSON]
    package var caller: Caller

    package init(_ name: String, arguments: [JSON], caller: Caller) {
        self.name = name
        self.arguments = arguments
        self.caller = caller
    }
}

/// The functions of the app. Webhooks and plugins run them.
package protocol AppFunctions: Sendable {
    /// `true` if the function exists and has a target that runs it.
    func canCall(_ name: String) -> Bool

    /// Calls a function.
    ///
    /// - Returns: The result, in extended JSON.
    /// - Throws: `functionNotFound` if it does not exist or the caller may not know it; `functionRefused` if the caller may not call it;
    ///   `functionFailed` with the text of its error; `functionUnavailable` if its target does not answer; `functionTimeout`.
    func call(_ call: FunctionCall) async throws(SluiceError) -> JSON
}
