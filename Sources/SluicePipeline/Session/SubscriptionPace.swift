import SluiceCore

/// The pace of a session's subscription changes: `Limits.subscriptionChanges` at once, and the same again each minute.
///
/// Each change may cost a bootstrap, which the next change makes useless. Pure.
struct SubscriptionPace: Sendable {
    private static let interval = 60_000_000_000 / UInt64(Limits.subscriptionChanges)

    /// The time at which all changes at once are available again, in monotonic nanoseconds.
    private var full: UInt64 = 0

    /// Takes a change.
    ///
    /// - Parameter now: In monotonic nanoseconds.
    /// - Returns: The nanoseconds that the change must wait.
    mutating func take(at now: UInt64) -> UInt64 {
        full = max(full, now) + Self.interval
        let budget = 60_000_000_000 as UInt64
        return full - now > budget ? full - now - budget : 0
    }
}
