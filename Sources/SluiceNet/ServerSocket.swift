package import NIOCore
import Synchronization

/// The sending side of one WebSocket connection. Every method is safe to call from any thread.
package final class ServerSocket: Sendable {
    /// The connection's event loop. The owner is called on it.
    package let eventLoop: any EventLoop
    private let channel: any Channel
    private let handler: NIOLoopBound<SocketHandler>
    private let calls: LoopCalls
    private let buffered = Atomic<Int>(0)
    /// The sends of other threads that the event loop has not performed.
    private let waiting = Atomic<Int>(0)

    /// - Precondition: called on the channel's event loop.
    init(channel: any Channel, handler: SocketHandler, calls: LoopCalls) {
        (self.channel, self.calls) = (channel, calls)
        eventLoop = channel.eventLoop
        self.handler = NIOLoopBound(handler, eventLoop: channel.eventLoop)
    }

    /// Bytes passed to `send` that are not written to the kernel yet. The socket has no bound of its own. The owner compares this with
    /// `Limits.outboxBytes` and disconnects slow readers.
    package var bufferedBytes: Int { buffered.load(ordering: .relaxed) }

    /// `false` while the connection's buffer is above its high-water mark.
    package var isWritable: Bool { channel.isWritable }

    /// Makes a short call soon on the event loop, together with those for other connections.
    package func perform(_ call: @escaping @Sendable () -> Void) { calls.add(call) }

    /// Sends a frame in one write and one flush, behind the frames of earlier calls. Drops frames after the end of the connection.
    package func send(_ frame: SharedFrame) {
        reserve(frame)
        // The frame of an earlier call from another thread may still wait.
        if eventLoop.inEventLoop, waiting.load(ordering: .acquiring) == 0 {
            handler.value.write(frame)
        } else {
            waiting.add(1, ordering: .releasing)
            eventLoop.execute { self.writeWaiting(frame) }
        }
    }

    private func writeWaiting(_ frame: SharedFrame) {
        waiting.subtract(1, ordering: .releasing)
        handler.value.write(frame)
    }

    /// Sends frames joined in one write and one flush. To send the same frames to many connections, join them once with
    /// `SharedFrame.join` and use `send(_:toAll:)`.
    package func send(frames: [SharedFrame]) {
        if !frames.isEmpty { send(SharedFrame.join(frames)) }
    }

    /// Sends one frame to many connections, with one hop per event loop instead of one per connection.
    package static func send(_ frame: SharedFrame, toAll sockets: some Sequence<ServerSocket>) {
        var byLoop: [ObjectIdentifier: (loop: any EventLoop, sockets: [ServerSocket])] = [:]
        for socket in sockets {
            socket.reserve(frame)
            socket.waiting.add(1, ordering: .releasing)
            byLoop[ObjectIdentifier(socket.eventLoop), default: (socket.eventLoop, [])].sockets.append(socket)
        }
        for (loop, sockets) in byLoop.values {
            loop.execute { for socket in sockets { socket.writeWaiting(frame) } }
        }
    }

    /// Sends a close frame after all earlier frames, then closes. The peer has `WebSocketLimits.closeGrace` to answer.
    ///
    /// - Parameter reason: Cut to the 123 bytes that the frame holds.
    package func close(_ code: SocketCloseCode, reason: String = "") {
        eventLoop.execute { self.handler.value.close(code, reason: reason, because: .local(code: code.rawValue)) }
    }

    /// Closes for a shutdown of the server, after all earlier frames.
    func leave() { eventLoop.execute { self.handler.value.leave(isAnswered: true) } }

    /// Marks the peer as authenticated. From here on, messages up to `WebSocketLimits.messageBytes` are read.
    package func authenticated() {
        if eventLoop.inEventLoop {
            handler.value.authenticated()
        } else {
            eventLoop.execute { self.handler.value.authenticated() }
        }
    }

    /// Stops reading from the connection, which applies backpressure to the peer. Messages from bytes already read may still arrive.
    /// Silence does not count while reading is paused.
    package func pauseReading() { setReading(false) }

    package func resumeReading() { setReading(true) }

    private func setReading(_ reads: Bool) {
        if eventLoop.inEventLoop {
            handler.value.setReading(reads)
        } else {
            eventLoop.execute { self.handler.value.setReading(reads) }
        }
    }

    private func reserve(_ frame: SharedFrame) { buffered.add(frame.byteCount, ordering: .relaxed) }

    /// Counts the bytes of the connection's own control frames.
    func reserveControl(_ frame: SharedFrame) { reserve(frame) }

    func release(_ frame: SharedFrame) { buffered.subtract(frame.byteCount, ordering: .relaxed) }
}
