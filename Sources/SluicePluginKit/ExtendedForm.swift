/// Values that JSON lacks, in extended JSON with the same texts as the gateway's.
enum ExtendedForm {
    static func number(_ value: Double) -> PluginValue {
        if value.isFinite { return .double(value) }
        return ["$numberDouble": .string(value.isNaN ? "NaN" : value < 0 ? "-Infinity" : "Infinity")]
    }

    static func number(_ value: Float) -> PluginValue { number(double(value)) }

    /// The double that prints as the float does: 0.1, not 0.10000000149011612.
    static func double(_ value: Float) -> Double {
        guard let short = Double("\(value)"), Float(short) == value else { return Double(value) }
        return short
    }

    static func hex(_ bytes: some Collection<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    static func uuid(_ bytes: some Collection<UInt8>) -> String {
        let digits = Array(hex(bytes).utf8)
        let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(decoding: digits[$0], as: UTF8.self) }
        return parts.joined(separator: "-")
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func base64(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        var group: [UInt8] = []
        func close() {
            let bits = (0..<3).reduce(UInt32(0)) { $0 << 8 | UInt32($1 < group.count ? group[$1] : 0) }
            for index in 0..<4 {
                text.append(index <= group.count ? alphabet[Int(bits >> UInt32(18 - 6 * index)) & 63] : UInt8(ascii: "="))
            }
            group.removeAll()
        }
        for byte in bytes {
            group.append(byte)
            if group.count == 3 { close() }
        }
        if !group.isEmpty { close() }
        return String(decoding: text, as: UTF8.self)
    }

    // MARK: Dates

    /// Returns ISO 8601 text in UTC for the years 0 to 9999, otherwise milliseconds. Both parts must have the same sign.
    static func date(_ seconds: Int64, _ nanoseconds: Int32) -> PluginValue {
        // The fraction counts from the second below, so it is never negative.
        let isBelow = nanoseconds < 0
        let (second, borrowed) = seconds.subtractingReportingOverflow(isBelow ? 1 : 0)
        let day = floor(second, 86_400)
        let rest = second &- day &* 86_400
        let civil = civil(day)
        guard !borrowed, (0...9_999).contains(civil.year) else {
            return ["$numberLong": .string("\(milliseconds(seconds, nanoseconds))")]
        }
        let fraction = Int64(nanoseconds) + (isBelow ? 1_000_000_000 : 0)
        let time = "\(padded(rest / 3_600, 2)):\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2))"
        return .string("\(padded(civil.year, 4))-\(padded(civil.month, 2))-\(padded(civil.day, 2))T\(time)\(fractionText(fraction))Z")
    }

    /// Rounds towards zero and saturates at the ends of `Int64`.
    private static func milliseconds(_ seconds: Int64, _ nanoseconds: Int32) -> Int64 {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = product.addingReportingOverflow(Int64(nanoseconds) / 1_000_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
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

    static func floor(_ value: Int64, _ divisor: Int64) -> Int64 { value / divisor - (value % divisor < 0 ? 1 : 0) }

    /// Returns the Gregorian date of a day since 1970. Years begin in March, and an era has 400 years.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = floor(shifted, 146_097)
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * ofYear + 2) / 153
        return (yearOfEra + era * 400 + (month >= 10 ? 1 : 0), month < 10 ? month + 3 : month - 9, ofYear - (153 * month + 2) / 5 + 1)
    }
}
