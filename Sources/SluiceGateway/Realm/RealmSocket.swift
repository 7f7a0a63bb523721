import NIOCore
import SluiceCore
import SluiceNet
import SluicePorts
import SluiceRealm
import Synchronization

/// A client's WebSocket of Realm's protocol, as the sink and the source of a `RealmConnection`.
///
/// `begin` authenticates the user of the upgrade's token and begins the connection. Messages that arrive before wait. SluiceNet bounds
/// them, since the peer is not authenticated yet. Calls of `SocketOwner` arrive on the connection's event loop.
final class RealmSocket: SocketOwner, RealmFrameSink {
    /// The facts of an upgrade request.
    struct Opening: Sendable {
        let settings: RealmConnectionSettings
        let agent: RealmAgent
    }

    private struct State {
        var socket: ServerSocket?
        /// Nil before the beginning, and after the end: the connection refers to this socket.
        var connection: RealmConnection?
        /// `true` after the end of the connection.
        var hasEnded = false
        /// The access token, until it is checked. It is a secret, so it never reaches a log.
        var token: String?
        /// The messages before the connection begins.
        var early: [[UInt8]] = []
        var user: String?
        /// The id of the login of the token.
        var login: String?
        /// The user whose connections have this one.
        var counted: String?
        var missed = MissedEnds()
        var isClosed = false
        /// The end that was asked for before the connection began.
        var end: RealmConnectionEnd?
        /// The first reason for which the gateway closes the socket.
        var reason: RealmCloseReason?
    }

    /// Messages that may arrive before the user is known. A client sends one BIND and waits.
    static let earlyMessages = 64

    private let opening: Opening
    private let services: RealmConnectionServices
    private let authenticator: any Authenticator
    private let state: Mutex<State>
    private let outbox: SocketOutbox
    /// Counts the bytes sent.
    private let egress: MetricNumber
    private let watch: RealmWatch
    private let hooks: Hooks
    /// The time at which the connection was accepted, in monotonic nanoseconds.
    let began: UInt64

    /// The functions that a socket calls.
    struct Hooks: Sendable {
        /// Must arrange the call of `begin`.
        var opened: @Sendable (RealmSocket) -> Void
        /// Counts the connection of a user. It throws if the user has too many.
        var admit: @Sendable (_ user: String) throws -> Void
        /// Called when the connection has ended, once, whether `begin` was called or not.
        var ended: @Sendable (RealmSocket) -> Void
    }

    /// - Parameter token: The access token.
    init(
        _ opening: Opening, token: String, services: RealmConnectionServices, authenticator: any Authenticator, egress: MetricNumber,
        watch: RealmWatch, hooks: Hooks
    ) {
        self.opening = opening
        self.services = services
        self.authenticator = authenticator
        self.egress = egress
        self.watch = watch
        self.hooks = hooks
        state = Mutex(State(token: token))
        outbox = SocketOutbox(environment: services.environment)
        began = services.environment.monotonicNanoseconds()
    }

    /// The SDK and the app, as the User-Agent names them.
    var agent: RealmAgent { opening.agent }
    /// The user whose connections have this one; nil if it is not admitted.
    var counted: String? { state.withLock(\.counted) }
    /// The user of the token; nil until it is known.
    var user: String? { state.withLock(\.user) }
    /// The idents of the client files of the connection's sessions, in no order.
    var files: [UInt64] {
        get async { await state.withLock(\.connection)?.files ?? [] }
    }

    /// Authenticates the user and begins the connection.
    func begin() async {
        guard let user = await authenticate() else { return hooks.ended(self) }
        let connection = RealmConnection(opening.settings, user: user.user.id, services: services, sink: self)
        await connection.expires(at: user.expires)
        await connection.begin()
        begin(connection, user)
    }

    /// Waits until the connection has ended. Returns at once for one that has not begun.
    func untilEnded() async { await state.withLock(\.connection)?.ended() }

    /// Returns the user of the token. Nil for a connection that was closed because of it.
    private func authenticate() async -> Authenticated? {
        let token = state.withLock { state in
            defer { state.token = nil }
            return state.token ?? ""
        }
        do {
            let user = try await authenticator.authenticate(token: token)
            try hooks.admit(user.user.id)
            state.withLock { $0.counted = user.user.id }
            return user
        } catch let error as SluiceError where error.code == .tooManyRequests {
            close(.overload, error.code.name)
            return nil
        } catch {
            let error = SluiceError(error, otherwise: .internalError, "The access token could not be checked.")
            let reason: RealmCloseReason
            switch RealmUpgradeRefusal(error).status {
            case 401: reason = .unauthorized
            case 403: reason = .forbidden
            default: reason = .internalError
            }
            close(reason, error.code.name)
            return nil
        }
    }

    /// Hands the connection the messages that have arrived. From here on it receives them directly.
    private func begin(_ connection: RealmConnection, _ user: Authenticated) {
        let missed = state.withLock { state in
            state.user = user.user.id
            state.login = user.login
            return state.missed.take(user.user.id, user.login)
        }
        if let missed { end(missed) }
        // Outside of the lock, since a full mailbox pauses reading. A message that arrives meanwhile follows in the next turn.
        while case let early = takeEarly(or: connection), !early.isEmpty {
            for message in early { connection.received(message) }
        }
        let (socket, end) = state.withLock { ($0.socket, $0.end) }
        socket?.authenticated()
        if let end { connection.end(end) }
    }

    /// Takes the early messages. If there are none, later messages reach the connection directly.
    private func takeEarly(or connection: RealmConnection) -> [[UInt8]] {
        state.withLock { state in
            // One whose token expires at once may have ended.
            if state.early.isEmpty, !state.hasEnded { state.connection = connection }
            defer { state.early = [] }
            return state.early
        }
    }

    /// Ends the connection if the scope contains it. A user that is not known yet may be in the scope.
    func end(_ reason: RealmConnectionEnd, _ scope: SessionScope) {
        let end = state.withLock { state -> RealmConnectionEnd? in
            if scope == .all { return reason }
            guard let user = state.user else { return state.missed.note(reason, scope) }
            return scope.contains(user: user, login: state.login) ? reason : nil
        }
        if let end { self.end(end) }
    }

    /// Ends the connection, also before it begins.
    private func end(_ reason: RealmConnectionEnd) {
        state.withLock { state -> RealmConnection? in
            if state.connection == nil, state.end == nil { state.end = reason }
            return state.connection
        }?.end(reason)
    }

    // MARK: SocketOwner

    func opened(_ socket: ServerSocket) {
        state.withLock { $0.socket = socket }
        hooks.opened(self)
    }

    func message(_ bytes: ByteBuffer) {
        let message = Array(bytes.readableBytesView)
        let (connection, isFull) = state.withLock { state -> (RealmConnection?, Bool) in
            if let connection = state.connection { return (connection, false) }
            guard !state.hasEnded else { return (nil, false) }
            guard state.early.count < Self.earlyMessages else { return (nil, true) }
            state.early.append(message)
            return (nil, false)
        }
        connection?.received(message)
        if isFull { close(.overload, "too many messages before authentication") }
    }

    func writabilityChanged(_ isWritable: Bool) { if isWritable { outbox.wake() } }

    func settle(_ done: @escaping @Sendable () -> Void) {
        guard let connection = state.withLock(\.connection) else { return done() }
        Task {  // Unstructured because: an event loop cannot wait. It ends with the answers, or with the connection.
            await connection.settled()
            done()
        }
    }

    /// After 1001 a client reports a broken protocol to its app. After 1011 it connects again.
    var shutdownCode: SocketCloseCode { .internalError }

    func closed(_ reason: SocketCloseReason) {
        let (hasOpened, own) = state.withLock { state in
            state.isClosed = true
            return (state.socket != nil, state.reason)
        }
        // The one call at the end of every socket, also of one that did not open.
        watch.ended(RealmSocketEnd(reason, own))
        end(.disconnected)
        outbox.wake()
        // `begin` is never called.
        if !hasOpened { hooks.ended(self) }
    }

    // MARK: RealmFrameSink

    func perform(_ body: @escaping @Sendable () -> Void) -> Bool {
        guard let socket = state.withLock({ $0.isClosed ? nil : $0.socket }) else { return false }
        socket.perform(body)
        return true
    }

    func send(_ message: [UInt8]) {
        guard let socket = state.withLock({ $0.isClosed ? nil : $0.socket }) else { return }
        let frame = SharedFrame.encode(binary: message)
        egress.add(frame.byteCount)
        socket.send(frame)
    }

    var bufferedBytes: Int { state.withLock { $0.socket }?.bufferedBytes ?? 0 }

    func drained(below bytes: Int) async {
        let isClosed = { self.state.withLock(\.isClosed) }
        guard let error = await outbox.drained(below: bytes, buffered: { bufferedBytes }, isClosed: isClosed) else { return }
        close(.slowClient, error.code.name)
        state.withLock { $0.isClosed = true }
        end(.disconnected)
    }

    func pauseReading() { state.withLock(\.socket)?.pauseReading() }

    func resumeReading() { state.withLock(\.socket)?.resumeReading() }

    func close(_ reason: RealmCloseReason, _ text: String) {
        let socket = state.withLock { state in
            state.reason = state.reason ?? reason
            return state.socket
        }
        socket?.close(SocketCloseCode(opening.settings.code(of: reason)), reason: text)
    }

    func ended() {
        state.withLock { ($0.connection, $0.hasEnded) = (nil, true) }
        hooks.ended(self)
    }
}

extension SocketCloseCode {
    init(_ code: RealmCloseCode) {
        self =
            switch code {
            case .tooLarge: .messageTooBig
            case .internalError: .internalError
            case .unauthorized: .unauthorized
            case .forbidden: .forbidden
            case .moved: .moved
            }
    }
}
