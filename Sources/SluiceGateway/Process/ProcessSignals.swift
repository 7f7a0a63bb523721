@preconcurrency import Dispatch
import SluiceCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Ends a process's work on SIGINT and SIGTERM.
///
/// A handler writes into a pipe, since a signal must neither be lost nor leave blocked signals to our children, which
/// Dispatch's own signal sources do not promise on Linux.
enum ProcessSignals {
    /// Runs `body` in a task that the first signal cancels. A body that has not ended five seconds later is not waited for:
    /// the process exits with status 1.
    static func cancelling(_ body: @escaping @Sendable () async throws -> Void) async throws {
        // Unstructured because: the signal handlers have to reach it.
        let work = Task { try await body() }
        let source = try listen { work.cancel() }
        defer { source.cancel() }
        do {
            try await work.value
        } catch  where work.isCancelled {
            // Whatever a body says that was told to end, it has ended.
            return
        }
    }

    private static func listen(_ handler: @escaping @Sendable () -> Void) throws(SluiceError) -> any DispatchSourceRead {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw SluiceError(.internalError, "No pipe could be made for signals: errno \(errno).") }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        let reader = ends[0]
        signalPipe.store(ends[1], ordering: .releasing)
        let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: .global())
        source.setEventHandler {
            var number: UInt8 = 0
            guard read(reader, &number, 1) == 1 else { return }
            handler()
            DispatchQueue.global().asyncAfter(deadline: .now() + 4.5) {
                StandardError.write("sluice: not everything ended in time; leaving\n")
                exit(1)
            }
        }
        source.activate()
        var numbers = sigset_t()
        sigemptyset(&numbers)
        for number in [SIGINT, SIGTERM] {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = noteSignal
            action.sa_flags = SA_RESTART
            sigaction(number, &action, nil)
            sigaddset(&numbers, number)
        }
        // Whoever started us may have had them blocked.
        pthread_sigmask(SIG_UNBLOCK, &numbers, nil)
        return source
    }
}

/// The end of the pipe that the handler writes into.
private let signalPipe = Atomic<Int32>(-1)

/// Runs in any thread at any instant: nothing but `write` is allowed here.
private func noteSignal(_ number: Int32) {
    let before = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(signalPipe.load(ordering: .acquiring), &byte, 1)
    errno = before
}
