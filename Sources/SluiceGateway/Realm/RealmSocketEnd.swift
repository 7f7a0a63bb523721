import SluiceNet
import SluicePorts
import SluiceRealm

/// The ends of connections of Realm's protocol, as `sluice_realm_closes_total` counts them. Each connection has one.
enum RealmSocketEnd: String, CaseIterable, Sendable {
    /// The client sent a close frame.
    case client
    /// The transport ended without a close frame.
    case lost
    /// The client answered no ping.
    case silent
    /// The first message did not come in time.
    case late
    case tooLarge = "too-large"
    /// The client violated the WebSocket protocol.
    case badFrame = "bad-frame"
    case protocolError = "protocol-error"
    case overload
    case internalError = "internal-error"
    case shutDown = "shutdown"
    case slowClient = "slow-client"
    case unauthorized, forbidden
    /// The upgrade was refused with an HTTP status.
    case refused

    /// - Parameters:
    ///   - reason: The end of the socket.
    ///   - own: The first reason for which the gateway closed it. It counts only if the close ended the socket.
    init(_ reason: SocketCloseReason, _ own: RealmCloseReason?) {
        switch reason {
        case .peer: self = .client
        case .lost: self = .lost
        case .silent: self = .silent
        case .late: self = .late
        case .oversize: self = .tooLarge
        case .malformed: self = .badFrame
        case .shutdown: self = .shutDown
        case .local: self = own.map { RealmSocketEnd($0) } ?? .internalError
        }
    }

    private init(_ own: RealmCloseReason) {
        self =
            switch own {
            case .tooLarge: .tooLarge
            case .protocolError: .protocolError
            case .overload: .overload
            case .internalError: .internalError
            case .shutDown: .shutDown
            case .slowClient: .slowClient
            case .unauthorized: .unauthorized
            case .forbidden: .forbidden
            }
    }
}

/// The ends of users that arrive while the user of a connection is not known.
struct MissedEnds: Sendable {
    /// The maximum number of scopes.
    static let most = 64

    private var byScope: [SessionScope: RealmConnectionEnd] = [:]

    /// Notes the newest end of a scope.
    ///
    /// - Returns: The end of the connection if there is no room; nil otherwise. It is `shutDown`, after which the client connects again:
    ///   the end of another user could log this one out.
    mutating func note(_ end: RealmConnectionEnd, _ scope: SessionScope) -> RealmConnectionEnd? {
        guard byScope.count < Self.most || byScope[scope] != nil else { return .shutDown }
        byScope[scope] = end
        return nil
    }

    /// Returns the end of the connection's user, or of its login, and forgets all.
    mutating func take(_ user: String, _ login: String?) -> RealmConnectionEnd? {
        defer { byScope = [:] }
        return byScope[.user(user)] ?? login.flatMap { byScope[.login($0, of: user)] }
    }
}
