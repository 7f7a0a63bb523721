import SluiceCore
import Synchronization

/// One connection on the engine's side: what is to be sent, and the way to end it before, while and after it is open.
final class SyncLink: Sendable {
    /// Bytes waiting to be sent. The machine's windows keep far below it; beyond, the connection is closed.
    static let outboxBytes = 64 << 20

    private struct State {
        var connection: (any SyncConnection)?
        var outbox: [[UInt8]] = []
        var bytes = 0
        var writer: CheckedContinuation<[UInt8]?, Never>?
        var isClosed = false
    }

    private let state = Mutex(State())

    /// - Returns: false when the link was closed while the connection was made.
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

    /// The next message to send; nil when the link is closed. One caller.
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
