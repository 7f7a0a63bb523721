import SluiceCore
import SluicePorts
import Synchronization

/// The state shared by the thread that reads the socket and the task that takes batches: one ready batch, one buffer in return.
final class ReplicationMailbox: Sendable {
    typealias Waiter = CheckedContinuation<Void, any Error>

    struct State: Sendable {
        /// The full or complete batch that waits to be taken.
        var ready: CaptureBatch?
        /// The buffers to be filled again.
        var spare: [CaptureBatch] = []
        /// The position before which everything has been taken or is in `ready`.
        var reached: LSN = .zero
        var confirmed: LSN = .zero
        var waiter: Waiter?
        var deadline: ContinuousClock.Instant?
        var isClosing = false
        /// `true` if the thread has stopped reading because `ready` has not been taken.
        var isStalled = false
        var end: (any Error)?
        var hasEnded = false
        var closers: [CheckedContinuation<Void, Never>] = []
    }

    let state = Mutex(State())
    let pipe: WakePipe

    init(pipe: WakePipe) { self.pipe = pipe }

    // MARK: For the task

    enum Take {
        case taken
        case nothing
    }

    /// Swaps a ready batch with the caller's. Without one, the batch is empty and its `reached` is the position read so far.
    ///
    /// - Throws: The error of the stream, once it has ended and no batch is left.
    func take(_ batch: inout CaptureBatch) throws -> Take {
        batch.removeAll()
        let buffer = batch
        let (taken, reached, wasStalled) = try state.withLock { state -> (CaptureBatch?, LSN, Bool) in
            if let ready = state.ready.take() {
                // The caller's buffer returns to the thread, so that batches are not reallocated.
                state.spare.append(buffer)
                defer { state.isStalled = false }
                return (ready, ready.reached, state.isStalled)
            }
            // The stream's error follows only after its last batch.
            if let end = state.end { throw end }
            return (nil, state.reached, false)
        }
        // The thread stops reading while `ready` is full.
        if wasStalled { pipe.wake() }
        guard let taken else {
            batch.reached = reached
            return .nothing
        }
        batch = taken
        return .taken
    }

    /// Waits until a batch is ready, the deadline has passed, or the stream has ended.
    func wait(until deadline: ContinuousClock.Instant) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (waiter: Waiter) in
                let isImmediate = state.withLock { state in
                    if state.ready != nil || state.end != nil || state.hasEnded { return true }
                    state.waiter = waiter
                    state.deadline = deadline
                    return false
                }
                if isImmediate { return waiter.resume() }
                // After a cancellation before the registration no other code resumes the waiter. The wake-up makes the thread heed
                // the deadline.
                if Task.isCancelled { resumeWaiter(throwing: CancellationError()) } else { pipe.wake() }
            }
        } onCancel: {
            resumeWaiter(throwing: CancellationError())
        }
    }

    func resumeWaiter(throwing error: (any Error)? = nil) {
        let waiter = state.withLock { state in
            state.deadline = nil
            return state.waiter.take()
        }
        if let error { waiter?.resume(throwing: error) } else { waiter?.resume() }
    }

    /// Records a confirmed position, which the thread then reports. Ignores one that is not greater than the last.
    func confirm(_ lsn: LSN) {
        let isNews = state.withLock { state in
            guard lsn > state.confirmed else { return false }
            state.confirmed = lsn
            return true
        }
        if isNews { pipe.wake() }
    }

    /// Asks the thread to end, and waits until it has.
    func close() async {
        await withCheckedContinuation { (closer: CheckedContinuation<Void, Never>) in
            let hasEnded = state.withLock { state in
                state.isClosing = true
                if !state.hasEnded { state.closers.append(closer) }
                return state.hasEnded
            }
            if hasEnded { closer.resume() } else { pipe.wake() }
        }
    }

    // MARK: For the thread

    /// Hands over a batch; `ready` must be empty.
    ///
    /// - Returns: The buffer to fill next.
    func offer(_ batch: CaptureBatch) -> CaptureBatch {
        let (next, waiter) = state.withLock { state -> (CaptureBatch, Waiter?) in
            state.ready = batch
            state.reached = batch.reached
            state.deadline = nil
            return (state.spare.popLast() ?? CaptureBatch(), state.waiter.take())
        }
        waiter?.resume()
        return next
    }

    /// Ends the stream for the waiting task and for all callers of `close`.
    ///
    /// - Parameter error: The error that later calls of `take` throw.
    func finish(_ error: any Error) {
        let (waiter, closers) = state.withLock { state in
            state.end = error
            state.hasEnded = true
            defer { state.closers.removeAll() }
            return (state.waiter.take(), state.closers)
        }
        waiter?.resume()
        for closer in closers { closer.resume() }
    }
}
