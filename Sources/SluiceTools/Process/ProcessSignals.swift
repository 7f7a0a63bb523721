@preconcurrency import Dispatch
import SluiceCore
import SluiceGateway
import Synchronization

#if canImport(Glibc)
    import Glibc
#endif

/// Ends a process's work on SIGINT and SIGTERM.
///
/// The signal handler writes into a pipe. Dispatch's signal sources may lose signals on Linux and leave them blocked in child processes.
enum ProcessSignals {
    /// Runs `body` in a task that the first signal cancels.
    ///
    /// - Parameter grace: The time that the body has from the signal. Beyond it, the process exits with status 1.
    static func cancelling(within grace: GracePeriod, _ body: @escaping @Sendable () async throws -> Void) async throws {
        let work = Task { try await body() }  // Unstructured because: the signal handlers must reach the task.
        let source = try listen(grace) { work.cancel() }
        defer { source.cancel() }
        do {
            try await work.value
        } catch  where work.isCancelled {
            // A cancelled body has ended, regardless of its error.
            return
        }
    }

    private static func listen(
        _ grace: GracePeriod, _ handler: @escaping @Sendable () -> Void
    ) throws(SluiceError) -> any DispatchSourceRead {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else {
            let number = errno
            throw SluiceError(
                .internalError, "No pipe could be created for signals.",
                cause: .system(errno: number, text: String(cString: strerror(number))))
        }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            // A full pipe must not block the signal handler.
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        let reader = ends[0]
        signalPipe.store(ends[1], ordering: .releasing)
        let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: .global())
        source.setEventHandler {
            var number: UInt8 = 0
            guard read(reader, &number, 1) == 1 else { return }
            handler()
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(grace.milliseconds))) {
                StandardError.write("sluice: some services did not stop within \(grace.milliseconds) ms; exiting\n")
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
        // The parent process may have blocked them.
        pthread_sigmask(SIG_UNBLOCK, &numbers, nil)
        return source
    }
}

/// The end of the pipe that the signal handler writes into.
private let signalPipe = Atomic<Int32>(-1)

/// Handles a signal in any thread at any instant. Only async-signal-safe functions such as `write` are allowed.
private func noteSignal(_ number: Int32) {
    let before = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(signalPipe.load(ordering: .acquiring), &byte, 1)
    errno = before
}
