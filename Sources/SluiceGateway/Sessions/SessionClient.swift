import SluicePipeline
import SluiceValues

/// The program and the device behind a session. Clients choose the texts, which have printable characters only and are short.
struct SessionClient: Hashable, Sendable {
    /// The protocols of sessions.
    enum Kind: String, Sendable { case sluice, realm }

    var kind: Kind
    /// The SDK with its release, such as `RealmSwift/20.0.3`; empty if the client names none.
    var sdk: String
    /// The release of realm-core; empty for a client of the own protocol.
    var core = ""
    /// The app as the SDK describes it; empty if the client names none.
    var app: String
    /// The ident of the client file; nil for a client of the own protocol.
    var file: UInt64?

    /// - Parameter sdk: The text of Hello: the SDK, and behind a space the app.
    init(sluice sdk: String) {
        let words = sdk.split(separator: " ", maxSplits: 1)
        kind = .sluice
        self.sdk = words.first.map { String($0) } ?? ""
        app = words.count > 1 ? String(words[1]) : ""
    }

    init(_ agent: RealmAgent, file: UInt64) {
        (kind, sdk, core, app) = (.realm, agent.binding, agent.core, agent.app)
        self.file = file
    }

    /// The SDK and the release of realm-core below it. Some SDKs name the latter alone.
    var program: String {
        if core.isEmpty { return sdk }
        return sdk.isEmpty ? "realm-core/\(core)" : "\(sdk) on realm-core/\(core)"
    }

    /// The words behind a device's number in a sentence; empty for the own protocol.
    var note: String {
        guard let file else { return "" }
        let parts = ["Realm's protocol", "client file \(file)", program, app.isEmpty ? "" : "app \(app)"]
        return " (\(parts.filter { !$0.isEmpty }.joined(separator: ", ")))"
    }

    /// The members of a session in JSON.
    var members: [JSON.Member] {
        [
            JSON.Member("protocol", .string(kind.rawValue)), JSON.Member("sdk", .string(sdk)),
            JSON.Member("realm_core", core.isEmpty ? .null : .string(core)), JSON.Member("app", .string(app)),
            JSON.Member("file", file.map { .int(Int64(clamping: $0)) } ?? .null),
        ]
    }
}

/// A session of either protocol with its status for one class.
struct ClientSession: Sendable {
    var client: SessionClient
    var status: SessionStatus
}

/// A session of either protocol for lists.
struct ListedSession: Sendable {
    var client: SessionClient
    var summary: SessionSummary
    /// The time at which the connection was accepted, in monotonic nanoseconds.
    var began: UInt64
}
