/// The text form of timestamps: ISO 8601, the proleptic Gregorian calendar, printed in UTC.
extension Timestamp {
    /// Reads `2026-03-01T12:30:00.25Z`: a date, `T` or a space, and a time with up to nine digits of fraction. A `Z` or an offset may
    /// follow (`+02:00`, `+0200`, `+02`); without one the time is UTC. A date alone is its first instant.
    ///
    /// Returns nil for any other text. Years have four digits or, with a sign, four to six.
    @inlinable
    package init?(iso8601 text: some StringProtocol) {
        guard let value = text.withBytes({ Timestamp(iso8601: $0) }) else { return nil }
        self = value
    }

    /// Reads the same form from UTF-8.
    @usableFromInline
    package init?(iso8601 bytes: UnsafeBufferPointer<UInt8>) {
        var scanner = Scanner(bytes: bytes)
        guard let days = scanner.date() else { return nil }
        var seconds = days * 86_400
        var nanoseconds: Int32 = 0
        if !scanner.isAtEnd {
            guard scanner.take("T") || scanner.take("t") || scanner.take(" "), let time = scanner.time(),
                let offset = scanner.offset(), scanner.isAtEnd
            else { return nil }
            seconds += time.seconds - offset
            nanoseconds = time.nanoseconds
        }
        // Both parts must have one sign.
        if seconds < 0, nanoseconds > 0 {
            seconds += 1
            nanoseconds -= 1_000_000_000
        }
        self.init(seconds: seconds, nanoseconds: nanoseconds)
    }

    /// The text `2026-03-01T12:30:00Z`, with three, six or nine digits of fraction if the value needs them.
    ///
    /// Years outside 0 to 9999 have a sign and at least six digits.
    package var iso8601: String {
        let (days, rest, fraction) = parts
        let (year, month, day) = Timestamp.civil(days: days)
        var text = Timestamp.yearText(year)
        text += "-\(Timestamp.padded(month, 2))-\(Timestamp.padded(day, 2))"
        text += "T\(Timestamp.padded(rest / 3_600, 2)):\(Timestamp.padded(rest / 60 % 60, 2)):\(Timestamp.padded(rest % 60, 2))"
        return text + Timestamp.fractionText(fraction) + "Z"
    }

    /// The year in UTC.
    package var year: Int64 { Timestamp.civil(days: parts.days).year }

    /// Days since 1970, seconds of the day and nanoseconds of the second. The latter two are never negative.
    private var parts: (days: Int64, second: Int64, nanosecond: Int64) {
        let below = Timestamp.floorDivide(Int64(nanoseconds), 1_000_000_000)
        // Add to the seconds of a day, not to all seconds, which may be `Int64.min`.
        let second = seconds % 86_400 + below
        let carried = Timestamp.floorDivide(second, 86_400)
        return (seconds / 86_400 + carried, second - carried * 86_400, Int64(nanoseconds) - below * 1_000_000_000)
    }

    /// Milliseconds since 1970, rounded towards zero, saturating at the ends of `Int64`.
    package var milliseconds: Int64 {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = product.addingReportingOverflow(Int64(nanoseconds) / 1_000_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
    }

    package init(milliseconds: Int64) {
        self.init(seconds: milliseconds / 1_000, nanoseconds: Int32(milliseconds % 1_000) * 1_000_000)
    }

    private static func yearText(_ year: Int64) -> String {
        (0...9_999).contains(year) ? padded(year, 4) : (year < 0 ? "-" : "+") + padded(abs(year), 6)
    }

    private static func fractionText(_ nanoseconds: Int64) -> String {
        if nanoseconds == 0 { return "" }
        if nanoseconds % 1_000_000 == 0 { return "." + padded(nanoseconds / 1_000_000, 3) }
        if nanoseconds % 1_000 == 0 { return "." + padded(nanoseconds / 1_000, 6) }
        return "." + padded(nanoseconds, 9)
    }

    private static func padded(_ value: Int64, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    fileprivate static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
        value / divisor - (value % divisor < 0 ? 1 : 0)
    }

    /// Returns the days since 1970 of a civil date. An era is 400 years of 146,097 days in all. Years begin in March so that the leap day
    /// is last.
    fileprivate static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = floorDivide(shifted, 400)
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    fileprivate static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}

private struct Scanner {
    let bytes: UnsafeBufferPointer<UInt8>
    var position = 0

    init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: scalar) else { return false }
        position += 1
        return true
    }

    private mutating func digits(_ counts: ClosedRange<Int>) -> (value: Int64, count: Int)? {
        var (value, count): (Int64, Int) = (0, 0)
        while count < counts.upperBound, position < bytes.count, (0x30...0x39).contains(bytes[position]) {
            value = value * 10 + Int64(bytes[position] - 0x30)
            count += 1
            position += 1
        }
        return counts.contains(count) ? (value, count) : nil
    }

    private mutating func number(_ count: Int, in range: ClosedRange<Int64>) -> Int64? {
        guard let (value, _) = digits(count...count), range.contains(value) else { return nil }
        return value
    }

    mutating func date() -> Int64? {
        let isNegative = take("-")
        let isSigned = isNegative || take("+")
        guard let (magnitude, _) = digits(isSigned ? 4...6 : 4...4), take("-"), let month = number(2, in: 1...12), take("-"),
            let day = number(2, in: 1...31)
        else { return nil }
        let year = isNegative ? -magnitude : magnitude
        let days = Timestamp.days(year: year, month: month, day: day)
        // A day that the month does not have converts to another date.
        guard Timestamp.civil(days: days).day == day else { return nil }
        return days
    }

    mutating func time() -> (seconds: Int64, nanoseconds: Int32)? {
        guard let hour = number(2, in: 0...24), take(":"), let minute = number(2, in: 0...59) else { return nil }
        var second: Int64 = 0
        var nanoseconds: Int64 = 0
        if take(":") {
            // 60 is a leap second. It becomes the first second of the next minute.
            guard let whole = number(2, in: 0...60) else { return nil }
            second = whole
            if take(".") || take(",") {
                guard let (fraction, count) = digits(1...9) else { return nil }
                nanoseconds = (count..<9).reduce(fraction) { value, _ in value * 10 }
            }
        }
        guard hour < 24 || (minute == 0 && second == 0 && nanoseconds == 0) else { return nil }
        return (hour * 3_600 + minute * 60 + second, Int32(nanoseconds))
    }

    /// Reads seconds east of UTC, or 0 if there is no offset.
    mutating func offset() -> Int64? {
        if isAtEnd || take("Z") || take("z") { return 0 }
        let isWest = take("-")
        guard isWest || take("+"), let hours = number(2, in: 0...23) else { return nil }
        var seconds = hours * 3_600
        if !isAtEnd {
            _ = take(":")
            guard let minutes = number(2, in: 0...59) else { return nil }
            seconds += minutes * 60
        }
        return isWest ? -seconds : seconds
    }
}
