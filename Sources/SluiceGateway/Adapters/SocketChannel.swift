import NIOCore
import SluiceCore
import SluiceNet
import SluicePipeline
import Synchronization

/// A frame in the server's own form, held by reference so that sharing it costs a pointer.
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

/// One client's WebSocket as the pipeline's channel.
///
/// Messages wait in a mailbox, bounded in bytes by `Limits.uploadBytes`: beyond it reading from the socket stops until the
/// session has caught up, so a client that uploads faster than PostgreSQL commits feels it. Created for an upgrade that was
/// accepted; the session runs from `opened` to `closed`.
///
/// A task handles messages while there are any, and there is none while there are not: a task keeps the deepest stack that it
/// ever had, which is more than all else that an idle session has.
final class SocketChannel: SocketOwner, SessionChannel {
    private struct State {
        var socket: ServerSocket?
        var waitingBytes = 0
        var isPaused = false
        var isClosed = false
        /// The mailbox.
        var letters: [Letter] = []
        /// Of those and of the ones being handled.
        var waiting = 0
        /// Whether somebody handles letters, or has been called for it.
        var isBusy = false
        var hasEnded = false
        /// Whose session it is, once that is known.
        var user: String?

        /// - Returns: whether nobody was before.
        mutating func beBusy() -> Bool {
            defer { isBusy = true }
            return !isBusy
        }
    }

    private enum Letter {
        case message([UInt8])
        /// The rules have changed, or the data of a user.
        case reconsider(user: String?)

        func isReconsideration(of user: String?) -> Bool {
            if case .reconsider(user) = self { true } else { false }
        }
    }

    private let state = Mutex(State())
    private let drainSignal: Signal
    private let services: SessionServices
    /// Counts the bytes that are sent.
    private let egress: MetricNumber
    private let session = Mutex<Session?>(nil)
    private let onWork: @Sendable (SocketChannel) -> Void
    private let onEnd: @Sendable (SocketChannel) -> Void

    /// Messages in the mailbox; more close the connection, as no client of ours sends so many unacknowledged.
    static let mailboxMessages = 4_096

    /// - Parameters:
    ///   - onWork: has `work` called, soon and once for each call of it.
    ///   - onEnd: the connection and the session are over.
    init(
        services: SessionServices, egress: MetricNumber, onWork: @escaping @Sendable (SocketChannel) -> Void,
        onEnd: @escaping @Sendable (SocketChannel) -> Void
    ) {
        self.services = services
        self.egress = egress
        self.onWork = onWork
        self.onEnd = onEnd
        drainSignal = Signal(environment: services.environment)
    }

    /// Handles the client's messages one after another until there are no more, and then the connection's end if it has come.
    func work() async {
        let session = self.session.withLock { session in
            let present = session ?? Session(services: services, channel: self)
            session = present
            return present
        }
        while let letters = take() {
            for letter in letters { await handle(letter, session) }
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
            // Each message may have an answer: who asks and does not read is asked to read first.
            await drained(below: Limits.outboxBytes)
            await session.handle(message)
            taken(message.count)
        case .reconsider(let user): await session.reconsider(user: user)
        }
        state.withLock { $0.waiting -= 1 }
    }

    /// - Returns: what there is in the mailbox; nothing when the connection has ended; nil when there is nothing to do.
    private func take() -> [Letter]? {
        state.withLock { state in
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

    /// Ends a session that nobody will call `work` for any more.
    func end() async {
        let isIdle = state.withLock { state in
            state.isClosed = true
            return state.beBusy()
        }
        if isIdle { await work() }
    }

    /// Ends the session if it is this user's, or whoever's.
    func disconnect(user: String?, _ error: SluiceError) async {
        let session = self.session.withLock { $0 }
        await session?.end(user: user, error)
    }

    func status(of type: Int, named name: String, user: String) async throws -> SessionStatus? {
        try await session.withLock { $0 }?.status(of: type, named: name, user: user)
    }

    /// Has the session take up new rules, or new data of a user, after the messages that came before.
    func reconsider(user: String?) {
        let isNews = state.withLock { state in
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
        pause?.pauseReading()
        put(.message(message))
    }

    func writabilityChanged(_ isWritable: Bool) { if isWritable { drainSignal.fire() } }

    func oversize() -> [UInt8]? {
        SessionMessages.error(SluiceError(.limitsExceeded, "A message is over \(Limits.messageBytes) bytes."))
    }

    func refused(_ refusal: OpeningRefusal) -> [UInt8]? {
        let error =
            switch refusal {
            case .late: SluiceError(.helloTimeout, "No complete Hello came within \(Limits.openingSeconds) s.")
            case .tooLarge:
                SluiceError(.helloTooLarge, "A message before authentication is over \(Limits.openingBytes) bytes.")
            }
        services.observer.failed(error.code)
        return SessionMessages.error(error)
    }

    func shuttingDown() -> [UInt8]? { SessionMessages.error(SluiceError(.shuttingDown, "The gateway is stopping.")) }

    func closed(_ reason: SocketCloseReason) {
        let isIdle = state.withLock { state in
            state.isClosed = true
            return state.beBusy()
        }
        if isIdle { onWork(self) }
        drainSignal.fire()
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
        let time = services.environment
        var (least, since) = (Int.max, time.monotonicNanoseconds())
        while case let waiting = bufferedBytes, waiting >= bytes, !isClosed, !Task.isCancelled {
            let now = time.monotonicNanoseconds()
            if waiting < least - Limits.unreadBytes {
                (least, since) = (waiting, now)
            } else if now - since > Limits.unreadSeconds * 1_000_000_000 {
                let reason = "\(waiting) bytes wait for this client, which has not read on for \(Limits.unreadSeconds) s."
                state.withLock { $0.isClosed = true }
                return close(SluiceError(.slowClient, reason))
            }
            // The socket tells when it has become writable; the second is for a bound below its low-water mark.
            await drainSignal.wait(after: drainSignal.count, milliseconds: 20)
        }
    }

    func close(_ error: SluiceError?) {
        if let error { services.observer.failed(error.code) }
        state.withLock { $0.socket }?.close(error == nil ? .normal : .tryAgainLater, reason: error?.code.name ?? "")
    }
}
