import Dispatch
import Foundation
import SluiceCore
import SluiceReplica
import SluiceValues
import Synchronization

/// Removes expired subscriptions from the set of an open file.
///
/// A timer waits for the earliest expiry in the newest set, by the device's wall clock, as does `expiresAt`.
/// The set is read again after each change and each timer event, so clock adjustments and early timers are harmless.
final class SubscriptionExpiry: Sendable {
    /// The longest timer interval, in seconds. It bounds the delay after the clock is set forward.
    private static let longestWait = 3_600.0
    /// The delay in seconds before a retry if the set cannot be read or stored, as on a full disk.
    private static let retryWait = 60.0

    private struct State {
        var isClosed = false
        /// `true` if a check is queued. Changes in quick succession share one check.
        var isLooking = false
        var observer: UInt64?
    }

    private struct Timer: @unchecked Sendable {  // Sendable because: any thread may use a dispatch source; `schedule` runs on its queue.
        let source: any DispatchSourceTimer
    }

    private let replica: Replica
    private let session: SyncSession?
    private let queue = DispatchQueue(label: "sluice.expiry", qos: .utility)
    private let timer: Timer
    private let state = Mutex(State())

    init(_ replica: Replica, _ session: SyncSession?) {
        self.replica = replica
        self.session = session
        timer = Timer(source: DispatchSource.makeTimerSource(queue: queue))
        timer.source.setEventHandler { [weak self] in self?.look() }
        // No deadline yet: the first check sets it.
        timer.source.schedule(wallDeadline: .distantFuture)
        timer.source.activate()
        let observer = replica.observeSubscriptions { [weak self] in self?.lookSoon() }
        state.withLock { $0.observer = observer }
        // After the registration, so that a change in between is not missed.
        lookSoon()
    }

    /// Stops the timer. A removal in progress leaves the set as it is.
    func close() {
        let observer = state.withLock { state in
            state.isClosed = true
            return state.observer
        }
        if let observer { replica.removeObserver(observer) }
        timer.source.cancel()
    }

    /// Queues a check unless one is queued.
    private func lookSoon() {
        let isFirst = state.withLock { state in
            defer { state.isLooking = true }
            return !state.isLooking && !state.isClosed
        }
        if isFirst { queue.async { [weak self] in self?.look() } }
    }

    /// Removes expired subscriptions, or arms the timer for the next expiry. Runs on the queue.
    private func look() {
        // Reset before reading: a change during the check queues another one.
        state.withLock { $0.isLooking = false }
        do {
            // The change of the set queues the next check.
            if try drop() { return }
            let ends = try replica.currentSubscriptionSet().subscriptions.compactMap(\.expires).min()
            guard let ends else { return timer.source.schedule(wallDeadline: .distantFuture) }
            wait(Date(ends).timeIntervalSinceNow)
        } catch {
            wait(Self.retryWait)
        }
    }

    /// Arms the timer.
    private func wait(_ seconds: Double) {
        // One millisecond later, since an expiry that has not quite passed costs another check.
        timer.source.schedule(wallDeadline: .now() + min(max(seconds, 0) + 0.001, Self.longestWait))
    }

    /// Removes expired subscriptions.
    /// - Returns: `true` if there were any.
    private func drop() throws -> Bool {
        guard let stored = try SubscriptionExpiry.drop(replica, unless: { self.state.withLock(\.isClosed) }) else { return false }
        session?.log(.info, .session, "Subscriptions expired; the set \(stored.version) is committed without them.")
        return true
    }

    /// Commits the newest set without the expired subscriptions.
    /// - Parameter isOver: Called when the writer is free. If it returns `true`, the set is left as it is.
    /// - Returns: The committed set; nil if the set was left as it is.
    @discardableResult
    static func drop(_ replica: Replica, unless isOver: () -> Bool = { false }) throws -> StoredSubscriptionSet? {
        try asRealmError {
            // Most checks find nothing and must not wait for the writer.
            guard try replica.currentSubscriptionSet().subscriptions.hasExpired else { return nil }
            return try replica.changeSubscriptionSet { newest in
                // Again under the writer: the set may have changed since the check.
                guard newest.subscriptions.hasExpired, !isOver() else { return nil }
                var left = newest.subscriptions
                left.eraseExpired()
                return left
            }
        }
    }
}

extension [StoredSubscription] {
    /// `true` if at least one subscription has expired.
    var hasExpired: Bool {
        let now = Date().timestamp
        return contains { $0.hasExpired(by: now) }
    }

    /// Removes a subscription. The last one takes its index.
    mutating func erase(at index: Int) {
        let last = removeLast()
        if index < count { self[index] = last }
    }

    /// Removes matching subscriptions. The order of the others changes as with `erase(at:)`.
    mutating func erase(onlyFirst: Bool = false, where isErased: (StoredSubscription) -> Bool) {
        var index = 0
        while index < count {
            guard isErased(self[index]) else {
                index += 1
                continue
            }
            erase(at: index)
            if onlyFirst { return }
        }
    }

    mutating func eraseExpired() {
        let now = Date().timestamp
        erase { $0.hasExpired(by: now) }
    }
}

extension StoredSubscription {
    func hasExpired(by now: Timestamp) -> Bool { expires.map { $0 <= now } ?? false }
}
