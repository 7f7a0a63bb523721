import NIOCore
import SluiceCore
import SluiceNet
import SluicePipeline
import SluicePorts
import Synchronization

/// A frame in the server's encoding, held by reference so that a copy costs one pointer.
final class FrameBox: Sendable {
    let frame: SharedFrame
    init(_ frame: SharedFrame) { self.frame = frame }
}

struct SocketFrames: FrameMaker {
    func frame(_ message: [UInt8]) -> Frame {
        let frame = SharedFrame.encode(binary: message)
        return Frame(storage: FrameBox(frame), byteCount: frame.byteCount)
    }
}

/// A client's WebSocket, as the pipeline's channel.
///
/// Messages wait in a mailbox. Above `Limits.uploadBytes`, the channel stops reading from the socket until the session has caught up. A
/// client that uploads faster than PostgreSQL commits thus meets backpressure. The session runs from `opened` to `closed`. Calls of
/// `SocketOwner` arrive on the connection's event loop, those of `SessionChannel` from any task.
///
/// A task runs only while there are messages. A suspended task keeps the largest stack that it ever had, more than the rest of an idle
/// session.
final class SocketChannel: SocketOwner, SessionChannel {
    private struct State {
        var socket: ServerSocket?
        var waitingBytes = 0
        var isPaused = false
        var isClosed = false
        /// The mailbox.
        var letters: [Letter] = []
        /// The number of messages in the mailbox and in handling.
        var waiting = 0
        /// `true` from the call of `onWork` until the worker finds the mailbox empty. At most one task handles messages.
        var isBusy = false
        var hasEnded = false
        /// The user of the session, once authenticated.
        var user: String?

        /// Marks the channel as busy.
        ///
        /// - Returns: `true` if it was not busy before.
        mutating func beBusy() -> Bool {
            defer { isBusy = true }
            return !isBusy
        }
    }

    private enum Letter {
        case message([UInt8])
        /// The rules have changed, or the data of a user.
        case reconsider(user: String?)
        /// The server is stopping. The function is called once all earlier messages have their answers.
        case settle(@Sendable () -> Void)

        func isReconsideration(of user: String?) -> Bool {
            if case .reconsider(user) = self { true } else { false }
        }
    }

    private let state = Mutex(State())
    private let outbox: SocketOutbox
    private let services: SessionServices
    /// Counts the bytes sent.
    private let egress: MetricNumber
    private let session = Mutex<Session?>(nil)
    private let onWork: @Sendable (SocketChannel) -> Void
    private let onEnd: @Sendable (SocketChannel) -> Void

    /// The time at which the connection was accepted, in monotonic nanoseconds.
    let began: UInt64

    /// The maximum number of messages in the mailbox. Further ones close the connection with `limitsExceeded`.
    static let mailboxMessages = 4_096

    /// - Parameters:
    ///   - onWork: Must arrange one call of `work` for each call of it.
    ///   - onEnd: Called when the connection and the session have ended.
    init(
        services: SessionServices, egress: MetricNumber, onWork: @escaping @Sendable (SocketChannel) -> Void,
        onEnd: @escaping @Sendable (SocketChannel) -> Void
    ) {
        self.services = services
        self.egress = egress
        self.onWork = onWork
        self.onEnd = onEnd
        outbox = SocketOutbox(environment: services.environment)
        began = services.environment.monotonicNanoseconds()
    }

    /// Handles messages until the mailbox is empty, and closes the session if the connection has ended.
    func work() async {
        let session = self.session.withLock { session in
            let present = session ?? Session(services: services, channel: self)
            session = present
            return present
        }
        while let letters = take() {
            for letter in letters { await handle(letter, session) }
            // The channel stays busy after the end, so no other task can create a second session.
            if letters.isEmpty {
                await session.closed()
                self.session.withLock { $0 = nil }
                return onEnd(self)
            }
        }
    }

    private func handle(_ letter: Letter, _ session: Session) async {
        switch letter {
        case .message(let message):
            // Each message may cause a reply. A client that does not read must read before its next message is handled.
            await drained(below: Limits.outboxBytes)
            await session.handle(message)
            // A message counts as waiting until it is handled, so the bound covers it.
            taken(message.count)
        case .reconsider(let user): await session.reconsider(user: user)
        case .settle(let done):
            await session.answered()
            done()
        }
        state.withLock { $0.waiting -= 1 }
    }

    /// Returns the content of the mailbox, an empty array once after the connection has closed, or nil if idle.
    private func take() -> [Letter]? {
        state.withLock { state in
            // Before the end: messages received before the close are still handled.
            if !state.letters.isEmpty {
                defer { state.letters = [] }
                return state.letters
            }
            if state.isClosed, !state.hasEnded {
                state.hasEnded = true
                return []
            }
            state.isBusy = false
            return nil
        }
    }

    /// Closes the channel at shutdown, when `onWork` no longer leads to `work`.
    func end() async {
        let isIdle = state.withLock { state in
            state.isClosed = true
            return state.beBusy()
        }
        if isIdle { await work() }
    }

    /// Ends the session if the scope contains it.
    func disconnect(_ scope: SessionScope, _ error: SluiceError) async {
        let session = self.session.withLock { $0 }
        await session?.end(scope, error)
    }

    func status(of type: Int, named name: String, user: String) async throws -> SessionStatus? {
        try await session.withLock { $0 }?.status(of: type, named: name, user: user)
    }

    /// The session's client and subscription set; nil unless the session is open.
    var summary: SessionSummary? {
        get async { await session.withLock(\.self)?.summary }
    }

    /// Queues a reevaluation of the rules behind the messages that wait. Does nothing if an equal one waits.
    func reconsider(user: String?) {
        let isNews = state.withLock { state in
            // A session without a user may turn out to be this user's, so it is included.
            guard user == nil || state.user == nil || state.user == user else { return false }
            return !state.letters.contains { $0.isReconsideration(of: user) }
        }
        if isNews { put(.reconsider(user: user)) }
    }

    private func put(_ letter: Letter) {
        let (isFull, isIdle) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            guard state.waiting < Self.mailboxMessages else { return (true, false) }
            state.waiting += 1
            state.letters.append(letter)
            return (false, state.beBusy())
        }
        if isIdle { onWork(self) }
        if isFull {
            close(SluiceError(.limitsExceeded, "\(Self.mailboxMessages) messages wait to be handled.", fix: "Send fewer, larger messages."))
        }
    }

    private func taken(_ bytes: Int) {
        let socket = state.withLock { state -> ServerSocket? in
            state.waitingBytes -= bytes
            // Half the bound: a gap avoids pausing and resuming the socket for each message.
            guard state.isPaused, state.waitingBytes < Limits.uploadBytes / 2 else { return nil }
            state.isPaused = false
            return state.socket
        }
        socket?.resumeReading()
    }

    // MARK: SocketOwner

    func opened(_ socket: ServerSocket) { state.withLock { $0.socket = socket } }

    func message(_ bytes: ByteBuffer) {
        let message = Array(bytes.readableBytesView)
        let pause = state.withLock { state -> ServerSocket? in
            state.waitingBytes += message.count
            guard !state.isPaused, state.waitingBytes > Limits.uploadBytes else { return nil }
            state.isPaused = true
            return state.socket
        }
        // Outside of the lock, as are all calls to the socket.
        pause?.pauseReading()
        put(.message(message))
    }

    func writabilityChanged(_ isWritable: Bool) { if isWritable { outbox.wake() } }

    func oversize() -> [UInt8]? {
        SessionMessages.error(SluiceError(.limitsExceeded, "A message is over \(Limits.messageBytes) bytes."))
    }

    func refused(_ refusal: OpeningRefusal) -> [UInt8]? {
        let error =
            switch refusal {
            case .late: SluiceError(.helloTimeout, "No complete Hello arrived within \(Limits.openingSeconds) s.")
            case .tooLarge:
                SluiceError(.helloTooLarge, "A message before authentication is over \(Limits.openingBytes) bytes.")
            }
        services.observer.failed(error.code)
        return SessionMessages.error(error)
    }

    func settle(_ done: @escaping @Sendable () -> Void) { put(.settle(done)) }

    func shuttingDown() -> [UInt8]? { SessionMessages.error(SluiceError(.shuttingDown, "The gateway is stopping.")) }

    func closed(_ reason: SocketCloseReason) {
        let isIdle = state.withLock { state in
            // A worker that is running notices `isClosed` itself when the mailbox is empty.
            state.isClosed = true
            return state.beBusy()
        }
        if isIdle { onWork(self) }
        outbox.wake()
    }

    // MARK: SessionChannel

    func send(_ frames: [Frame]) {
        guard let socket = state.withLock({ $0.isClosed ? nil : $0.socket }) else { return }
        egress.add(frames.reduce(0) { $0 + $1.byteCount })
        if frames.count == 1, let box = frames[0].storage as? FrameBox {
            socket.send(box.frame)
        } else {
            socket.send(frames: frames.compactMap { ($0.storage as? FrameBox)?.frame })
        }
    }

    var bufferedBytes: Int { state.withLock { $0.socket }?.bufferedBytes ?? 0 }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    func belongs(to user: String) {
        let socket = state.withLock { state in
            state.user = user
            return state.socket
        }
        socket?.authenticated()
    }

    func drained(below bytes: Int) async {
        guard let error = await outbox.drained(below: bytes, buffered: { bufferedBytes }, isClosed: { isClosed }) else { return }
        // Set before the close: from here on `send` drops frames instead of adding to the buffer.
        state.withLock { $0.isClosed = true }
        close(error)
    }

    func close(_ error: SluiceError?) {
        if let error { services.observer.failed(error.code) }
        state.withLock { $0.socket }?.close(error == nil ? .normal : .tryAgainLater, reason: error?.code.name ?? "")
    }
}
