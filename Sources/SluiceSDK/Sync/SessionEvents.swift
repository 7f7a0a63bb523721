import Foundation
import SluiceCore
import Synchronization

/// What befalls a session while somebody waits for the server, so that nobody waits in vain.
enum SessionEvent: Sendable {
    /// The session has stopped until it is started again.
    case ended(SyncError)
    /// The connection could not be made, or was lost; it is tried again.
    case interrupted(SluiceError)
}

final class SessionEvents: Sendable {
    private struct State {
        var next: UInt64 = 1
        var listeners: [UInt64: AsyncStream<SessionEvent>.Continuation] = [:]
        var end: SyncError?
    }

    private let state = Mutex(State())

    /// Seconds of the longest wait that ends by itself: some thirty years.
    private static let longest: TimeInterval = 1e9

    func tell(_ event: SessionEvent) {
        let listeners = state.withLock { state in
            if case .ended(let error) = event { state.end = error }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.yield(event) }
    }

    /// The session is started again.
    func begin() { state.withLock { $0.end = nil } }

    /// The file is closed: nobody can be told anything any more.
    func close() {
        tell(.ended(SyncError(SluiceError(.shuttingDown, "The Realm has been closed."))))
        for listener in state.withLock({ $0.listeners.values }) { listener.finish() }
    }

    /// What happens from now on, and the end when it has been.
    private func stream() -> AsyncStream<SessionEvent> {
        let (stream, continuation) = AsyncStream<SessionEvent>.makeStream(bufferingPolicy: .bufferingNewest(16))
        let number = state.withLock { state in
            defer { state.next += 1 }
            state.listeners[state.next] = continuation
            if let end = state.end { continuation.yield(.ended(end)) }
            return state.next
        }
        continuation.onTermination = { [weak self] _ in _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) } }
        return stream
    }

    /// Runs a wait for the server, which ends early with the session.
    /// - Parameters:
    ///   - seconds: to wait at most; nil: as long as it takes.
    ///   - isImpatient: whether a connection that fails ends the wait too.
    func unlessEnded(
        seconds: TimeInterval? = nil, isImpatient: Bool = false, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        let events = stream()
        // By a result: after a throwing continuation, optimized code of Swift 6.3.1 does not return to the caller's actor.
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
            // Beyond what a clock counts, as with infinity, it is as long as it takes.
            if let seconds, seconds <= SessionEvents.longest {
                group.addTask {
                    let isOver = (try? await _Concurrency.Task.sleep(for: .seconds(max(seconds, 0)))) != nil
                    return isOver ? .failure(NSError.timedOut("Waiting for update", seconds)) : nil
                }
            }
            defer { group.cancelAll() }
            while let outcome = await group.next() {
                if let outcome { return outcome }
            }
            return Result<Void, any Error>.failure(CancellationError())
        }
        try result.get()
    }

    private static func failure(in events: AsyncStream<SessionEvent>, _ isImpatient: Bool) async -> (any Error)? {
        for await event in events {
            switch event {
            case .ended(let error): return error
            case .interrupted(let error): if isImpatient { return openingError(error) }
            }
        }
        return nil
    }

    static func openingError(_ error: SluiceError) -> any Error {
        guard error.code == .timeout else { return SyncError(error) }
        return NSError(domain: NSPOSIXErrorDomain, code: Int(ETIMEDOUT), userInfo: [NSLocalizedDescriptionKey: error.message])
    }
}

extension NSError {
    /// What RealmSwift answers when a wait takes too long.
    static func timedOut(_ what: String, _ seconds: TimeInterval) -> NSError {
        NSError(
            domain: NSPOSIXErrorDomain, code: Int(ETIMEDOUT),
            userInfo: [NSLocalizedDescriptionKey: String(format: "\(what) timed out after %.1f seconds.", seconds)])
    }
}
