import DequeModule
import SluiceCore
import Synchronization

/// The engine's side of one connection: its outbox, and the means to close it before, while and after it is open.
final class SyncLink: Sendable {
    /// The bound of the outbox, in bytes. The upload windows stay far below it. The link closes beyond it.
    static let outboxBytes = 64 << 20

    private struct State {
        var connection: (any SyncConnection)?
        var outbox = Deque<[UInt8]>()
        var bytes = 0
        var writer: CheckedContinuation<[UInt8]?, Never>?
        var isClosed = false
    }

    private let state = Mutex(State())

    /// - Returns: `false` if the link was closed while the transport connected. The caller then closes the connection.
    func attach(_ connection: any SyncConnection) -> Bool {
        state.withLock { state in
            if state.isClosed { return false }
            state.connection = connection
            return true
        }
    }

    func send(_ message: [UInt8]) {
        let (writer, isTooMuch) = state.withLock { state -> (CheckedContinuation<[UInt8]?, Never>?, Bool) in
            if state.isClosed { return (nil, false) }
            // A waiting writer means an empty outbox, so the direct hand-over keeps the order.
            if let writer = state.writer {
                state.writer = nil
                return (writer, false)
            }
            state.outbox.append(message)
            state.bytes += message.count
            return (nil, state.bytes > SyncLink.outboxBytes)
        }
        writer?.resume(returning: message)
        if isTooMuch { close() }
    }

    func ping() { state.withLock { $0.connection }?.ping() }

    /// Returns the next message to send, or `nil` once the link is closed. One caller.
    func nextOutgoing() async -> [UInt8]? {
        await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> [UInt8]?? in
                if state.isClosed { return .some(nil) }
                guard !state.outbox.isEmpty else {
                    state.writer = continuation
                    return nil
                }
                let message = state.outbox.removeFirst()
                state.bytes -= message.count
                return message
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }

    func close() {
        let (connection, writer) = state.withLock { state in
            state.isClosed = true
            state.outbox = []
            defer {
                state.connection = nil
                state.writer = nil
            }
            return (state.connection, state.writer)
        }
        writer?.resume(returning: nil)
        connection?.close()
    }
}
