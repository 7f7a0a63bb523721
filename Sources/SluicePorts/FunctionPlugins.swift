package import SluiceCore
package import SluiceValues

/// A call of a function of the app that a plugin runs.
package struct PluginFunctionCall: Hashable, Sendable {
    package enum Subject: Hashable, Sendable {
        /// A call of a function. `user` is nil if the gateway itself calls. `runAs` is the id of a user, or `system`.
        case function(name: String, arguments: [JSON], user: UserContext?, runAs: String)
        /// A login of the provider `custom-function`.
        case login(payload: JSON)
    }

    /// The name of the plugin.
    package var plugin: String
    package var subject: Subject
    /// The id of the call, which repetitions share.
    package var id: String
    /// The time for the call with the wait for its turn, in milliseconds.
    package var milliseconds: Int
    /// The largest answer, in bytes.
    package var answerBytes: Int
    /// `true` if a user calls. The gateway's own calls precede those of users that wait.
    package var isFromUser = false

    package init(_ plugin: String, _ subject: Subject, id: String, milliseconds: Int, answerBytes: Int) {
        self.plugin = plugin
        self.subject = subject
        self.id = id
        self.milliseconds = milliseconds
        self.answerBytes = answerBytes
    }
}

/// The end of a call that the plugin has answered.
package enum PluginFunctionAnswer: Hashable, Sendable {
    case result(JSON)
    /// The function's own error, for the caller. The text may be empty.
    case denied(String)

    package var isDenial: Bool { if case .denied = self { true } else { false } }
}

/// The plugins that run functions of the app.
package protocol FunctionPlugins: Sendable {
    /// Calls a function, and waits for the answer of the plugin.
    ///
    /// - Throws: `pluginUnavailable`, also if there is no such plugin; `pluginTimeout`; `pluginCrashed`; `pluginFailed`;
    ///   `pluginBadAnswer`; `limitsExceeded` for an answer over `answerBytes`. All are for operators.
    func call(_ call: PluginFunctionCall) async throws(SluiceError) -> PluginFunctionAnswer
}

/// The plugins of an app without any.
package struct NoFunctionPlugins: FunctionPlugins {
    package init() {}

    package func call(_ call: PluginFunctionCall) async throws(SluiceError) -> PluginFunctionAnswer {
        throw SluiceError(.pluginUnavailable, "There is no plugin '\(call.plugin)'.", fix: "List it in plugins.json.")
    }
}
