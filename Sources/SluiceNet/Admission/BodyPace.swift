import SluiceCore

/// The pace of one request's body. Pure. Times are monotonic nanoseconds.
///
/// A time credit shrinks while the server waits for the peer and grows with every byte received. No time counts while the server does not
/// read, as when a route is slower than its sender.
package struct BodyPace: Sendable {
    package struct Bounds: Hashable, Sendable {
        package var bytesPerSecond = Limits.bodyBytesPerSecond
        /// The initial credit, which is also its maximum, in nanoseconds.
        package var grace = UInt64(Limits.bodyGraceSeconds) * 1_000_000_000
        /// The limits for the whole body, and for that of a proven sender, in nanoseconds of waiting.
        package var total = UInt64(Limits.bodySeconds) * 1_000_000_000
        package var provenTotal = UInt64(Limits.provenBodySeconds) * 1_000_000_000

        package init() {}
    }

    private let bounds: Bounds
    /// The time that the server has waited for the peer.
    private var waited: UInt64 = 0
    private var credit: UInt64
    /// The last time that the credit was counted. `nil` while the server does not wait for the peer.
    private var waitingSince: UInt64?

    package init(_ bounds: Bounds, now: UInt64) {
        self.bounds = bounds
        credit = bounds.grace
        waitingSince = now
    }

    /// Starts the clock: the server reads and waits for the peer.
    package mutating func reading(now: UInt64) { if waitingSince == nil { waitingSince = now } }

    /// Stops the clock and credits the bytes: bytes arrived (0: none), and the server stopped reading until the next `reading`.
    package mutating func received(_ bytes: Int, now: UInt64) {
        settle(now)
        waitingSince = nil
        let earned = UInt64(bytes).multipliedReportingOverflow(by: 1_000_000_000 / UInt64(max(1, bounds.bytesPerSecond)))
        credit = earned.overflow ? bounds.grace : min(bounds.grace, credit + min(earned.partialValue, bounds.grace))
    }

    /// Returns the nanoseconds until the body is late if no bytes arrive: 0 if it is late, `nil` while the server does not read.
    package mutating func left(now: UInt64, isProven: Bool) -> UInt64? {
        settle(now)
        guard waitingSince != nil else { return nil }
        let total = isProven ? bounds.provenTotal : bounds.total
        return min(total - min(total, waited), credit)
    }

    private mutating func settle(_ now: UInt64) {
        guard let since = waitingSince else { return }
        let passed = now - min(now, since)
        credit -= min(credit, passed)
        waited += passed
        waitingSince = now
    }
}
