import SluiceCore
import Synchronization

/// Waits for PostgreSQL's write-ahead log to be on disk, once for all who wait: a transaction that commits without waiting
/// costs a tenth of one that does, and what is written out for one is written out for all before it.
///
/// What is written is a mark, so that the log's readers learn at once how far it is.
package final class DurableLog: Sendable {
    private typealias Waiter = CheckedContinuation<Result<Void, any Error>, Never>

    private let write: @Sendable () async throws -> Void
    private let state = Mutex<(waiting: [Waiter], isWriting: Bool)>(([], false))

    /// - Parameter pool: of connections that commit when the log is on disk.
    package convenience init(pool: PostgresPool) { self.init { try await LogMark.write(pool) } }

    package init(write: @escaping @Sendable () async throws -> Void) { self.write = write }

    /// Returns once what was committed before the call is on disk.
    package func flush() async throws {
        let result = await withCheckedContinuation { (waiter: Waiter) in
            let isFirst = state.withLock { state in
                state.waiting.append(waiter)
                defer { state.isWriting = true }
                return !state.isWriting
            }
            // Unstructured because: it writes for all who wait, whichever of them gives up; it ends when nobody does.
            if isFirst { Task { await self.serve() } }
        }
        try result.get()
    }

    /// How many wait for the write after the one under way.
    package var waiting: Int { state.withLock(\.waiting.count) }

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
                state.isWriting = false
                return nil
            }
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
