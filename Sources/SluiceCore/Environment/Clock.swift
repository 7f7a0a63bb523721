/// A hybrid logical clock reading: 48 bits of milliseconds since 1970, then 16 bits of counter. Comparing the numbers compares the readings
/// (Kulkarni et al., "Logical Physical Clocks", 2014).
package struct HybridTime: RawRepresentable, Hashable, Sendable, Comparable {
    package var rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    /// Clamps times to the range of 48 bits.
    package init(milliseconds: Int64, counter: UInt16 = 0) {
        rawValue = UInt64(min(max(milliseconds, 0), HybridTime.lastMillisecond)) << 16 | UInt64(counter)
    }
    package static let lastMillisecond: Int64 = 1 << 48 - 1
    package static let zero = HybridTime(rawValue: 0)
    package var milliseconds: Int64 { Int64(rawValue >> 16) }
    package var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }
    package static func < (lhs: HybridTime, rhs: HybridTime) -> Bool { lhs.rawValue < rhs.rawValue }
}

/// The time and the client of a write: a total order, with ties broken by the client's number.
package struct WriteStamp: Hashable, Sendable, Comparable {
    package var time: HybridTime
    package var client: ClientID

    package init(time: HybridTime, client: ClientID) {
        self.time = time
        self.client = client
    }

    package static func < (lhs: WriteStamp, rhs: WriteStamp) -> Bool {
        (lhs.time, lhs.client) < (rhs.time, rhs.client)
    }
}

/// The clock as a value. The caller passes the physical time, in milliseconds since 1970.
package struct HybridClock: Sendable {
    package private(set) var last: HybridTime

    package init(last: HybridTime = .zero) { self.last = last }

    /// Returns a reading later than every one before it, and not before `now`. The last reading repeats once the 64 bits are exhausted.
    package mutating func tick(now: Int64) -> HybridTime {
        let (next, isOver) = last.rawValue.addingReportingOverflow(1)
        last = max(HybridTime(milliseconds: now), isOver ? last : HybridTime(rawValue: next))
        return last
    }

    /// Records a remote reading, cut to `now + Limits.clockSkewMilliseconds`, so that a device far ahead cannot win forever.
    /// - Returns: The reading that counts.
    @discardableResult
    package mutating func observe(_ remote: HybridTime, now: Int64) -> HybridTime {
        let bound = HybridTime(milliseconds: now + Limits.clockSkewMilliseconds, counter: .max)
        let taken = min(remote, bound)
        last = max(last, taken)
        return taken
    }
}
