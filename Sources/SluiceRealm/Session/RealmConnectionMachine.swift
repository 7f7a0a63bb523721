import SluiceCore
import SluicePorts

/// The facts and bounds of a connection.
package struct RealmConnectionSettings: Hashable, Sendable {
    /// The negotiated version of the protocol.
    package var version: Int
    /// The salt of the server's history. A client with another salt has seen another history.
    package var salt: UInt64
    /// The app's schema version; a client may name this one or none.
    package var schemaVersion: UInt64
    /// Sessions of the connection. Beyond: a session is refused, and the client retries.
    package var sessions: Int
    /// Bytes of uploads that have not taken effect. Beyond: reading pauses.
    package var uploadBytes: Int
    /// Subscription sets of a session without a complete view. Beyond: the oldest is forgotten.
    package var openQueries: Int
    /// Bytes of the texts of one subscription set. Beyond: the set is refused.
    package var queryBytes: Int
    /// Bytes of changesets in one DOWNLOAD, unless one alone is larger.
    package var batchBytes: Int
    /// `RealmSubprotocol.knowsCloseCodes`.
    package var knowsCloseCodes = true

    package init(
        version: Int, salt: UInt64, schemaVersion: UInt64 = 0, sessions: Int = 64, uploadBytes: Int = Limits.uploadBytes,
        openQueries: Int = 16, queryBytes: Int = Limits.queryBytes, batchBytes: Int = Limits.bootstrapBytes
    ) {
        (self.version, self.salt, self.schemaVersion, self.sessions) = (version, salt, schemaVersion, sessions)
        (self.uploadBytes, self.openQueries, self.queryBytes, self.batchBytes) = (uploadBytes, openQueries, queryBytes, batchBytes)
    }

    /// Returns the code that closes the connection for a reason. A client that does not know the reason's own code connects again.
    package func code(of reason: RealmCloseReason) -> RealmCloseCode {
        switch reason.code {
        case .unauthorized, .forbidden, .moved: knowsCloseCodes ? reason.code : .internalError
        case .tooLarge, .internalError: reason.code
        }
    }
}

/// A message that ends the connection.
struct ConnectionFault: Error {
    var code: RealmErrorCode
    var message: String
    var reason: RealmCloseReason

    init(_ code: RealmErrorCode, _ message: String, _ reason: RealmCloseReason = .protocolError) {
        (self.code, self.message, self.reason) = (code, message, reason)
    }
}

/// The decisions of one connection with many sessions, as pure code. Messages and results come in as inputs, and actions go out.
///
/// A session goes through these phases:
/// ```
///   BIND ──▶ allotting ──▶ bound ──▶ opening ──▶ bootstrapping ◀──▶ steady
///                                  IDENT   │                          ▲
///                                          └──────── resumed ─────────┘
///   UNBIND or an error from every phase ──▶ ended
/// ```
/// A session that ended with an error stays until its UNBIND, which has no answer. Nothing else is sent or read for it meanwhile.
package struct RealmConnectionMachine: Sendable {
    package let settings: RealmConnectionSettings
    package private(set) var isClosed = false
    private(set) var sessions: [UInt64: RealmSession] = [:]
    private var generation: UInt64 = 0
    private var isPaused = false
    /// The sum of the sessions' `pendingBytes`.
    private var pendingBytes = 0

    package init(_ settings: RealmConnectionSettings) { self.settings = settings }

    /// Handles one input.
    ///
    /// - Parameter now: Milliseconds since 1970.
    /// - Returns: The actions to perform, in order.
    package mutating func handle(_ input: RealmConnectionInput, now: Int64) -> [RealmConnectionAction] {
        guard !isClosed else { return [] }
        do throws(ConnectionFault) {
            let actions = try perform(input, now)
            return actions + (try regulate())
        } catch {
            return close(error)
        }
    }

    private mutating func perform(_ input: RealmConnectionInput, _ now: Int64) throws(ConnectionFault) -> [RealmConnectionAction] {
        switch input {
        case .received(let message): try received(message)
        case .malformed(let error) where error.code == .limitsExceeded: close(.tooLarge, error.message)
        case .malformed(let error): throw ConnectionFault(RealmErrorCode(closing: error), error.message, RealmCloseReason(error))
        case .tokenExpired: close(.unauthorized, "The access token has expired.")
        case .userDisabled: close(.forbidden, "The user is disabled or deleted.")
        case .shutDown: close(.shutDown, "The server is shutting down.")
        case .disconnected: releaseAll()
        default: try sessionInput(input, now)
        }
    }

    private mutating func sessionInput(_ input: RealmConnectionInput, _ now: Int64) throws(ConnectionFault) -> [RealmConnectionAction] {
        switch input {
        case .allotted(let id, let file): try session(id) { (session) throws(ConnectionFault) in session.allotted(file) }
        case .opened(let id, let state, let newest):
            try session(id) { (session) throws(ConnectionFault) in try session.opened(state, newest: newest, now: now) }
        case .append(let id, let entries): try session(id) { (session) throws(ConnectionFault) in session.append(entries, now: now) }
        case .advanced(let id, let version): try session(id) { (session) throws(ConnectionFault) in session.advanced(to: version) }
        case .bootstrap(let id, let part): try session(id) { (session) throws(ConnectionFault) in session.bootstrap(part, now: now) }
        case .queryFailed(let id, let version, let message):
            try session(id) { (session) throws(ConnectionFault) in session.queryFailed(version, message, now: now) }
        case .permissionsChanged(let id): try session(id) { (session) throws(ConnectionFault) in session.permissionsChanged() }
        case .integrated(let id, let result): try session(id) { (session) throws(ConnectionFault) in session.integrated(result) }
        case .changesetIntegrated(let id, let result):
            try session(id) { (session) throws(ConnectionFault) in session.changesetIntegrated(result) }
        case .caughtUp(let id, let request): try session(id) { (session) throws(ConnectionFault) in session.caughtUp(request) }
        case .failed(let id, let error): try session(id) { (session) throws(ConnectionFault) in session.fail(error) }
        case .replaced(let id):
            try session(id) { (session) throws(ConnectionFault) in
                session.fail(.otherSessionError, .transient, "Another session has opened the file.")
            }
        default: []
        }
    }

    /// Changes a session in place. Does nothing if the session is gone.
    private mutating func session(
        _ id: RealmSessionID, _ change: (inout RealmSession) throws(ConnectionFault) -> [RealmConnectionAction]
    ) throws(ConnectionFault) -> [RealmConnectionAction] {
        guard let index = sessions.index(forKey: id.session) else { return [] }
        return try withSession(at: index) { (session) throws(ConnectionFault) in session.id == id ? try change(&session) : [] }
    }

    /// Changes a session in place, and counts its uploads under way. A copy would cost more than most changes.
    private mutating func withSession(
        at index: Dictionary<UInt64, RealmSession>.Index, _ change: (inout RealmSession) throws(ConnectionFault) -> [RealmConnectionAction]
    ) throws(ConnectionFault) -> [RealmConnectionAction] {
        var (before, after) = (0, 0)
        defer { pendingBytes += after - before }
        return try { (session: inout RealmSession) throws(ConnectionFault) in
            before = session.pendingBytes
            defer { after = session.pendingBytes }
            return try change(&session)
        }(&sessions.values[index])
    }

    // MARK: Messages

    private mutating func received(_ message: RealmClientMessage) throws(ConnectionFault) -> [RealmConnectionAction] {
        switch message {
        case .ping(let timestamp, _): return [.send(.pong(timestamp: timestamp))]
        case .bind(let bind): return try open(bind)
        case .unbind(let ident):
            guard var session = sessions.removeValue(forKey: ident) else { throw Self.unknown(message) }
            pendingBytes -= session.pendingBytes
            return session.unbind()
        default: break
        }
        guard let index = sessions.index(forKey: message.session) else { throw Self.unknown(message) }
        if case .ident(let ident) = message, isOpen(ident.file, besides: message.session) {
            return try withSession(at: index) { (session) throws(ConnectionFault) in
                session.fail(.otherSessionError, .transient, "Another session of the connection has opened the file.")
            }
        }
        return try withSession(at: index) { (session) throws(ConnectionFault) in try session.received(message) }
    }

    private static func unknown(_ message: RealmClientMessage) -> ConnectionFault {
        ConnectionFault(.badSessionIdent, "The message \(message.name) names session \(message.session), which is not bound.")
    }

    private func isOpen(_ file: RealmFileIdent, besides session: UInt64) -> Bool {
        sessions.values.contains { $0.id.session != session && $0.phase != .ended && $0.file?.ident == file.ident }
    }

    private mutating func open(_ bind: RealmBind) throws(ConnectionFault) -> [RealmConnectionAction] {
        guard bind.session > 0 else { throw ConnectionFault(.badSessionIdent, "The session 0 cannot be bound.") }
        guard sessions[bind.session] == nil else {
            throw ConnectionFault(.sessionIdentInUse, "The session \(bind.session) is bound already.")
        }
        // Refused sessions stay until their UNBIND, so they need a bound, too.
        guard sessions.count < 2 * settings.sessions else {
            throw ConnectionFault(.otherConnectionError, "The connection has \(sessions.count) sessions.", .overload)
        }
        let open = sessions.values.count { $0.phase != .ended }
        generation += 1
        var session = RealmSession(RealmSessionID(session: bind.session, generation: generation), bind, settings)
        let actions = open < settings.sessions ? session.begin() : session.fail(.otherSessionError, .transient, "Too many sessions.")
        sessions[bind.session] = session
        return actions
    }

    // MARK: The end

    private mutating func close(_ fault: ConnectionFault) -> [RealmConnectionAction] {
        let error = RealmServerError(session: 0, code: fault.code, message: fault.message, action: .transient, tryAgain: true)
        return [.send(.error(error))] + close(fault.reason, fault.message)
    }

    private mutating func close(_ reason: RealmCloseReason, _ text: String) -> [RealmConnectionAction] {
        releaseAll() + [.close(reason, text)]
    }

    private mutating func releaseAll() -> [RealmConnectionAction] {
        isClosed = true
        let ended = sessions.values.sorted { $0.id.session < $1.id.session }
        (sessions, pendingBytes) = ([:], 0)
        return ended.flatMap { session in
            var session = session
            return session.release()
        }
    }

    /// Pauses and resumes reading by the bytes of uploads under way.
    private mutating func regulate() throws(ConnectionFault) -> [RealmConnectionAction] {
        guard !isClosed else { return [] }
        let bytes = pendingBytes
        // Messages that had been read before the pause may still arrive.
        guard bytes <= 4 * settings.uploadBytes else {
            throw ConnectionFault(.otherConnectionError, "The uploads under way have \(bytes) bytes.", .overload)
        }
        if !isPaused, bytes > settings.uploadBytes {
            isPaused = true
            return [.pauseReading]
        }
        if isPaused, bytes <= settings.uploadBytes / 2 {
            isPaused = false
            return [.resumeReading]
        }
        return []
    }
}
