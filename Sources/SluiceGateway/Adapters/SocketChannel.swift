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
final class SocketChannel: SocketOwner, SessionChannel {
    private struct State {
        var socket: ServerSocket?
        var waitingBytes = 0
        var isPaused = false
        var isClosed = false
    }

    private let state = Mutex(State())
    private let inbox: AsyncStream<[UInt8]>
    private let letters: AsyncStream<[UInt8]>.Continuation
    private let drainSignal: Signal
    private let services: SessionServices
    private let session = Mutex<Session?>(nil)
    private let onEnd: @Sendable (SocketChannel) -> Void

    /// Messages in the mailbox; more close the connection, as no client of ours sends so many unacknowledged.
    static let mailboxMessages = 4_096

    init(services: SessionServices, onEnd: @escaping @Sendable (SocketChannel) -> Void) {
        self.services = services
        self.onEnd = onEnd
        drainSignal = Signal(environment: services.environment)
        (inbox, letters) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.mailboxMessages))
    }

    /// Handles the client's messages one after another until the connection ends.
    func run() async {
        let session = Session(services: services, channel: self)
        self.session.withLock { $0 = session }
        for await message in inbox {
            await session.handle(message)
            taken(message.count)
        }
        await session.closed()
        self.session.withLock { $0 = nil }
        onEnd(self)
    }

    /// Ends the session if it is this user's.
    func disconnect(user: String, _ error: SluiceError) async {
        let session = self.session.withLock { $0 }
        await session?.end(user: user, error)
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
        if case .dropped = letters.yield(message) {
            close(SluiceError(.limitsExceeded, "\(Self.mailboxMessages) messages wait to be handled.", fix: "Send fewer, larger messages."))
        }
    }

    func writabilityChanged(_ isWritable: Bool) { if isWritable { drainSignal.fire() } }

    func oversize() -> [UInt8]? {
        SessionMessages.error(SluiceError(.limitsExceeded, "A message is over \(Limits.messageBytes) bytes."))
    }

    func shuttingDown() -> [UInt8]? { SessionMessages.error(SluiceError(.shuttingDown, "The gateway is stopping.")) }

    func closed(_ reason: SocketCloseReason) {
        state.withLock { $0.isClosed = true }
        letters.finish()
        drainSignal.fire()
    }

    // MARK: SessionChannel

    func send(_ frames: [Frame]) {
        guard let socket = state.withLock({ $0.socket }) else { return }
        if frames.count == 1, let box = frames[0].storage as? FrameBox {
            socket.send(box.frame)
        } else {
            socket.send(frames: frames.compactMap { ($0.storage as? FrameBox)?.frame })
        }
    }

    var bufferedBytes: Int { state.withLock { $0.socket }?.bufferedBytes ?? 0 }

    func drained(below bytes: Int) async {
        while bufferedBytes >= bytes, !state.withLock({ $0.isClosed }), !Task.isCancelled {
            // The socket tells when it has become writable; the second is for a bound below its low-water mark.
            await drainSignal.wait(after: drainSignal.count, milliseconds: 20)
        }
    }

    func close(_ error: SluiceError?) {
        state.withLock { $0.socket }?.close(error == nil ? .normal : .tryAgainLater, reason: error?.code.name ?? "")
    }
}
