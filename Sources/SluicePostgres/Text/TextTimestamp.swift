package import SluiceValues

/// The text form of a `timestamptz` in UTC: `2026-03-01 12:30:00.25+00`. Years have four to seven digits, and dates before the year 1
/// end in ` BC`. A `timestamp` has no offset, and a `date` no time.
package enum TextTimestamp {
    /// Returns the microseconds since 1970.
    ///
    /// - Returns: Nil for `infinity`, `-infinity`, times that 64 bits do not hold (after 10 January 294247) and malformed text.
    @unsafe
    package static func microseconds(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        var reader = unsafe Reader(bytes: bytes)
        guard let date = reader.date(), reader.skip(" "), let time = reader.time(), let offset = reader.offset() else { return nil }
        return microseconds(date, seconds: time.seconds - offset, time.fraction, &reader)
    }

    /// Returns the microseconds since 1970 of a `timestamp` without time zone, which counts as UTC.
    @unsafe
    static func microseconds(local bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        var reader = unsafe Reader(bytes: bytes)
        guard let date = reader.date(), reader.skip(" "), let time = reader.time() else { return nil }
        return microseconds(date, seconds: time.seconds, time.fraction, &reader)
    }

    /// Returns the microseconds from 1970 to the start of a `date` in UTC.
    @unsafe
    static func microseconds(date bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        var reader = unsafe Reader(bytes: bytes)
        guard let date = reader.date() else { return nil }
        return microseconds(date, seconds: 0, 0, &reader)
    }

    /// Returns a time at the end of its text.
    private static func microseconds(
        _ date: (year: Int64, month: Int64, day: Int64), seconds time: Int64, _ fraction: Int64, _ reader: inout Reader
    ) -> Int64? {
        // The year 1 BC is the year 0 of `CivilDate`.
        let year = reader.isBeforeChrist() ? 1 - date.year : date.year
        guard reader.isAtEnd, (-290_000...294_247).contains(year) else { return nil }
        let seconds = CivilDate.days(year: year, month: date.month, day: date.day) * 86_400 + time
        // The range of 64 bits ends in the year 294247; PostgreSQL's, which counts from 2000, thirty years later.
        let (whole, isTooLarge) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let (microseconds, isBeyond) = whole.addingReportingOverflow(fraction)
        return isTooLarge || isBeyond ? nil : microseconds
    }

    /// Returns the text of a time, cut to microseconds towards zero like `Timestamp`. A time that PostgreSQL cannot hold (before
    /// 4713 BC, after the year 294276) becomes text that it rejects.
    package static func text(_ value: Timestamp) -> String {
        var bytes: [UInt8] = []
        append(value, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends `text(_:)`.
    static func append(_ value: Timestamp, to bytes: inout [UInt8]) {
        let (days, rest) = floored(value.microseconds, 86_400_000_000)
        let date = CivilDate.date(days: days)
        let seconds = rest / 1_000_000
        append(date.year > 0 ? date.year : 1 - date.year, 4, to: &bytes)
        append("-", date.month, 2, to: &bytes)
        append("-", date.day, 2, to: &bytes)
        append(" ", seconds / 3_600, 2, to: &bytes)
        append(":", seconds / 60 % 60, 2, to: &bytes)
        append(":", seconds % 60, 2, to: &bytes)
        if rest % 1_000_000 != 0 { append(".", rest % 1_000_000, 6, to: &bytes) }
        bytes.append(contentsOf: (date.year > 0 ? "+00" : "+00 BC").utf8)
    }

    /// Returns the start of the day, in microseconds since 1970.
    static func midnight(_ microseconds: Int64) -> Int64 {
        let (days, _) = floored(microseconds, 86_400_000_000)
        let (midnight, isTooEarly) = days.multipliedReportingOverflow(by: 86_400_000_000)
        return isTooEarly ? microseconds : midnight
    }

    private static func append(_ sign: Unicode.Scalar, _ value: Int64, _ count: Int, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: sign))
        append(value, count, to: &bytes)
    }

    /// Appends at least `count` digits.
    private static func append(_ value: Int64, _ count: Int, to bytes: inout [UInt8]) {
        var unit: Int64 = 1
        for _ in 1..<count { unit *= 10 }
        while value / unit >= 10 { unit *= 10 }
        while unit > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(value / unit % 10))
            unit /= 10
        }
    }

    private static func floored(_ value: Int64, _ divisor: Int64) -> (Int64, Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    @safe
    private struct Reader {
        private let bytes: UnsafeBufferPointer<UInt8>
        private let count: Int
        private var position = 0

        init(bytes: UnsafeBufferPointer<UInt8>) {
            unsafe self.bytes = bytes
            count = bytes.count
        }

        var isAtEnd: Bool { position == count }

        private var digit: Int64? {
            guard position < count else { return nil }
            let digit = unsafe bytes[position] &- UInt8(ascii: "0")
            return digit <= 9 ? Int64(digit) : nil
        }

        mutating func skip(_ scalar: Unicode.Scalar) -> Bool {
            guard position < count, unsafe bytes[position] == UInt8(truncatingIfNeeded: scalar.value) else { return false }
            position += 1
            return true
        }

        mutating func number(_ counts: ClosedRange<Int>) -> Int64? {
            var value: Int64 = 0
            let start = position
            while position - start < counts.upperBound, let digit {
                value = value * 10 + digit
                position += 1
            }
            return position - start >= counts.lowerBound ? value : nil
        }

        /// Reads `2026-03-01`. Years have four to seven digits.
        mutating func date() -> (year: Int64, month: Int64, day: Int64)? {
            guard let year = number(4...7), skip("-"), let month = number(2...2), skip("-"), let day = number(2...2), month >= 1,
                month <= 12
            else { return nil }
            return (year, month, day)
        }

        /// Reads `12:30:00.25`: the seconds since midnight, and microseconds.
        mutating func time() -> (seconds: Int64, fraction: Int64)? {
            guard let hour = number(2...2), skip(":"), let minute = number(2...2), skip(":"), let second = number(2...2) else { return nil }
            var fraction: Int64 = 0
            if skip(".") {
                guard let digits = self.fraction() else { return nil }
                fraction = digits
            }
            return ((hour * 60 + minute) * 60 + second, fraction)
        }

        /// Reads up to six digits after the point, as microseconds.
        mutating func fraction() -> Int64? {
            let start = position
            guard var value = number(1...6) else { return nil }
            for _ in position - start..<6 { value *= 10 }
            return value
        }

        /// Reads an offset such as `+00` or `-03:30` as seconds east of UTC.
        mutating func offset() -> Int64? {
            let isEast = skip("+")
            guard isEast || skip("-"), var seconds = number(2...2).map({ $0 * 3_600 }) else { return nil }
            for unit: Int64 in [60, 1] where skip(":") {
                guard let part = number(2...2) else { return nil }
                seconds += part * unit
            }
            return isEast ? seconds : -seconds
        }

        mutating func isBeforeChrist() -> Bool { skip(" ") && skip("B") && skip("C") }
    }
}

/// The proleptic Gregorian calendar; the year 0 is 1 BC.
enum CivilDate {
    /// Returns the days since 1970-01-01. Years are counted from March, so that the leap day is the last of its year.
    static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month > 2 ? year : year - 1
        let century = shifted >= 0 ? shifted / 400 : (shifted - 399) / 400
        let yearOfEra = shifted - century * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return century * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Returns the date of a number of days since 1970-01-01.
    static func date(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted >= 0 ? shifted / 146_097 : (shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
        return (year, month < 10 ? month + 3 : month - 9, dayOfYear - (153 * month + 2) / 5 + 1)
    }
}
