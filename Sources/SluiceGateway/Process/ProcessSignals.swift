@preconcurrency import Dispatch
import SluiceCore

#if canImport(Glibc)
    import Glibc
#endif

/// Ends a process's work on SIGINT and SIGTERM.
enum ProcessSignals {
    /// Runs `body` in a task that the first signal cancels. A body that has not ended five seconds later is not waited for:
    /// the process exits with status 1.
    static func cancelling(_ body: @escaping @Sendable () async throws -> Void) async throws {
        // Unstructured because: the signal handlers have to reach it.
        let work = Task { try await body() }
        let sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                work.cancel()
                DispatchQueue.global().asyncAfter(deadline: .now() + 4.5) {
                    StandardError.write("sluice: not everything ended in time; leaving\n")
                    exit(1)
                }
            }
            source.activate()
            return source
        }
        defer { for source in sources { source.cancel() } }
        do {
            try await work.value
        } catch  where work.isCancelled {
            // Whatever a body says that was told to end, it has ended.
            return
        }
    }
}
