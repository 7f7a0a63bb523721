import SluiceCore

/// The pace of one request's body. Pure; times are monotonic nanoseconds.
///
/// A credit of time shrinks while the server waits for the peer and grows with every byte. While the server does not read, as when a
/// route is slower than its sender, no time counts.
package struct BodyPace: Sendable {
    package struct Bounds: Hashable, Sendable {
        package var bytesPerSecond = Limits.bodyBytesPerSecond
        /// The credit at the beginning, which it never exceeds.
        package var grace = UInt64(Limits.bodyGraceSeconds) * 1_000_000_000
        /// For the whole body, and for that of a proven sender.
        package var total = UInt64(Limits.bodySeconds) * 1_000_000_000
        package var provenTotal = UInt64(Limits.provenBodySeconds) * 1_000_000_000

        package init() {}
    }

    private let bounds: Bounds
    /// Time in which the server waited for the peer.
    private var waited: UInt64 = 0
    private var credit: UInt64
    /// When the credit was last counted, while the server waits for the peer.
    private var waitingSince: UInt64?

    package init(_ bounds: Bounds, now: UInt64) {
        self.bounds = bounds
        credit = bounds.grace
        waitingSince = now
    }

    /// The server reads from the connection: the peer's turn.
    package mutating func reading(now: UInt64) { if waitingSince == nil { waitingSince = now } }

    /// Bytes have come, or the server has stopped reading.
    package mutating func received(_ bytes: Int, now: UInt64) {
        settle(now)
        waitingSince = nil
        let earned = UInt64(bytes).multipliedReportingOverflow(by: 1_000_000_000 / UInt64(max(1, bounds.bytesPerSecond)))
        credit = earned.overflow ? bounds.grace : min(bounds.grace, credit + min(earned.partialValue, bounds.grace))
    }

    /// Nanoseconds until the body is late unless something comes; 0 when it is late, nil while the server does not read.
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
