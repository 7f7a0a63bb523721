/// PostgreSQL's text forms of a time of day: `12:30:00.25`, and `12:30:00.25+02` of a `time with time zone`.
package enum TextTime {
    /// Returns the text as PostgreSQL prints that `time without time zone`; nil if it is none.
    ///
    /// The seconds may be missing. Digits beyond microseconds are cut off, as those of a `Timestamp` are. `24:00:00` ends a day.
    package static func normal(_ text: String) -> String? {
        var reader = TextReader(text)
        return clock(&reader).flatMap { reader.isAtEnd ? $0 : nil }
    }

    /// Returns the text as PostgreSQL prints that `time with time zone`; nil if it is none.
    ///
    /// The offset from UTC is `Z`, or hours below 16 with minutes and seconds or without. Without an offset, the time is in UTC.
    package static func zoned(_ text: String) -> String? {
        var reader = TextReader(text)
        guard let clock = clock(&reader), let offset = offset(&reader), reader.isAtEnd else { return nil }
        return clock + offset
    }

    private static func offset(_ reader: inout TextReader) -> String? {
        if reader.isAtEnd || reader.skip("Z") { return "+00" }
        let isWest = reader.skip("-")
        guard isWest || reader.skip("+"), let hours = reader.number(2...2), hours < 16 else { return nil }
        var (minutes, seconds): (Int64, Int64) = (0, 0)
        if reader.skip(":") {
            guard let value = reader.number(2...2), value < 60 else { return nil }
            minutes = value
            if reader.skip(":") {
                guard let value = reader.number(2...2), value < 60 else { return nil }
                seconds = value
            }
        }
        let rest = seconds > 0 ? ":\(two(minutes)):\(two(seconds))" : minutes > 0 ? ":\(two(minutes))" : ""
        return (isWest && hours + minutes + seconds > 0 ? "-" : "+") + two(hours) + rest
    }

    private static func clock(_ reader: inout TextReader) -> String? {
        guard let hour = reader.number(2...2), hour <= 24, reader.skip(":"), let minute = reader.number(2...2), minute < 60 else {
            return nil
        }
        var (second, microseconds): (Int64, Int64) = (0, 0)
        if reader.skip(":") {
            guard let value = reader.number(2...2), value < 60, let fraction = reader.fraction() else { return nil }
            (second, microseconds) = (value, fraction)
        }
        guard hour < 24 || minute + second + microseconds == 0 else { return nil }
        return "\(two(hour)):\(two(minute)):\(two(second))\(fraction(microseconds))"
    }

    private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// Returns a point and digits without trailing zeros; an empty text for zero.
    static func fraction(_ microseconds: Int64) -> String {
        guard microseconds > 0 else { return "" }
        let digits = String(String(1_000_000 + microseconds).dropFirst())
        return "." + String(digits.reversed().drop { $0 == "0" }.reversed())
    }
}

/// PostgreSQL's text form of an `interval` with `IntervalStyle iso_8601`: `P1Y2M3DT4H5M6.5S`.
///
/// An interval has three parts, which PostgreSQL does not convert into each other: months, days and microseconds.
package enum TextInterval {
    private struct Unit {
        var mark: Unicode.Scalar
        /// The unit in its part: months, days or microseconds.
        var factor: Int64
        var part: any WritableKeyPath<Parts, Int64> & Sendable
    }

    private struct Parts {
        var months: Int64 = 0
        var days: Int64 = 0
        var microseconds: Int64 = 0

        /// Adds a multiple of a unit. Returns `false` if PostgreSQL cannot hold the sum.
        mutating func add(_ count: Int64, of unit: Unit, _ fraction: Int64) -> Bool {
            let (product, isTooLarge) = count.multipliedReportingOverflow(by: unit.factor)
            let (change, isBeyond) = product.addingReportingOverflow(fraction)
            let (sum, isOver) = self[keyPath: unit.part].addingReportingOverflow(change)
            self[keyPath: unit.part] = sum
            return !isTooLarge && !isBeyond && !isOver && Int32(exactly: months) != nil && Int32(exactly: days) != nil
        }
    }

    private static let dateUnits = [
        Unit(mark: "Y", factor: 12, part: \.months), Unit(mark: "M", factor: 1, part: \.months), Unit(mark: "W", factor: 7, part: \.days),
        Unit(mark: "D", factor: 1, part: \.days),
    ]
    private static let timeUnits = [
        Unit(mark: "H", factor: 3_600_000_000, part: \.microseconds), Unit(mark: "M", factor: 60_000_000, part: \.microseconds),
        Unit(mark: "S", factor: 1_000_000, part: \.microseconds),
    ]

    /// Returns the text as PostgreSQL prints that duration; nil if it is none or PostgreSQL cannot hold it.
    ///
    /// Each number may be negative, and that of the seconds may have a fraction, which is cut to microseconds.
    package static func normal(_ text: String) -> String? { parts(text).map(Self.text) }

    private static func parts(_ text: String) -> Parts? {
        var reader = TextReader(text)
        guard reader.skip("P"), !reader.isAtEnd else { return nil }
        var parts = Parts()
        var (units, isTime) = (dateUnits[...], false)
        while !reader.isAtEnd {
            if !isTime, reader.skip("T") {
                (units, isTime) = (timeUnits[...], true)
                if reader.isAtEnd { return nil }
            }
            let isNegative = reader.skip("-")
            guard let count = reader.number(1...18), let fraction = reader.fraction() else { return nil }
            // Units have an order, and each occurs once.
            guard let unit = units.firstIndex(where: { reader.skip($0.mark) }), fraction == 0 || units[unit].mark == "S" else { return nil }
            guard parts.add(isNegative ? -count : count, of: units[unit], isNegative ? -fraction : fraction) else { return nil }
            units = units[(unit + 1)...]
        }
        return parts
    }

    private static func text(_ parts: Parts) -> String {
        func number(_ count: Int64, _ unit: String) -> String { count == 0 ? "" : "\(count)\(unit)" }
        let date = number(parts.months / 12, "Y") + number(parts.months % 12, "M") + number(parts.days, "D")
        let (hours, rest) = parts.microseconds.quotientAndRemainder(dividingBy: 3_600_000_000)
        let (minutes, seconds) = rest.quotientAndRemainder(dividingBy: 60_000_000)
        let sign = seconds < 0 ? "-" : ""
        let (whole, fraction) = abs(seconds).quotientAndRemainder(dividingBy: 1_000_000)
        let time = number(hours, "H") + number(minutes, "M") + (seconds == 0 ? "" : "\(sign)\(whole)\(TextTime.fraction(fraction))S")
        if date.isEmpty, time.isEmpty { return "PT0S" }
        return "P\(date)\(time.isEmpty ? "" : "T")\(time)"
    }
}

/// A reader of digits and marks.
private struct TextReader {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = text[...].utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skip(_ scalar: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(truncatingIfNeeded: scalar.value) else { return false }
        rest.removeFirst()
        return true
    }

    /// Reads so many digits, at most 18.
    mutating func number(_ counts: ClosedRange<Int>) -> Int64? {
        let digits = rest.prefix { $0 &- UInt8(ascii: "0") <= 9 }
        guard counts.contains(digits.count) else { return nil }
        rest = rest[digits.endIndex...]
        return digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }

    /// Reads a fraction in microseconds; 0 if there is none.
    ///
    /// - Returns: nil for a point without digits.
    mutating func fraction() -> Int64? {
        guard skip(".") else { return 0 }
        let digits = rest.prefix { $0 &- UInt8(ascii: "0") <= 9 }
        guard !digits.isEmpty else { return nil }
        rest = rest[digits.endIndex...]
        let value = digits.prefix(6).reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        return (min(digits.count, 6)..<6).reduce(value) { value, _ in value * 10 }
    }
}
