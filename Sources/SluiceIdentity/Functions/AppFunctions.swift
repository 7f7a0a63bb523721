package import SluiceCore
package import SluicePorts
package import SluiceValues

/// A call of a function of the app.
package struct FunctionCall: Hashable, Sendable {
    /// The origin of a call.
    package enum Caller: Hashable, Sendable {
        case user(UserContext)
        /// The gateway, whose rules decide on the user. It may call private functions, whatever their conditions are.
        case rules(UserContext)
        /// The gateway itself: a provider, a confirmation or a trigger. It may call private functions.
        case system
    }

    package var name: String
    /// The arguments, in extended JSON.
    package var arguments: [JSON]
    package var caller: Caller
    /// The id, which is the same whenever the call is repeated; nil for a new one.
    package var id: String?
    /// `true` for a login of `custom-function`, whose payload is the one argument. A plugin answers it by its hook `authenticate`.
    package var isLogin = false

    package init(_ name: String, arguments: [JSON], caller: Caller, id: String? = nil) {
        self.name = name
        self.arguments = arguments
        self.caller = caller
        self.id = id
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

/// The functions of an app that has none.
package struct NoFunctions: AppFunctions {
    package init() {}

    package func canCall(_ name: String) -> Bool { false }

    package func call(_ call: FunctionCall) async throws(SluiceError) -> JSON { throw call.notFound }
}

extension FunctionCall {
    /// The error for a function that does not exist, or that the caller may not know.
    var notFound: SluiceError {
        SluiceError(.functionNotFound, "function not found: '\(String(name.unicodeScalars.prefix(64)))'")
    }
}
