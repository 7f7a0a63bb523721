/// A function of the app, as the files of its directory describe it.
package struct AppFunction: Hashable, Sendable {
    /// The user in whose name a function acts. Its service receives it and must honour it.
    package enum Identity: Hashable, Sendable {
        case caller
        case system
        case user(id: String)
    }

    package var name: String
    /// `true` if only the gateway may call it. Users receive the error for an unknown name.
    package var isPrivate: Bool
    /// The condition under which a user may call it.
    package var condition: Condition
    package var identity: Identity
    /// The service or plugin that runs it; nil for none.
    package var target: FunctionTarget?

    package init(
        _ name: String, isPrivate: Bool = false, condition: Condition = .constant(true), identity: Identity = .caller,
        target: FunctionTarget? = nil
    ) {
        self.name = name
        self.isPrivate = isPrivate
        self.condition = condition
        self.identity = identity
        self.target = target
    }
}

/// The part that runs a function.
package enum FunctionTarget: Hashable, Sendable {
    case webhook(WebhookTarget)
    case plugin(PluginTarget)
}

/// The plugin behind a function.
package struct PluginTarget: Hashable, Sendable {
    /// The beginning of a target that names a plugin, in the place of a URL.
    package static let scheme = "plugin:"
    /// The longest time is shorter than for a service, because an edit of the rules waits for running calls.
    package static let milliseconds: ClosedRange<Int64> = 100...60_000

    /// The name of the plugin, as its library has it.
    package var plugin: String
    /// The time for a call with the wait for its turn, in milliseconds.
    package var milliseconds = WebhookTarget.defaultMilliseconds
    /// The largest answer, in bytes.
    package var answerBytes = WebhookTarget.defaultAnswerBytes

    package init(_ plugin: String) { self.plugin = plugin }
}

/// The service behind a function.
package struct WebhookTarget: Hashable, Sendable {
    package static let defaultMilliseconds = 10_000
    package static let milliseconds: ClosedRange<Int64> = 100...300_000
    package static let defaultAnswerBytes = 1 << 20
    package static let answerBytes: ClosedRange<Int64> = 1...16 << 20

    package var url: String
    /// The name of the secret that signs requests.
    package var secret: String
    /// The time for a call with all attempts, in milliseconds.
    package var milliseconds = defaultMilliseconds
    /// The largest answer, in bytes.
    package var answerBytes = defaultAnswerBytes
    /// `true` if a second request does no harm, so that a call may be attempted again.
    package var isIdempotent = false
    package var allowsPrivateAddresses = false

    package init(url: String, secret: String) {
        self.url = url
        self.secret = secret
    }
}
