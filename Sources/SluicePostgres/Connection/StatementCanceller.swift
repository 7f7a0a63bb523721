import CLibPQ
import Dispatch
import Synchronization

/// A canceller of the statement that a connection is running, usable from any thread. A late request for one statement cannot hit
/// the next.
@safe
final class StatementCanceller: @unchecked Sendable {  // Sendable because: `PQcancel` may run on any thread; the mutex guards the state.
    /// A copy of the connection's address. It never changes, so each thread may pass it to `PQcancel`.
    private let handle: OpaquePointer?
    private let state = Mutex(State())
    private let requests = DispatchGroup()

    private struct State {
        var scope: UInt64 = 0
        var isOpen = false
        var isRequested = false
    }

    init(connection: OpaquePointer) { unsafe handle = PQgetCancel(connection) }

    deinit { unsafe PQfreeCancel(handle) }

    /// Begins a scope of statements that are cancelled together, and returns its number.
    func open() -> UInt64 {
        state.withLock { state in
            state.scope += 1
            state.isOpen = true
            state.isRequested = false
            return state.scope
        }
    }

    /// Ends the scope.
    ///
    /// - Returns: `false` if a request is still in flight after 2 s. The connection must not be used again.
    func close() -> Bool {
        let requested = state.withLock { state in
            state.isOpen = false
            return state.isRequested
        }
        return requested ? settle() : true
    }

    /// Waits until all requests have reached the server, at most 2 s. Blocks the thread; returns `false` after that time.
    func settle() -> Bool { requests.wait(timeout: .now() + .seconds(2)) == .success }

    /// `true` if the scope's task has been cancelled.
    var isRequested: Bool { state.withLock(\.isRequested) }

    /// Clears the cancellation, so that a rollback can run for a cancelled task.
    func forget() { state.withLock { $0.isRequested = false } }
    /// Restores the cancellation after `forget`.
    func remember() { state.withLock { $0.isRequested = true } }

    /// Cancels a scope. Does nothing if the scope has ended or is cancelled already.
    func cancel(scope: UInt64) {
        let isOurs = state.withLock { state in
            guard state.isOpen, state.scope == scope, !state.isRequested else { return false }
            state.isRequested = true
            return true
        }
        if isOurs { send() }
    }

    /// Asks the server to cancel the running statement. Returns at once; `settle` waits.
    func send() {
        requests.enter()
        // PQcancel opens a connection of its own and blocks.
        DispatchQueue.global().async {
            var message: [CChar] = Array(repeating: 0, count: 256)
            unsafe message.withUnsafeMutableBufferPointer { buffer in
                _ = unsafe PQcancel(self.handle, buffer.baseAddress, Int32(buffer.count))
            }
            self.requests.leave()
        }
    }
}
