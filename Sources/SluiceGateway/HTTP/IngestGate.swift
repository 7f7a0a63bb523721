import SluiceCore
import SluiceNet
import Synchronization

/// How much may be ingested by HTTP at a time: requests, and bytes of theirs that the log has not acknowledged. Beyond, new requests
/// are refused with 429; those that are inside wait for the log instead, and their sockets with them.
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

    /// Seconds until a refused request should come again.
    static let retryAfter = 2

    /// What is inside now.
    package var load: (requests: Int, bytes: Int) { state.withLock { ($0.requests, $0.bytes) } }

    /// - Throws: `tooManyRequests` as an answer with Retry-After.
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

    /// Counts bytes for as long as they wait for the log.
    package func holding<R>(_ count: Int, _ body: () async throws -> R) async rethrows -> R {
        state.withLock { $0.bytes += count }
        defer { state.withLock { $0.bytes -= count } }
        return try await body()
    }

    /// A request's place inside, given back when nobody has it any more: also when its answer is never begun.
    package final class Pass: Sendable {
        private let gate: IngestGate

        fileprivate init(gate: IngestGate) { self.gate = gate }
        deinit { gate.state.withLock { $0.requests -= 1 } }
    }
}
