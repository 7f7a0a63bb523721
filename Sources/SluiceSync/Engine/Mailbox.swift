import DequeModule
import Synchronization

/// The queue of inputs from connections and the app to the engine's loop, in order.
///
/// Bounded by construction: a connection's reader waits until the loop has taken its message (`deliver`). A local change is queued at
/// most once. The rest are calls of the app, and one answer for each request.
final class Mailbox: Sendable {
    enum Item: Sendable {
        case input(SyncInput)
        case message(UInt64, [UInt8])
    }

    private struct State {
        var items = Deque<Item>()
        var hasLocalChange = false
        var loop: CheckedContinuation<Item?, Never>?
        var readers: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var isClosed = false
    }

    private let state = Mutex(State())

    func post(_ input: SyncInput) {
        if case .localChange = input {
            let isWaiting = state.withLock { state in
                defer { state.hasLocalChange = true }
                return state.hasLocalChange
            }
            if isWaiting { return }
        }
        add(.input(input))
    }

    /// Queues a message and waits until the loop has taken it. One caller per connection.
    func deliver(_ message: [UInt8], of connection: UInt64) async {
        await withCheckedContinuation { continuation in
            // Register the reader before the message is queued: the loop may take the message at once.
            let isClosed = state.withLock { state in
                if !state.isClosed { state.readers[connection] = continuation }
                return state.isClosed
            }
            if isClosed { continuation.resume() } else { add(.message(connection, message)) }
        }
    }

    private func add(_ item: Item) {
        let loop = state.withLock { state -> CheckedContinuation<Item?, Never>? in
            if state.isClosed { return nil }
            // A waiting loop means an empty queue, so the direct hand-over keeps the order.
            guard let loop = state.loop else {
                state.items.append(item)
                return nil
            }
            state.loop = nil
            return loop
        }
        if let loop { hand(item, to: loop) }
    }

    private func hand(_ item: Item, to loop: CheckedContinuation<Item?, Never>) {
        took(item)
        loop.resume(returning: item)
    }

    private func took(_ item: Item) {
        let reader = state.withLock { state -> CheckedContinuation<Void, Never>? in
            switch item {
            case .input(.localChange):
                // Cleared before the loop handles the change: a later change must be queued again.
                state.hasLocalChange = false
                return nil
            case .input: return nil
            case .message(let connection, _): return state.readers.removeValue(forKey: connection)
            }
        }
        reader?.resume()
    }

    /// Returns the next item, or `nil` once the mailbox is closed or the task is cancelled. One caller.
    func next() async -> Item? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready = state.withLock { state -> Item?? in
                    if state.isClosed { return .some(nil) }
                    guard state.items.isEmpty else { return .some(state.items.removeFirst()) }
                    state.loop = continuation
                    return nil
                }
                guard let ready else { return }
                if let item = ready { hand(item, to: continuation) } else { continuation.resume(returning: nil) }
            }
        } onCancel: {
            close()
        }
    }

    /// Ends the loop and resumes all waiting readers. Drops queued items.
    func close() {
        let (loop, readers) = state.withLock { state in
            state.isClosed = true
            state.items = []
            defer {
                state.loop = nil
                state.readers = [:]
            }
            return (state.loop, Array(state.readers.values))
        }
        loop?.resume(returning: nil)
        for reader in readers { reader.resume() }
    }
}
