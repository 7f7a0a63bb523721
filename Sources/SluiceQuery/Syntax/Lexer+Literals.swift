import SluiceCore
import SluiceValues

extension Lexer {
    /// Reads a literal that begins with this letter, or returns nil. `word` reads constants that are words.
    mutating func prefixed(_ byte: UInt8) throws(SluiceError) -> TokenKind? {
        switch Unicode.Scalar(byte) {
        case "T": try shortTimestamp()
        case "B": try base64()
        case "u": uuid()
        case "o": objectId()
        case "L": rowKey()
        default: nil
        }
    }

    // MARK: Strings

    /// Reads a string. Its value is the raw text between its quotes: as in Realm, escapes are checked but not decoded.
    mutating func string(quote: UInt8) throws(SluiceError) -> TokenKind {
        let start = position
        position += 1
        while position < bytes.count {
            let byte = bytes[position]
            if byte == quote {
                position += 1
                return .literal(.string(text(start + 1..<position - 1)))
            }
            if byte == UInt8(ascii: "\\") { try escape() } else { position += 1 }
        }
        throw failure("this string has no closing quote", at: start)
    }

    private mutating func escape() throws(SluiceError) {
        let start = position
        position += 1
        guard let byte = peek() else { return }
        position += 1
        if byte == UInt8(ascii: "u") {
            for _ in 0..<4 {
                guard let digit = peek(), Lexer.isHexDigit(digit) else {
                    throw failure("\\u takes four hexadecimal digits", at: start)
                }
                position += 1
            }
        } else if !"\"'/bfnrt0\\".utf8.contains(byte) {
            throw failure("there is no such escape in a string; these exist: \\\" \\' \\/ \\b \\f \\n \\r \\t \\0 \\\\ \\uHHHH", at: start)
        }
    }

    private mutating func base64() throws(SluiceError) -> TokenKind? {
        let start = position
        guard hasPrefix("B64\"") else { return nil }
        let content = start + 4
        guard let end = bytes[content...].firstIndex(of: UInt8(ascii: "\"")) else {
            throw failure("this string has no closing quote", at: start)
        }
        guard let decoded = Base64.decode(text(content..<end)) else {
            throw failure("what stands between the quotes is not base64", at: start)
        }
        position = end + 1
        return .literal(String(validating: decoded, as: UTF8.self).map { .string($0) } ?? .bytes(decoded))
    }

    /// Reads `L1:2`.
    private mutating func rowKey() -> TokenKind? {
        var scan = position + 1
        guard let table = signedDigits(&scan), byte(scan) == UInt8(ascii: ":") else { return nil }
        scan += 1
        guard let row = signedDigits(&scan), let first = Int64(text(table)), let second = Int64(text(row)) else { return nil }
        position = scan
        return .rowKey(table: first, row: second)
    }

    private func hasPrefix(_ prefix: String) -> Bool { bytes[position...].starts(with: prefix.utf8) }

    // MARK: Identifiers

    private mutating func uuid() -> TokenKind? {
        guard hasPrefix("uuid("), position + 42 <= bytes.count, bytes[position + 41] == UInt8(ascii: ")"),
            let uuid = UUIDBytes(text(position + 5..<position + 41))
        else { return nil }
        position += 42
        return .literal(.uuid(uuid))
    }

    private mutating func objectId() -> TokenKind? {
        guard hasPrefix("oid("), position + 29 <= bytes.count, bytes[position + 28] == UInt8(ascii: ")"),
            let id = ObjectIdentifierBytes(hex: text(position + 4..<position + 28))
        else { return nil }
        position += 29
        return .literal(.objectId(id))
    }

    // MARK: Timestamps

    private mutating func shortTimestamp() throws(SluiceError) -> TokenKind? {
        var scan = position + 1
        guard let seconds = signedDigits(&scan), byte(scan) == UInt8(ascii: ":") else { return nil }
        scan += 1
        guard let nanoseconds = signedDigits(&scan) else { return nil }
        guard let first = Int64(text(seconds)), let second = Int64(text(nanoseconds)) else {
            throw failure("this time is out of range", at: position)
        }
        guard first == 0 || second == 0 || (first < 0) == (second < 0) else {
            throw failure("seconds and nanoseconds of a time must have the same sign", at: position)
        }
        let time = try timestamp(seconds: first, nanoseconds: second)
        position = scan
        return .literal(.timestamp(time))
    }

    /// Reads `2026-11-21@10:30:00`, also with `T`. Nanoseconds may follow another colon.
    mutating func calendarTimestamp() throws(SluiceError) -> TokenKind? {
        var scan = position
        guard digits(&scan) != nil, byte(scan) == UInt8(ascii: "-") else { return nil }
        scan = position
        var parts: [Range<Int>] = []
        for separators in ["-", "-", "@T", ":", ":", ""] {
            guard let part = digits(&scan) else { return nil }
            parts.append(part)
            if separators.isEmpty { break }
            guard let byte = byte(scan), separators.utf8.contains(byte) else { return nil }
            scan += 1
        }
        if byte(scan) == UInt8(ascii: ":") {
            var after = scan + 1
            if let part = digits(&after) {
                parts.append(part)
                scan = after
            }
        }
        var numbers: [Int64] = []
        for part in parts {
            guard let number = Int64(text(part)) else { throw failure("this date is out of range", at: position) }
            numbers.append(number)
        }
        let time = try calendar(numbers)
        position = scan
        return .literal(.timestamp(time))
    }

    private func calendar(_ parts: [Int64]) throws(SluiceError) -> Timestamp {
        guard parts[0] >= 1900 else { throw failure("Conversion of dates before 1900 is not supported.", at: position) }
        guard parts[0] <= 999_999, (1...12).contains(parts[1]), (1...31).contains(parts[2]), parts[3] < 24, parts[4] < 60, parts[5] < 60
        else { throw failure("there is no such date", at: position) }
        // Days since 1970 in the proleptic Gregorian calendar, with years that begin in March.
        let year = parts[1] > 2 ? parts[0] : parts[0] - 1
        let month = (parts[1] + 9) % 12
        let dayOfYear = (153 * month + 2) / 5 + parts[2] - 1
        let days = year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
        let seconds = days * 86_400 + parts[3] * 3_600 + parts[4] * 60 + parts[5]
        let nanoseconds = parts.count > 6 ? parts[6] : 0
        return try timestamp(seconds: seconds, nanoseconds: seconds < 0 ? -nanoseconds : nanoseconds)
    }

    private func timestamp(seconds: Int64, nanoseconds: Int64) throws(SluiceError) -> Timestamp {
        let (sum, overflow) = seconds.addingReportingOverflow(nanoseconds / 1_000_000_000)
        if overflow { throw failure("this time is out of range", at: position) }
        return Timestamp(seconds: sum, nanoseconds: Int32(nanoseconds % 1_000_000_000))
    }

    // MARK: Numbers

    private func byte(_ offset: Int) -> UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private func digits(_ scan: inout Int) -> Range<Int>? {
        let start = scan
        while scan < bytes.count, Lexer.isDigit(bytes[scan]) { scan += 1 }
        return scan > start ? start..<scan : nil
    }

    private func signedDigits(_ scan: inout Int) -> Range<Int>? {
        let start = scan
        if byte(scan) == UInt8(ascii: "-") || byte(scan) == UInt8(ascii: "+") { scan += 1 }
        return digits(&scan).map { start..<$0.upperBound }
    }

    /// Reads `-inf`, `+infinity` or `-nan`.
    mutating func signedWord(_ byte: UInt8) -> TokenKind? {
        guard byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+") else { return nil }
        var end = position + 1
        while let byte = self.byte(end), Lexer.isLetter(byte) { end += 1 }
        let literal: Literal
        guard (3...8).contains(end - position - 1) else { return nil }
        switch text(position + 1..<end).lowercasedASCII {
        case "inf", "infinity": literal = .infinity(negative: byte == UInt8(ascii: "-"))
        case "nan": literal = .nan
        default: return nil
        }
        position = end
        return .literal(literal)
    }

    mutating func number() throws(SluiceError) -> TokenKind? {
        if let hexadecimal = try hexadecimal() { return hexadecimal }
        if let small = smallNatural() { return small }
        var scan = position
        let isSigned = byte(scan) == UInt8(ascii: "-") || byte(scan) == UInt8(ascii: "+")
        let isPositive = byte(scan) == UInt8(ascii: "+")
        if isSigned { scan += 1 }
        let whole = digits(&scan)
        let hasFraction = fraction(&scan, after: whole)
        guard whole != nil || hasFraction else { return nil }
        let hasExponent = exponent(&scan)
        let digits = text((isPositive ? position + 1 : position)..<scan)
        defer { position = scan }
        let isFloat = byte(scan) == UInt8(ascii: "f")
        // An integer beyond 64 bits is a real, which a decimal property reads in full.
        guard hasFraction || hasExponent || isFloat else {
            guard let value = Int64(digits) else { return .literal(.real(digits)) }
            return isSigned ? .literal(.int(value)) : .natural(value)
        }
        if isFloat {
            scan += 1
            return .literal(.float(digits))
        }
        return .literal(.real(digits))
    }

    /// Reads the most frequent numbers: up to 18 digits and nothing else.
    private mutating func smallNatural() -> TokenKind? {
        var scan = position
        var value: Int64 = 0
        while scan < bytes.count, Lexer.isDigit(bytes[scan]) {
            guard scan - position < 18 else { return nil }
            value = value * 10 + Int64(bytes[scan] - 48)
            scan += 1
        }
        guard scan > position else { return nil }
        if let byte = byte(scan), byte == UInt8(ascii: ".") || byte | 32 == UInt8(ascii: "e") || byte == UInt8(ascii: "f") { return nil }
        position = scan
        return .natural(value)
    }

    private func fraction(_ scan: inout Int, after whole: Range<Int>?) -> Bool {
        guard byte(scan) == UInt8(ascii: ".") else { return false }
        var after = scan + 1
        guard digits(&after) != nil || whole != nil else { return false }
        scan = after
        return true
    }

    private func exponent(_ scan: inout Int) -> Bool {
        guard let letter = byte(scan), letter | 32 == UInt8(ascii: "e") else { return false }
        var after = scan + 1
        guard signedDigits(&after) != nil else { return false }
        scan = after
        return true
    }

    private mutating func hexadecimal() throws(SluiceError) -> TokenKind? {
        guard byte(position) == UInt8(ascii: "0"), let letter = byte(position + 1), letter | 32 == UInt8(ascii: "x") else { return nil }
        var end = position + 2
        while let byte = byte(end), Lexer.isHexDigit(byte) { end += 1 }
        guard end > position + 2 else { return nil }
        guard let value = UInt64(text(position + 2..<end), radix: 16) else {
            throw failure("this number has more than 64 bits", at: position)
        }
        position = end
        return .literal(.int(Int64(bitPattern: value)))
    }
}
