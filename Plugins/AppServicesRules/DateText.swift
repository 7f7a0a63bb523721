import SluicePluginKit

/// The forms of extended JSON's `$date`: ISO 8601 text, milliseconds, or `{"$numberLong": milliseconds}`.
enum DateText {
    static func read(_ value: PluginValue) -> (seconds: Int64, nanoseconds: Int64)? {
        switch value {
        case .int(let milliseconds): return split(milliseconds)
        case .string(let text): return read(iso8601: text)
        case .object:
            guard case .int(let milliseconds) = RuleValue(value) else { return nil }
            return split(milliseconds)
        default: return nil
        }
    }

    /// Splits milliseconds. Both parts have the sign of the whole, as in the query language.
    private static func split(_ milliseconds: Int64) -> (Int64, Int64) {
        (milliseconds / 1_000, milliseconds % 1_000 * 1_000_000)
    }

    /// Reads `2013-01-01T05:00:00[.fraction](Z|±hh:mm)`, or returns nil.
    private static func read(iso8601 text: String) -> (Int64, Int64)? {
        var rest = Array(text.utf8)[...]
        func number(_ count: Int) -> Int64? {
            guard rest.count >= count, rest.prefix(count).allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            defer { rest.removeFirst(count) }
            return rest.prefix(count).reduce(0) { $0 * 10 + Int64($1 - 0x30) }
        }
        func take(_ byte: Character) -> Bool {
            guard let expected = byte.asciiValue, rest.first == expected else { return false }
            rest.removeFirst()
            return true
        }
        guard let year = number(4), take("-"), let month = number(2), (1...12).contains(month), take("-"),
            let day = number(2), (1...31).contains(day), take("T"), let hour = number(2), hour < 24, take(":"),
            let minute = number(2), minute < 60, take(":"), let second = number(2), second < 60
        else { return nil }
        var nanoseconds: Int64 = 0
        if take(".") {
            var unit: Int64 = 100_000_000
            while let digit = number(1) {
                nanoseconds += digit * unit
                unit /= 10
            }
        }
        var offset: Int64 = 0
        if !take("Z") {
            let isWest = rest.first == UInt8(ascii: "-")
            guard take(isWest ? "-" : "+"), let hours = number(2), take(":"), let minutes = number(2) else { return nil }
            offset = (hours * 60 + minutes) * (isWest ? -60 : 60)
        }
        guard rest.isEmpty else { return nil }
        let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset
        return seconds < 0 && nanoseconds > 0 ? (seconds + 1, nanoseconds - 1_000_000_000) : (seconds, nanoseconds)
    }

    /// Returns the days since 1970 of a Gregorian date. Years begin in March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let fromMarch = (month + 9) % 12
        let years = month > 2 ? year : year - 1
        return years * 365 + years / 4 - years / 100 + years / 400 + (fromMarch * 306 + 5) / 10 + day - 1 - 719_468
    }
}
