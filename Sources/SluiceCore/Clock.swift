/// A hybrid logical clock reading: 48 bits of milliseconds since 1970, 16 bits of counter, so that comparing the
/// numbers compares the readings (Kulkarni et al., "Logical Physical Clocks", 2014).
package struct HybridTime: RawRepresentable, Hashable, Sendable, Comparable {
    package var rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }
    /// Times beyond what 48 bits hold are cut to it.
    package init(milliseconds: Int64, counter: UInt16 = 0) {
        rawValue = UInt64(min(max(milliseconds, 0), HybridTime.lastMillisecond)) << 16 | UInt64(counter)
    }
    package static let lastMillisecond: Int64 = 1 << 48 - 1
    package static let zero = HybridTime(rawValue: 0)
    package var milliseconds: Int64 { Int64(rawValue >> 16) }
    package var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }
    package static func < (lhs: HybridTime, rhs: HybridTime) -> Bool { lhs.rawValue < rhs.rawValue }
}

/// When a write happened and who made it: total order, ties broken by the client's number.
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

/// The clock itself: a value; physical time comes in as an argument.
package struct HybridClock: Sendable {
    package private(set) var last: HybridTime

    package init(last: HybridTime = .zero) { self.last = last }

    /// A reading later than every one before it, and not before `now`. At the end of time the clock stands.
    package mutating func tick(now: Int64) -> HybridTime {
        let (next, isOver) = last.rawValue.addingReportingOverflow(1)
        last = max(HybridTime(milliseconds: now), isOver ? last : HybridTime(rawValue: next))
        return last
    }

    /// Takes note of a remote reading, cut to `now + Limits.clockSkewMilliseconds` (CR-30: a device far ahead must not win for ever).
    /// - Returns: the reading that counts.
    @discardableResult
    package mutating func observe(_ remote: HybridTime, now: Int64) -> HybridTime {
        let bound = HybridTime(milliseconds: now + Limits.clockSkewMilliseconds, counter: .max)
        let taken = min(remote, bound)
        last = max(last, taken)
        return taken
    }
}
