import SluiceCore
import Synchronization

/// A wait until the WAL is on disk, shared by all concurrent callers.
///
/// A commit without that wait costs a tenth of one with it, and flushing one commit flushes all earlier ones. The write is a WAL
/// heartbeat, so that the readers of the WAL learn at once how far it extends.
package final class DurableLog: Sendable {
    private typealias Waiter = CheckedContinuation<Result<Void, any Error>, Never>

    private let write: @Sendable () async throws -> Void
    private let state = Mutex<(waiting: [Waiter], isWriting: Bool)>(([], false))

    /// Creates a log that writes heartbeats through a pool. Its connections must wait for the WAL at each commit.
    package convenience init(pool: PostgresPool) { self.init { try await WALHeartbeat.write(pool) } }

    package init(write: @escaping @Sendable () async throws -> Void) { self.write = write }

    /// Returns once everything committed before the call is on disk.
    ///
    /// - Throws: The error of the write, to all callers that shared it.
    package func flush() async throws {
        let result = await withCheckedContinuation { (waiter: Waiter) in
            // The first caller starts the writer. Later ones join its next round.
            let isFirst = state.withLock { state in
                state.waiting.append(waiter)
                defer { state.isWriting = true }
                return !state.isWriting
            }
            if isFirst { Task { await self.serve() } }  // Unstructured because: it writes for all callers and ends when none waits.
        }
        try result.get()
    }

    /// The number of callers that wait for the write after the running one.
    package var waiting: Int { state.withLock(\.waiting.count) }

    /// Writes until no caller waits. A caller that arrives during a write waits for the next one, because its commit may have
    /// followed the flush.
    private func serve() async {
        while let waiting = take() {
            let result: Result<Void, any Error>
            do {
                try await write()
                result = .success(())
            } catch {
                result = .failure(error)
            }
            for waiter in waiting { waiter.resume(returning: result) }
        }
    }

    private func take() -> [Waiter]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                // Cleared under the lock that adds waiters, so that no waiter is left without a writer.
                state.isWriting = false
                return nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
