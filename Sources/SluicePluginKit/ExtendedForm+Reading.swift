// The opposite direction: reads objects with a `$` key as values, as tests write them.

extension ExtendedForm {
    /// A value that JSON lacks.
    enum Value {
        case int(Int64)
        case double(Double)
        case decimal(String)
        case binary([UInt8])
        case date(seconds: Int64, nanoseconds: Int32)
        case objectId([UInt8])
        case uuid([UInt8])
        case link(type: String, key: PluginValue)
    }

    /// Returns the value that an object represents, or nil for an ordinary object.
    static func read(_ members: [PluginValue.Member]) -> Value? {
        if members.count == 2, members[0].key == "$ref", members[1].key == "$id", let type = members[0].value.string {
            return .link(type: type, key: members[1].value)
        }
        guard members.count == 1, let member = members.first else { return nil }
        switch (member.key, member.value) {
        case ("$oid", .string(let text)): return bytes(hex: text, count: 12).map { .objectId($0) }
        case ("$uuid", .string(let text)):
            return text.utf8.count == 36 ? bytes(hex: text.filter { $0 != "-" }, count: 16).map { .uuid($0) } : nil
        case ("$numberInt", .string(let text)), ("$numberLong", .string(let text)): return Int64(text).map { .int($0) }
        case ("$numberDouble", .string(let text)): return Double(text).map { .double($0) }
        case ("$numberDecimal", .string(let text)): return .decimal(text)
        case ("$date", let content): return date(content)
        case ("$binary", let content): return content["base64"]?.string.flatMap { bytes(base64: $0) }.map { .binary($0) }
        default: return nil
        }
    }

    private static func bytes(hex text: String, count: Int) -> [UInt8]? {
        let digits = text.utf8.map { UInt8(String(Unicode.Scalar($0)), radix: 16) }
        guard digits.count == 2 * count, !digits.contains(nil) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { (digits[$0] ?? 0) << 4 | (digits[$0 + 1] ?? 0) }
    }

    private static func bytes(base64 text: String) -> [UInt8]? {
        let padding = text.utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        let digits = text.utf8.dropLast(padding).map { value(ofBase64: $0) }
        guard text.utf8.count.isMultiple(of: 4), padding <= 2, !digits.contains(nil) else { return nil }
        var (bytes, bits, count): ([UInt8], UInt32, Int) = ([], 0, 0)
        for digit in digits {
            (bits, count) = (bits << 6 | (digit ?? 0), count + 6)
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bytes
    }

    private static func value(ofBase64 digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit) - 65
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit) - 71
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit) + 4
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }

    /// Reads ISO 8601 text, or milliseconds.
    private static func date(_ content: PluginValue) -> Value? {
        switch content {
        case .int(let milliseconds):
            return .date(seconds: milliseconds / 1_000, nanoseconds: Int32(milliseconds % 1_000) * 1_000_000)
        case .string(let text): return date(iso8601: text)
        case .object(let members):
            guard case .int(let milliseconds)? = read(members) else { return nil }
            return date(.int(milliseconds))
        default: return nil
        }
    }

    /// Reads `2013-01-01T05:00:00[.fraction](Z|±hh:mm)`.
    private static func date(iso8601 text: String) -> Value? {
        var rest = Array(text.utf8)[...]
        func number(_ count: Int) -> Int64? {
            guard rest.count >= count, rest.prefix(count).allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            defer { rest.removeFirst(count) }
            return rest.prefix(count).reduce(0) { $0 * 10 + Int64($1 - 0x30) }
        }
        func take(_ byte: Unicode.Scalar) -> Bool {
            guard rest.first == UInt8(ascii: byte) else { return false }
            rest.removeFirst()
            return true
        }
        guard let year = number(4), take("-"), let month = number(2), (1...12).contains(month), take("-"), let day = number(2),
            (1...31).contains(day), take("T"), let hour = number(2), take(":"), let minute = number(2), take(":"), let second = number(2)
        else { return nil }
        var (nanoseconds, unit): (Int64, Int64) = (0, 100_000_000)
        if take(".") {
            while let digit = number(1) { (nanoseconds, unit) = (nanoseconds + digit * unit, unit / 10) }
        }
        var offset: Int64 = 0
        if !take("Z") {
            let isWest = take("-")
            guard isWest || take("+"), let hours = number(2), take(":"), let minutes = number(2) else { return nil }
            offset = (hours * 60 + minutes) * (isWest ? -60 : 60)
        }
        guard rest.isEmpty else { return nil }
        let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset
        if seconds < 0, nanoseconds > 0 { return .date(seconds: seconds + 1, nanoseconds: Int32(nanoseconds - 1_000_000_000)) }
        return .date(seconds: seconds, nanoseconds: Int32(nanoseconds))
    }

    /// Returns the days since 1970 of a date. Years begin in March.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let years = month > 2 ? year : year - 1
        let ofYear = ((month + 9) % 12 * 306 + 5) / 10 + day - 1
        return years * 365 + floor(years, 4) - floor(years, 100) + floor(years, 400) + ofYear - 719_468
    }
}
