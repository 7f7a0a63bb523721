import Dispatch
import Foundation
import SluiceCore
import SluiceReplica
import Synchronization

/// Takes subscriptions whose time is over out of the set of an open file.
///
/// A timer waits for the earliest end in the newest set, by the device's wall clock, as `expiresAt` does. The set is read anew after each
/// change and each time the timer fires, so that a clock that is set, or a timer that fires early, does no harm.
final class SubscriptionExpiry: Sendable {
    /// Seconds of one wait at most: a clock that is set forward is noticed by then.
    private static let longestWait = 3_600.0
    /// Seconds until the next attempt when the set cannot be read or stored, as on a full disk.
    private static let retryWait = 60.0

    private struct State {
        var isClosed = false
        /// Many changes of the set in a row are one look.
        var isLooking = false
        var observer: UInt64?
    }

    // Sendable because: a dispatch source may be used from any thread, and `schedule` is called on its queue only.
    private struct Timer: @unchecked Sendable {
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
        timer.source.schedule(wallDeadline: .distantFuture)
        timer.source.activate()
        let observer = replica.observeSubscriptions { [weak self] in self?.lookSoon() }
        state.withLock { $0.observer = observer }
        lookSoon()
    }

    /// Ends the waiting. A removal under way changes nothing any more.
    func close() {
        let observer = state.withLock { state in
            state.isClosed = true
            return state.observer
        }
        if let observer { replica.removeObserver(observer) }
        timer.source.cancel()
    }

    private func lookSoon() {
        let isFirst = state.withLock { state in
            defer { state.isLooking = true }
            return !state.isLooking && !state.isClosed
        }
        if isFirst { queue.async { [weak self] in self?.look() } }
    }

    /// On the queue: removes what has expired, or waits for what expires next.
    private func look() {
        state.withLock { $0.isLooking = false }
        do {
            // Its change of the set leads to the next look.
            if try drop() { return }
            let ends = try replica.currentSubscriptionSet().subscriptions.compactMap(\.expires).min()
            guard let ends else { return timer.source.schedule(wallDeadline: .distantFuture) }
            wait(Date(ends).timeIntervalSinceNow)
        } catch {
            wait(Self.retryWait)
        }
    }

    private func wait(_ seconds: Double) {
        // A millisecond more, since an end that is not over yet when the timer fires costs another round.
        timer.source.schedule(wallDeadline: .now() + min(max(seconds, 0) + 0.001, Self.longestWait))
    }

    /// - Returns: whether there was something to remove.
    private func drop() throws -> Bool {
        guard let stored = try SubscriptionExpiry.drop(replica, unless: { self.state.withLock(\.isClosed) }) else { return false }
        session?.log(.info, .session, "The time of subscriptions is over; the set \(stored.version) is committed without them.")
        return true
    }

    /// Stores the newest set without the subscriptions that have expired.
    /// - Parameter isOver: asked when the writer is free; `true` leaves the set as it is.
    /// - Returns: the set as stored; nil when it stays.
    @discardableResult
    static func drop(_ replica: Replica, unless isOver: () -> Bool = { false }) throws -> StoredSubscriptionSet? {
        try asRealmError {
            // Most looks find nothing, and the writer is not waited for.
            guard try replica.currentSubscriptionSet().subscriptions.hasExpired else { return nil }
            return try replica.changeSubscriptionSet { newest in
                guard newest.subscriptions.hasExpired, !isOver() else { return nil }
                var left = newest.subscriptions
                left.eraseExpired()
                return left
            }
        }
    }
}

extension [StoredSubscription] {
    /// Whether the time of one is over.
    var hasExpired: Bool {
        let now = Date().timestamp
        return contains { $0.hasExpired(by: now) }
    }

    /// Takes one out; the last takes its place.
    mutating func erase(at index: Int) {
        let last = removeLast()
        if index < count { self[index] = last }
    }

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
