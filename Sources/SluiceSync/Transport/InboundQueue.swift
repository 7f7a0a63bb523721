import DequeModule
import SluiceCore
import Synchronization

/// Received items that were not taken yet. While the queue is full the socket is not read, so TCP's backpressure stops the gateway.
final class InboundQueue: Sendable {
    /// The bounds in messages and in bytes. Reading stops at either and resumes when both are at most half full.
    static let messages = 16
    static let bytes = 4 << 20

    private struct State {
        var items = Deque<SyncInbound>()
        var bytes = 0
        var waiter: CheckedContinuation<Result<SyncInbound?, SluiceError>, Never>?
        var end: Result<SyncInbound?, SluiceError>?
    }

    private let state = Mutex(State())

    var hasRoom: Bool {
        state.withLock { $0.items.count < InboundQueue.messages && $0.bytes < InboundQueue.bytes }
    }

    func push(_ item: SyncInbound) {
        let waiter = state.withLock { state -> CheckedContinuation<Result<SyncInbound?, SluiceError>, Never>? in
            if state.end != nil { return nil }
            // A waiter means an empty queue, so the direct hand-over keeps the order.
            if let waiter = state.waiter {
                state.waiter = nil
                return waiter
            }
            state.items.append(item)
            state.bytes += item.byteCount
            return nil
        }
        waiter?.resume(returning: .success(item))
    }

    /// Ends the queue. The first call counts. Items queued before it are still returned.
    func finish(_ error: SluiceError?) {
        let end: Result<SyncInbound?, SluiceError> = error.map { .failure($0) } ?? .success(nil)
        let waiter = state.withLock { state -> CheckedContinuation<Result<SyncInbound?, SluiceError>, Never>? in
            if state.end != nil { return nil }
            state.end = end
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: end)
    }

    /// Waits for the next item. One caller.
    /// - Returns: the item, or `nil` at the end. `mayRead` is `true` if the queue is at most half full.
    func next() async throws(SluiceError) -> (SyncInbound?, mayRead: Bool) {
        let result = await withCheckedContinuation { continuation in
            let ready = state.withLock { state -> Result<SyncInbound?, SluiceError>? in
                guard state.items.isEmpty else {
                    let item = state.items.removeFirst()
                    state.bytes -= item.byteCount
                    return .success(item)
                }
                if let end = state.end { return end }
                state.waiter = continuation
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
        let mayRead = state.withLock { $0.items.count <= InboundQueue.messages / 2 && $0.bytes <= InboundQueue.bytes / 2 }
        return (try result.get(), mayRead)
    }
}

extension SyncInbound {
    var byteCount: Int {
        switch self {
        case .message(let bytes): bytes.count
        case .pong: 0
        }
    }
}
