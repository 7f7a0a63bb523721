package import NIOCore
import Synchronization

/// The sending side of one WebSocket connection. Every method may be called from any thread.
package final class ServerSocket: Sendable {
    /// Where the connection lives; its owner's calls come from here.
    package let eventLoop: any EventLoop
    private let channel: any Channel
    private let handler: NIOLoopBound<SocketHandler>
    private let buffered = Atomic<Int>(0)

    /// - Precondition: called on the channel's event loop.
    init(channel: any Channel, handler: SocketHandler) {
        self.channel = channel
        eventLoop = channel.eventLoop
        self.handler = NIOLoopBound(handler, eventLoop: channel.eventLoop)
    }

    /// Bytes handed to `send` that the kernel has not taken yet. The owner compares it with `Limits.outboxBytes` and
    /// disconnects a reader that is too slow; the socket itself has no bound.
    package var bufferedBytes: Int { buffered.load(ordering: .relaxed) }

    /// False while the connection's buffer is above its high-water mark.
    package var isWritable: Bool { channel.isWritable }

    /// Sends frames in one write and one flush. Frames sent after the end of the connection are dropped.
    package func send(_ frame: SharedFrame) {
        reserve(frame)
        if eventLoop.inEventLoop {
            handler.value.write(frame)
        } else {
            eventLoop.execute { self.handler.value.write(frame) }
        }
    }

    /// Sends frames joined in one write and one flush. For many receivers of the same frames, `SharedFrame.join` them
    /// once and use `send(_:toAll:)`.
    package func send(frames: [SharedFrame]) {
        if !frames.isEmpty { send(SharedFrame.join(frames)) }
    }

    /// Sends one frame to many connections, with one hop per event loop instead of one per connection.
    package static func send(_ frame: SharedFrame, toAll sockets: some Sequence<ServerSocket>) {
        var byLoop: [ObjectIdentifier: (loop: any EventLoop, sockets: [ServerSocket])] = [:]
        for socket in sockets {
            socket.reserve(frame)
            byLoop[ObjectIdentifier(socket.eventLoop), default: (socket.eventLoop, [])].sockets.append(socket)
        }
        for (loop, sockets) in byLoop.values {
            loop.execute { for socket in sockets { socket.handler.value.write(frame) } }
        }
    }

    /// Says goodbye and closes, after what has been sent before; the peer has `WebSocketLimits.closeGrace` to answer.
    package func close(_ code: SocketCloseCode, reason: String = "") {
        eventLoop.execute { self.handler.value.close(code, reason: reason, because: .local(code: code.rawValue)) }
    }

    /// The peer has proved who it is: messages up to `WebSocketLimits.messageBytes` are read from here on.
    package func authenticated() {
        if eventLoop.inEventLoop {
            handler.value.authenticated()
        } else {
            eventLoop.execute { self.handler.value.authenticated() }
        }
    }

    /// Stops reading from the connection, so that the peer feels it. Messages of bytes that were read already may still
    /// come. Silence does not count while reading is paused.
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

    /// Counts bytes of the connection's own control frames.
    func reserveControl(_ frame: SharedFrame) { reserve(frame) }

    func release(_ frame: SharedFrame) { buffered.subtract(frame.byteCount, ordering: .relaxed) }
}
