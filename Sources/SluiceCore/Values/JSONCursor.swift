/// A position in a JSON text that is read without building a tree. For text outside the plain subset the methods return nil or `false`. The
/// caller then uses `JSON.parse`, which accepts all JSON and reports errors.
struct JSONCursor {
    enum Number {
        case int(Int64)
        case double(Double)

        var double: Double {
            switch self {
            case .int(let value): Double(value)
            case .double(let value): value
            }
        }
    }

    private let bytes: UnsafeBufferPointer<UInt8>
    private(set) var position = 0

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    /// The byte at the position, or 0 at the end. No JSON text has a 0 outside its strings.
    @inline(__always)
    var current: UInt8 { position < bytes.count ? bytes[position] : 0 }

    @inline(__always)
    mutating func skipSpace() {
        while true {
            switch current {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"): position += 1
            default: return
            }
        }
    }

    @inline(__always)
    mutating func take(_ byte: UInt8) -> Bool {
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    mutating func take(word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard current == word.utf8Start.pointee, bytes.count - position >= count else { return false }
        for index in 1..<count where bytes[position + index] != word.utf8Start[index] { return false }
        position += count
        return true
    }

    // MARK: Strings

    /// Reads a string without escapes and returns its content, which may be malformed UTF-8.
    mutating func plainString() -> UnsafeBufferPointer<UInt8>? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        let start = position
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "\"") {
                position += 1
                return UnsafeBufferPointer(rebasing: bytes[start..<position - 1])
            }
            if byte == UInt8(ascii: "\\") || byte < 0x20 { return nil }
            position += 1
        }
        return nil
    }

    /// Reads a string into the buffer's arena and returns its cell. On nil the caller removes appended bytes.
    mutating func string(into buffer: inout RowBuffer) -> Cell? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        let first = buffer.arena.count
        var start = position
        var high: UInt8 = 0
        while position < bytes.count {
            let byte = bytes[position]
            high |= byte
            if byte == UInt8(ascii: "\"") {
                buffer.arena.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start..<position]))
                position += 1
                // Validating UTF-8 costs a pass, so pure ASCII skips it.
                guard high < 0x80 || Self.isText(buffer.arena[first...]) else { return nil }
                return Cell(tag: .string, length: UInt32(buffer.arena.count - first), bits: UInt64(first))
            }
            if byte < 0x20 { return nil }
            if byte == UInt8(ascii: "\\") {
                buffer.arena.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start..<position]))
                guard let scalar = escape() else { return nil }
                buffer.arena.append(contentsOf: scalar.utf8)
                start = position
            } else {
                position += 1
            }
        }
        return nil
    }

    private static func isText(_ content: ArraySlice<UInt8>) -> Bool { String(validating: content, as: UTF8.self) != nil }

    /// Reads an escape at the position, including a surrogate pair.
    private mutating func escape() -> Unicode.Scalar? {
        position += 1
        let byte = current
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            guard let high = unit() else { return nil }
            if let scalar = Unicode.Scalar(high) { return scalar }
            guard high < 0xDC00, take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")), let low = unit(), (0xDC00...0xDFFF).contains(low) else {
                return nil
            }
            return Unicode.Scalar(0x10000 + (UInt32(high) - 0xD800) << 10 + (UInt32(low) - 0xDC00))
        default: return nil
        }
    }

    /// Reads four hexadecimal digits.
    private mutating func unit() -> UInt16? {
        var value: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = Character(Unicode.Scalar(current)).hexDigitValue else { return nil }
            value = value << 4 | UInt16(digit)
            position += 1
        }
        return value
    }

    // MARK: Scalars

    /// Reads a string, or an object whose only member is a string under this key.
    mutating func bytes(orMemberOf key: StaticString) -> UnsafeBufferPointer<UInt8>? {
        guard take(UInt8(ascii: "{")) else { return plainString() }
        skipSpace()
        guard let name = plainString(), name.elementsEqual(UnsafeBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount)) else {
            return nil
        }
        skipSpace()
        guard take(UInt8(ascii: ":")) else { return nil }
        skipSpace()
        guard let content = plainString() else { return nil }
        skipSpace()
        return take(UInt8(ascii: "}")) ? content : nil
    }

    private static let powers: [Double] = (0...22).map { exponent in (0..<exponent).reduce(1) { power, _ in power * 10 } }

    /// Reads a number as `JSON.parse` does, or returns nil. It also returns nil for `-0`.
    mutating func number() -> Number? {
        let start = position
        let isNegative = take(UInt8(ascii: "-"))
        var digits = 0
        var mantissa: UInt64 = 0
        if take(UInt8(ascii: "0")) {
            digits = 1
        } else {
            guard takeDigits(&mantissa, &digits) else { return nil }
        }
        var scale = 0
        var isPlain = true
        if take(UInt8(ascii: ".")) {
            guard takeDigits(&mantissa, &scale) else { return nil }
            digits += scale
        } else if current != UInt8(ascii: "e"), current != UInt8(ascii: "E") {
            return integer(mantissa, digits, isNegative, start)
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isPlain = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            var (ignored, count): (UInt64, Int) = (0, 0)
            guard takeDigits(&ignored, &count) else { return nil }
        }
        // A mantissa below 2^53 and a power of ten up to 10^22 are exact, so one division rounds correctly.
        if isPlain, digits <= 19, mantissa < 1 << 53, scale <= 22 {
            let value = Double(mantissa) / Self.powers[scale]
            return .double(isNegative ? -value : value)
        }
        return exactly(from: start)
    }

    private func integer(_ mantissa: UInt64, _ digits: Int, _ isNegative: Bool, _ start: Int) -> Number? {
        if mantissa == 0, isNegative { return nil }
        // Eighteen digits fit into 64 bits.
        if digits <= 18 { return .int(isNegative ? -Int64(mantissa) : Int64(mantissa)) }
        return Int64(text(from: start)).map { .int($0) } ?? exactly(from: start)
    }

    private func exactly(from start: Int) -> Number? {
        guard let value = Double(text(from: start)), value.isFinite else { return nil }
        return .double(value)
    }

    private func text(from start: Int) -> String { String(decoding: bytes[start..<position], as: UTF8.self) }

    /// Reads at least one digit. Beyond nineteen digits the value overflows and is unusable; the count remains exact.
    @inline(__always)
    private mutating func takeDigits(_ value: inout UInt64, _ count: inout Int) -> Bool {
        let start = position
        while position < bytes.count {
            let digit = bytes[position] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            value = value &* 10 &+ UInt64(digit)
            position += 1
        }
        count += position - start
        return position > start
    }

    // MARK: Trees

    /// Returns the bytes up to the end of a value, which may not be JSON. Returns nil at a nesting depth of `Limits.nestingDepth`.
    mutating func extent() -> UnsafeBufferPointer<UInt8>? {
        let start = position
        var depth = 0
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                guard skipString() else { return nil }
                if depth == 0 { return UnsafeBufferPointer(rebasing: bytes[start..<position]) }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                if depth >= Limits.nestingDepth { return nil }
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth <= 1 {
                    // The terminator belongs to a scalar's container, so a scalar ends before it.
                    if depth == 1 { position += 1 }
                    return UnsafeBufferPointer(rebasing: bytes[start..<position])
                }
                depth -= 1
            case UInt8(ascii: ","), UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"):
                if depth == 0 { return UnsafeBufferPointer(rebasing: bytes[start..<position]) }
            default: break
            }
            position += 1
        }
        return nil
    }

    private mutating func skipString() -> Bool {
        position += 1
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                return true
            case UInt8(ascii: "\\"): position += 2
            default: position += 1
            }
        }
        return false
    }
}
