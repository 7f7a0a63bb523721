/// A point in time: seconds and nanoseconds since 1970-01-01 UTC.
///
/// Both parts have the same sign, as in realm-core. PostgreSQL stores microseconds, so the server returns nanoseconds cut to a multiple of
/// 1,000, towards zero.
package struct Timestamp: Hashable, Sendable, Comparable {
    @usableFromInline package var seconds: Int64
    @usableFromInline package var nanoseconds: Int32

    @inlinable package init(seconds: Int64, nanoseconds: Int32 = 0) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// Creates a timestamp from unchecked parts. Returns nil if the signs differ or the nanoseconds are a second or more.
    package init?(seconds: Int64, checking nanoseconds: Int64) {
        guard (-999_999_999...999_999_999).contains(nanoseconds), seconds == 0 || nanoseconds == 0 || (seconds < 0) == (nanoseconds < 0)
        else {
            return nil
        }
        self.init(seconds: seconds, nanoseconds: Int32(nanoseconds))
    }

    package init(microseconds: Int64) {
        seconds = microseconds / 1_000_000
        nanoseconds = Int32(microseconds % 1_000_000) * 1_000
    }

    /// Microseconds since 1970, saturating at the ends of `Int64`.
    package var microseconds: Int64 {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = product.addingReportingOverflow(Int64(nanoseconds) / 1_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
    }

    package static func < (lhs: Timestamp, rhs: Timestamp) -> Bool {
        (lhs.seconds, lhs.nanoseconds) < (rhs.seconds, rhs.nanoseconds)
    }
}
