import CLibPQ
import Dispatch
import Synchronization

/// Stops the statement that a connection is running, from any thread, and makes sure that a late request for one
/// statement cannot hit the next.
@safe
// Sendable because: `PQcancel` may be called from any thread on its own copy of the connection's address, which is never
// changed after `init`; everything else is behind the mutex or is a Dispatch object.
final class StatementCanceller: @unchecked Sendable {
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

    /// Begins a scope of statements that are cancelled together.
    func open() -> UInt64 {
        state.withLock { state in
            state.scope += 1
            state.isOpen = true
            state.isRequested = false
            return state.scope
        }
    }

    /// Ends the scope. - Returns: false when a request is still on its way after two seconds: the connection must not be
    /// used again.
    func close() -> Bool {
        let requested = state.withLock { state in
            state.isOpen = false
            return state.isRequested
        }
        return requested ? settle() : true
    }

    /// Waits until the server has been told what it was to be told.
    func settle() -> Bool { requests.wait(timeout: .now() + .seconds(2)) == .success }

    /// Whether the scope's task has been cancelled.
    var isRequested: Bool { state.withLock(\.isRequested) }

    /// Lets a rollback through although the task is cancelled.
    func forget() { state.withLock { $0.isRequested = false } }
    func remember() { state.withLock { $0.isRequested = true } }

    /// Cancels a scope; nothing happens when it is over.
    func cancel(scope: UInt64) {
        let isOurs = state.withLock { state in
            guard state.isOpen, state.scope == scope, !state.isRequested else { return false }
            state.isRequested = true
            return true
        }
        if isOurs { send() }
    }

    /// Asks the server to stop the statement now running. Returns at once; `settle` waits.
    func send() {
        requests.enter()
        // PQcancel opens a connection of its own and blocks meanwhile.
        DispatchQueue.global().async {
            var message: [CChar] = Array(repeating: 0, count: 256)
            unsafe message.withUnsafeMutableBufferPointer { buffer in
                _ = unsafe PQcancel(self.handle, buffer.baseAddress, Int32(buffer.count))
            }
            self.requests.leave()
        }
    }
}
