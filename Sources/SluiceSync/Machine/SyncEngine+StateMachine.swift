package import SluiceCore
import SluiceReplica
import SluiceWire

/// The sync engine's decisions, as pure code. Time, randomness, messages and the replica's state come in as arguments. Actions go out;
/// `SyncEngine` performs them. Inputs of a connection other than the current one are ignored.
///
/// ```
///            start             connected        loaded           Welcome
///   idle ───────────▶ connecting ─────▶ loading ─────▶ greeting ─────────▶ open
///    ▲  pause  ▲          │ lost          │              │ lost, error       │
///    └─────────┴── waiting (back-off) ◀───┴──────────────┴───────────────────┤
///                  refreshing (token) ◀───────── token expired ──────────────┤
///                  ended (start tries again) ◀── fatal error ────────────────┘
/// ```
package struct SyncStateMachine: Sendable {
    package enum Phase: Hashable, Sendable {
        case idle
        case waiting(until: UInt64)
        case refreshing(until: UInt64)
        case connecting(until: UInt64)
        case loading(until: UInt64)
        case greeting(until: UInt64)
        case open
        case ended(SluiceError)
    }

    struct Wait: Sendable {
        var kind: SyncWait
        var deadline: UInt64?
    }

    package let configuration: SyncConfiguration
    let local: Schema
    package private(set) var phase: Phase = .idle
    /// The number of the newest connection.
    package private(set) var connection: UInt64 = 0
    package private(set) var backoff = Backoff()
    var session: SyncSession?
    /// The access token of the next `Hello`. `nil` if there is none, or the gateway rejected it.
    var token: String?
    private var renewal = TokenRenewal()
    private var tokenRefusals = 0
    private var waits: [UInt64: Wait] = [:]
    /// The client-side error that the next session reports to the gateway.
    private var complaint: SluiceError?
    private var shown = SyncReport.Connection.disconnected
    private(set) var now: UInt64 = 0
    private var random: UInt64 = 0
    var actions: [SyncAction] = []
    private var timing: SyncTiming { configuration.timing }

    /// - Parameter schema: the schema of the client replica. Type indices in actions refer to it.
    package init(configuration: SyncConfiguration, schema: Schema) {
        self.configuration = configuration
        local = schema
    }

    /// The schema that decodes the session's rows. `nil` before `Welcome`.
    package var serverSchema: ServerSchema? { session?.schema }

    /// The time of the next needed `tick`, on the clock of `now`. `nil` if nothing is timed.
    package var nextDeadline: UInt64? {
        var earliest = waits.values.compactMap(\.deadline).min()
        switch phase {
        case .idle, .ended: break
        case .waiting(let until), .refreshing(let until), .connecting(let until), .loading(let until), .greeting(let until):
            earliest = min(earliest ?? until, until)
        case .open:
            guard let session else { break }
            let next = min(session.lastPing + timing.ping, session.lastReceived + timing.silence)
            earliest = [earliest, next, renewal.due].compactMap(\.self).min()
        }
        return earliest
    }

    /// Handles one input and returns the actions to perform, in order.
    /// - Parameters:
    ///   - now: milliseconds on a monotonic clock.
    ///   - random: a fresh random number, for the back-off.
    package mutating func handle(_ input: SyncInput, now: UInt64, random: UInt64) -> [SyncAction] {
        self.now = now
        self.random = random
        take(input)
        showConnection()
        defer { actions = [] }
        return actions
    }

    private mutating func take(_ input: SyncInput) {
        switch input {
        case .start(let token): start(token)
        case .pause: pause()
        case .reconnect: reconnect()
        case .connected(let id): connected(id)
        case .disconnected(let id, let error):
            if isCurrent(id) { fail(error ?? SluiceError(.connectionFailed, "The connection was closed.")) }
        case .received(let id, let message):
            if isCurrent(id) { received(message) }
        case .traffic(let id):
            if isCurrent(id) { session?.lastReceived = now }
        case .unreadable(let id, let error):
            if isCurrent(id) { blame(error) }
        case .loaded(let id, let state):
            if isCurrent(id) { greet(state) }
        case .pending(let id, let pending):
            if isCurrent(id), phase == .open { read(pending) }
        case .localChange: localChange()
        case .tokenRefreshed(let token): refreshed(token)
        case .tokenFailed(let error): refreshFailed(error)
        case .replicaFailed(let error): replicaFailed(error)
        case .wait(let id, let kind, let deadline): wait(id, kind, deadline)
        case .cancelWait(let id): waits[id] = nil
        case .tick: tick()
        }
    }

    func isCurrent(_ id: UInt64) -> Bool {
        guard id == connection else { return false }
        switch phase {
        case .connecting, .loading, .greeting, .open: return true
        case .idle, .waiting, .refreshing, .ended: return false
        }
    }

    func report(_ report: SyncReport) -> SyncAction { .report(report) }

    private mutating func showConnection() {
        let state: SyncReport.Connection =
            switch phase {
            case .idle, .waiting, .ended: .disconnected
            case .refreshing, .connecting, .loading, .greeting: .connecting
            case .open: .connected
            }
        guard state != shown else { return }
        shown = state
        actions.append(.report(.connection(state)))
    }
}

// MARK: Connecting

extension SyncStateMachine {
    private mutating func start(_ token: String?) {
        switch phase {
        case .idle: break
        case .ended: actions.append(.report(.resumed))
        case .waiting, .refreshing, .connecting, .loading, .greeting, .open: return
        }
        self.token = token ?? self.token
        renewal.arrived(self.token, isFresh: false, now: now, random: random)
        tokenRefusals = 0
        backoff.reset()
        attempt()
    }

    private mutating func pause() {
        if case .ended = phase { return }
        leave()
        phase = .idle
    }

    private mutating func reconnect() {
        switch phase {
        case .idle, .ended: return
        case .waiting: break
        case .refreshing, .connecting, .loading, .greeting: return
        case .open: leave()
        }
        backoff.reset()
        attempt()
    }

    /// Connects, or requests a token first.
    private mutating func attempt() {
        guard token != nil else {
            phase = .refreshing(until: now + timing.connect)
            actions.append(.refreshToken)
            return
        }
        connection += 1
        phase = .connecting(until: now + timing.connect)
        actions.append(.connect(connection))
    }

    private mutating func connected(_ id: UInt64) {
        guard id == connection, case .connecting(let until) = phase else {
            actions.append(.close(id))
            return
        }
        phase = .loading(until: until)
        actions.append(.load(id))
    }

    private mutating func greet(_ state: LocalState) {
        guard case .loading(let until) = phase else { return }
        session = SyncSession(local: state, now: now)
        phase = .greeting(until: until)
        // Nothing of the file may be uploaded in this user's name.
        guard !state.isForeign else {
            return reset(SluiceError(.userMismatch, "The file was written by another user."), isRecoveryAllowed: false, 0)
        }
        var hello = PBHello(state)
        hello.protocol = WireProtocol.version
        hello.accessToken = token ?? ""
        hello.sdk = configuration.sdk
        hello.schema = local.messages
        // A gateway reads no large message from an unauthenticated client, so the token goes ahead.
        if let bytes = try? WireProtocol.encode(PBClientMessage(.hello(hello))).count, bytes > Limits.openingBytes {
            var ahead = PBRefreshToken()
            ahead.accessToken = hello.accessToken
            send(.refreshToken(ahead))
        }
        send(.hello(hello))
    }

    mutating func open() { phase = .open }

    mutating func send(_ kind: PBClientMessage.OneOf_Kind) {
        actions.append(.send(connection, PBClientMessage(kind)))
    }

    /// Closes the connection, if there is one, and drops the session. Waits survive.
    private mutating func leave() {
        switch phase {
        case .connecting, .loading, .greeting, .open: actions.append(.close(connection))
        case .idle, .waiting, .refreshing, .ended: break
        }
        session = nil
    }

    /// Ends the session and schedules the next attempt.
    /// - Parameter atLeast: the minimal delay, in milliseconds, even if the back-off is shorter.
    mutating func fail(_ error: SluiceError, atLeast: UInt64 = 0, mendsItself: Bool = false) {
        retry(atLeast: atLeast)
        let isFault = !mendsItself && error.code != .connectionFailed && error.code != .timeout
        actions.append(.report(.interrupted(error, isFault: isFault)))
    }

    /// Ends the session for an error that should not occur. The next session reports it to the gateway, for its log.
    mutating func blame(_ error: SluiceError, atLeast: UInt64 = 0) {
        complaint = error
        fail(error, atLeast: atLeast)
    }

    /// Reports the error of the session before.
    mutating func complain() {
        if let error = complaint.take() { report(error) }
    }

    /// Closes the connection and reconnects after the back-off.
    mutating func retry(atLeast: UInt64) {
        leave()
        phase = .waiting(until: now + max(backoff.next(random: random), atLeast))
    }

    /// Reconnects at once: the gateway accepts some changes only in a new session.
    mutating func restart() {
        leave()
        attempt()
    }

    /// Stops until `start`. Ends all waits with `error`.
    mutating func end(_ error: SluiceError, _ report: SyncReport) {
        leave()
        phase = .ended(error)
        actions.append(.report(report))
        for id in waits.keys.sorted() { actions.append(.finish(id, error)) }
        waits = [:]
    }

    /// Resets the back-off: the connection has carried a message that only a working session receives.
    mutating func prove() {
        guard session?.isProven == false else { return }
        session?.isProven = true
        backoff.reset()
        tokenRefusals = 0
    }

    mutating func heard() { session?.lastReceived = now }

    private mutating func replicaFailed(_ error: SluiceError) {
        if error.code == .replicaCorrupt || error.code == .replicaVersion {
            end(error, .stopped(error))
        } else if isCurrent(connection) {
            blame(error, atLeast: 10_000)
        } else {
            actions.append(.report(.warning(error)))
        }
    }
}

// MARK: Tokens

extension SyncStateMachine {
    private mutating func refreshed(_ token: String) {
        // Another session of the user may have requested the same one.
        let isNew = token != self.token
        self.token = token
        renewal.arrived(token, isFresh: true, now: now, random: random)
        switch phase {
        case .refreshing: attempt()
        case .open where isNew:
            var message = PBRefreshToken()
            message.accessToken = token
            send(.refreshToken(message))
        case .idle, .waiting, .connecting, .loading, .greeting, .open, .ended: break
        }
    }

    private mutating func refreshFailed(_ error: SluiceError) {
        guard case .refreshing = phase else { return }
        switch error.code {
        case .invalidSession, .userDisabled, .badAuthentication, .userNotFound, .invalidPassword, .permissionDenied:
            end(error, .loggedOut(error))
        default: fail(error)
        }
    }

    /// Drops a rejected token. The first rejection fetches a new one at once. If that is rejected too, the token is not the cause, and
    /// the back-off applies.
    mutating func tokenRefused(_ error: SluiceError) {
        token = nil
        tokenRefusals += 1
        if tokenRefusals > 1 { fail(error) } else { restart() }
    }
}

// MARK: Time and waits

extension SyncStateMachine {
    private mutating func tick() {
        for (id, wait) in waits.sorted(by: { $0.key < $1.key }) {
            guard let deadline = wait.deadline, deadline <= now else { continue }
            waits[id] = nil
            actions.append(.finish(id, SluiceError(.timeout, "The \(wait.kind) was not complete in the time given.")))
        }
        switch phase {
        case .idle, .ended: break
        case .waiting(let until): if until <= now { attempt() }
        case .refreshing(let until):
            if until <= now { refreshFailed(SluiceError(.timeout, "No access token arrived within \(timing.connect) ms.")) }
        case .connecting(let until), .loading(let until), .greeting(let until):
            if until <= now { fail(SluiceError(.timeout, "The gateway did not answer within \(timing.connect) ms.")) }
        case .open: watch()
        }
    }

    private mutating func watch() {
        guard let session else { return }
        if session.lastReceived + timing.silence <= now {
            fail(SluiceError(.timeout, "The gateway was silent for \(timing.silence) ms."))
        } else if session.lastPing + timing.ping <= now {
            self.session?.lastPing = now
            actions.append(.ping(connection))
        }
        if phase == .open, renewal.takesTurn(now: now) { actions.append(.refreshToken) }
    }

    private mutating func wait(_ id: UInt64, _ kind: SyncWait, _ deadline: UInt64?) {
        if case .ended(let error) = phase {
            actions.append(.finish(id, error))
            return
        }
        waits[id] = Wait(kind: kind, deadline: deadline)
        session?.mustReadSets = true
        session?.mustReadChangesets = true
        session?.mustReadIngest = true
        pump()
    }

    mutating func reached(_ mark: UInt64) {
        guard waits.removeValue(forKey: mark) != nil else { return }
        actions.append(.finish(mark, nil))
    }

    /// The numbers of the download waits.
    var downloadWaits: Set<UInt64> { Set(waits.filter { $0.value.kind == .download }.keys) }

    /// Sends the barriers of waits, once the gateway has the set that was the latest when the wait began.
    mutating func sendMarks() {
        guard let session else { return }
        for id in downloadWaits.intersection(session.marksRead).subtracting(session.marksSent).sorted() {
            self.session?.marksSent.insert(id)
            var mark = PBMark()
            mark.id = id
            send(.mark(mark))
        }
    }

    mutating func finishUploads() {
        for id in waits.keys.sorted() where waits[id]?.kind == .upload {
            waits[id] = nil
            actions.append(.finish(id, nil))
        }
    }
}
