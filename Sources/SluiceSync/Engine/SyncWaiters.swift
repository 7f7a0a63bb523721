import SluiceCore
import Synchronization

/// The callers that wait for downloads and uploads, by number.
final class SyncWaiters: Sendable {
    private struct State {
        var next: UInt64 = 1
        var waiting: [UInt64: CheckedContinuation<Result<Void, any Error>, Never>] = [:]
        var cancelled: Set<UInt64> = []
        var closed: SluiceError?
    }

    private let state = Mutex(State())

    /// Waits until `finish` is called with the number that `begin` receives.
    func wait(begin: (UInt64) -> Void, cancelled: @escaping @Sendable (UInt64) -> Void) async throws {
        let id = state.withLock { state in
            defer { state.next += 1 }
            return state.next
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ended = state.withLock { state -> Result<Void, any Error>? in
                    if let closed = state.closed { return .failure(closed) }
                    // The cancellation handler may have run before the continuation existed; `cancelled` remembers it.
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    state.waiting[id] = continuation
                    return nil
                }
                // Outside the lock: `begin` posts to the mailbox, and `finish` may follow at once.
                if let ended { continuation.resume(returning: ended) } else { begin(id) }
            }
        } onCancel: {
            cancel(id)
            cancelled(id)
        }
        _ = state.withLock { $0.cancelled.remove(id) }
        try result.get()
    }

    private func cancel(_ id: UInt64) {
        let waiter = state.withLock { state in
            let waiter = state.waiting.removeValue(forKey: id)
            if waiter == nil { state.cancelled.insert(id) }
            return waiter
        }
        waiter?.resume(returning: .failure(CancellationError()))
    }

    func finish(_ id: UInt64, _ error: SluiceError?) {
        let waiter = state.withLock { $0.waiting.removeValue(forKey: id) }
        waiter?.resume(returning: error.map { .failure($0) } ?? .success(()))
    }

    /// Ends all waits with `error`, including those that begin later.
    func close(_ error: SluiceError) {
        let waiting = state.withLock { state in
            state.closed = error
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for waiter in waiting { waiter.resume(returning: .failure(error)) }
    }
}
