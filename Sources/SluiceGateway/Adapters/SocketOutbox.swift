import SluiceCore
import SluicePorts

/// The wait for a client that reads slowly. A client that reads nothing for `Limits.unreadSeconds` is given up.
struct SocketOutbox: Sendable {
    private let environment: any Environment
    private let signal: AsyncEvent

    init(environment: any Environment) {
        self.environment = environment
        signal = AsyncEvent(environment: environment)
    }

    /// Ends waits early, since bytes were written or the connection has ended.
    func wake() { signal.fire() }

    /// Waits until fewer than `bytes` are buffered, the connection is closed, or the task is cancelled.
    ///
    /// - Returns: The error of a client that reads nothing, which the caller closes the connection with; nil otherwise.
    func drained(below bytes: Int, buffered: () -> Int, isClosed: () -> Bool) async -> SluiceError? {
        var (least, since) = (Int.max, environment.monotonicNanoseconds())
        while case let waiting = buffered(), waiting >= bytes, !isClosed(), !Task.isCancelled {
            let now = environment.monotonicNanoseconds()
            // Only progress of `unreadBytes` restarts the time limit, so a client that reads a byte at a time is disconnected.
            if waiting < least - Limits.unreadBytes {
                (least, since) = (waiting, now)
            } else if now - since > Limits.unreadSeconds * 1_000_000_000 {
                return SluiceError(
                    .slowClient, "\(waiting) bytes wait for this client, which has read nothing for \(Limits.unreadSeconds) s.")
            }
            // The timeout serves bounds below the socket's low-water mark, for which no signal fires.
            await signal.wait(after: signal.count, milliseconds: 20)
        }
        return nil
    }
}
