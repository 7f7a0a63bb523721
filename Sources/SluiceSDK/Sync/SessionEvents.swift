import Foundation
import SluiceCore
import Synchronization

/// An event of a session that concerns a wait for the server. It ends waits that can no longer succeed.
enum SessionEvent: Sendable {
    /// The session has stopped until it is started again.
    case ended(SyncError)
    /// The connection failed or was lost. The session retries.
    case interrupted(SluiceError)
}

/// Distributes the session's events to the waits in progress. Safe to use on any thread.
final class SessionEvents: Sendable {
    private struct State {
        var next: UInt64 = 1
        var listeners: [UInt64: AsyncStream<SessionEvent>.Continuation] = [:]
        /// The error that ended the session; nil while it runs. Later waits receive it at once.
        var end: SyncError?
    }

    private let state = Mutex(State())

    /// The longest timeout that is measured, in seconds: about thirty years. Longer ones never expire.
    private static let longest: TimeInterval = 1e9

    /// Sends an event to all waits in progress.
    func send(_ event: SessionEvent) {
        let listeners = state.withLock { state in
            if case .ended(let error) = event { state.end = error }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.yield(event) }
    }

    /// Clears the end, since the session is started again.
    func begin() { state.withLock { $0.end = nil } }

    /// Ends all waits, since the file is closed.
    func close() {
        send(.ended(SyncError(SluiceError(.shuttingDown, "The Realm has been closed."))))
        for listener in state.withLock({ $0.listeners.values }) { listener.finish() }
    }

    /// The events from now on, preceded by the end if the session has ended.
    private func stream() -> AsyncStream<SessionEvent> {
        let (stream, continuation) = AsyncStream<SessionEvent>.makeStream(bufferingPolicy: .bufferingNewest(16))
        // Registration and the check of `end` share the lock, so an end in between cannot be missed.
        let number = state.withLock { state in
            defer { state.next += 1 }
            state.listeners[state.next] = continuation
            if let end = state.end { continuation.yield(.ended(end)) }
            return state.next
        }
        continuation.onTermination = { [weak self] _ in _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) } }
        return stream
    }

    /// Runs a wait for the server. It ends early if the session ends.
    /// - Parameters:
    ///   - seconds: The longest wait. If nil, the wait is unbounded.
    ///   - isImpatient: `true` if a connection failure ends the wait too.
    /// - Throws: The body's error, the error that ended the session, `ETIMEDOUT`, or `CancellationError`.
    func unlessEnded(
        seconds: TimeInterval? = nil, isImpatient: Bool = false, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        // Subscribe before the body starts, so that no event of the wait is lost.
        let events = stream()
        // A result, not a throw: after a throwing continuation, optimized code of Swift 6.3.1 does not return to the caller's actor.
        let result = await withTaskGroup(of: Result<Void, any Error>?.self) { group in
            group.addTask {
                do {
                    try await body()
                    return .success(())
                } catch {
                    return .failure(error)
                }
            }
            group.addTask { await SessionEvents.failure(in: events, isImpatient).map { .failure($0) } }
            // Values beyond the clock's range, such as infinity, mean no timeout.
            if let seconds, seconds <= SessionEvents.longest {
                group.addTask {
                    let isOver = (try? await _Concurrency.Task.sleep(for: .seconds(max(seconds, 0)))) != nil
                    return isOver ? .failure(NSError.timedOut("Waiting for update", seconds)) : nil
                }
            }
            defer { group.cancelAll() }
            // A child without an outcome, such as a cancelled sleep, does not decide: wait for the next.
            while let outcome = await group.next() {
                if let outcome { return outcome }
            }
            return Result<Void, any Error>.failure(CancellationError())
        }
        try result.get()
    }

    /// Waits for an event that ends the wait; nil if the stream ends first.
    private static func failure(in events: AsyncStream<SessionEvent>, _ isImpatient: Bool) async -> (any Error)? {
        for await event in events {
            switch event {
            case .ended(let error): return error
            case .interrupted(let error): if isImpatient { return openingError(error) }
            }
        }
        return nil
    }

    /// The error of a connection failure in RealmSwift's form: a timeout becomes `ETIMEDOUT`.
    static func openingError(_ error: SluiceError) -> any Error {
        guard error.code == .timeout else { return SyncError(error) }
        return NSError(domain: NSPOSIXErrorDomain, code: Int(ETIMEDOUT), userInfo: [NSLocalizedDescriptionKey: error.message])
    }
}

extension NSError {
    /// The error that RealmSwift throws when a wait times out.
    static func timedOut(_ what: String, _ seconds: TimeInterval) -> NSError {
        NSError(
            domain: NSPOSIXErrorDomain, code: Int(ETIMEDOUT),
            userInfo: [NSLocalizedDescriptionKey: String(format: "\(what) timed out after %.1f seconds.", seconds)])
    }
}
