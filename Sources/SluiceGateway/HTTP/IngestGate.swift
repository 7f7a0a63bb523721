import SluiceCore
import SluiceNet
import Synchronization

/// The semaphore of ingest by HTTP: it bounds requests, and their bytes that the log has not acknowledged.
///
/// Beyond a bound, new requests get 429. Admitted requests wait for the log, which stops reading from their sockets.
package final class IngestGate: Sendable {
    private struct State {
        var requests = 0
        var bytes = 0
    }

    private let state = Mutex(State())
    private let requests: Int
    private let bytes: Int

    package init(requests: Int = Limits.ingestRequests, bytes: Int = Limits.ingestWaitingBytes) {
        self.requests = requests
        self.bytes = bytes
    }

    /// The value of `Retry-After` for a rejected request, in seconds.
    static let retryAfter = 2

    /// The admitted requests and their unacknowledged bytes.
    package var load: (requests: Int, bytes: Int) { state.withLock { ($0.requests, $0.bytes) } }

    /// Admits a request.
    ///
    /// - Throws: `tooManyRequests`, as a response with `Retry-After`.
    package func enter() throws -> Pass {
        let isIn = state.withLock { state in
            guard state.requests < requests, state.bytes < bytes else { return false }
            state.requests += 1
            return true
        }
        guard isIn else {
            throw ErrorResponse(
                SluiceError(.tooManyRequests, "The gateway's queue for ingest is full.", fix: "Send again after the time in Retry-After."),
                retryAfter: Self.retryAfter)
        }
        return Pass(gate: self)
    }

    /// Counts bytes as unacknowledged while the body runs. Does not block at the bound.
    package func holding<R>(_ count: Int, _ body: () async throws -> R) async rethrows -> R {
        state.withLock { $0.bytes += count }
        defer { state.withLock { $0.bytes -= count } }
        return try await body()
    }

    /// The admission of a request. Its deinitializer returns the place, as a response may never start.
    package final class Pass: Sendable {
        private let gate: IngestGate

        fileprivate init(gate: IngestGate) { self.gate = gate }
        deinit { gate.state.withLock { $0.requests -= 1 } }
    }
}
