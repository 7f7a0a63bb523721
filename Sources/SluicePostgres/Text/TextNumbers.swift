#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Decoders of PostgreSQL's text forms of numbers.
enum TextNumbers {
    /// Decodes a decimal integer; nil for other text and beyond 64 bits.
    @inline(__always)
    static func integer(_ bytes: UnsafeBufferPointer<UInt8>) -> Int64? {
        var index = 0
        var isNegative = false
        if bytes.count > 0, unsafe bytes[0] == UInt8(ascii: "-") {
            isNegative = true
            index = 1
        }
        guard index < bytes.count, bytes.count - index <= 19 else { return nil }
        var value: UInt64 = 0
        while index < bytes.count {
            let digit = unsafe bytes[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            // At most 19 digits do not overflow 64 unsigned bits.
            value = value &* 10 &+ UInt64(digit)
            index += 1
        }
        if isNegative { return value <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- value) : nil }
        return Int64(exactly: value)
    }

    @inline(__always)
    static func double(_ bytes: UnsafeBufferPointer<UInt8>) -> Double? {
        // A mantissa below 2^53 and a power of ten up to 10^22 are exact, so one division rounds correctly.
        if let (mantissa, scale, isNegative) = unsafe short(bytes), mantissa < 1 << 53, scale <= 22 {
            let value = unsafe Double(mantissa) / powers[scale]
            return isNegative ? -value : value
        }
        return unsafe slow(bytes, strtod)
    }

    @inline(__always)
    static func float(_ bytes: UnsafeBufferPointer<UInt8>) -> Float? {
        // As for doubles: a mantissa below 2^24 and a power of ten up to 10^10 are exact.
        if let (mantissa, scale, isNegative) = unsafe short(bytes), mantissa < 1 << 24, scale <= 10 {
            let value = unsafe Float(mantissa) / Float(powers[scale])
            return isNegative ? -value : value
        }
        return unsafe slow(bytes, strtof)
    }

    private nonisolated(unsafe) static let powers: UnsafeMutablePointer<Double> = {  // Safe because: filled here once, then only read.
        let table = UnsafeMutablePointer<Double>.allocate(capacity: 23)
        var power = 1.0
        for exponent in 0...22 {
            unsafe (table + exponent).initialize(to: power)
            power *= 10
        }
        return unsafe table
    }()

    /// Reads digits with at most one point and no exponent.
    ///
    /// - Returns: The digits as an integer, the number of digits after the point, and `true` for a minus sign.
    @inline(__always)
    private static func short(_ bytes: UnsafeBufferPointer<UInt8>) -> (UInt64, Int, Bool)? {
        var index = 0
        let isNegative = unsafe bytes.count > 0 && bytes[0] == UInt8(ascii: "-")
        if isNegative { index = 1 }
        guard index < bytes.count, bytes.count - index <= 19 else { return nil }
        var mantissa: UInt64 = 0
        var point = -1
        while index < bytes.count {
            let byte = unsafe bytes[index]
            let digit = byte &- UInt8(ascii: "0")
            if digit <= 9 {
                mantissa = mantissa &* 10 &+ UInt64(digit)
            } else if byte == UInt8(ascii: "."), point < 0 {
                point = index
            } else {
                return nil
            }
            index += 1
        }
        let digits = bytes.count - (isNegative ? 1 : 0) - (point < 0 ? 0 : 1)
        guard digits > 0 else { return nil }
        return (mantissa, point < 0 ? 0 : bytes.count - 1 - point, isNegative)
    }

    /// Converts by the C library: exponents, many digits, `NaN` and `Infinity`. The process never leaves the C locale.
    private static func slow<T>(
        _ bytes: UnsafeBufferPointer<UInt8>,
        _ convert: (UnsafePointer<CChar>, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> T
    ) -> T? {
        guard bytes.count > 0, bytes.count < 400, unsafe bytes[0] > UInt8(ascii: " ") else { return nil }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { copy in
            for index in 0..<bytes.count { unsafe copy[index] = CChar(bitPattern: bytes[index]) }
            unsafe copy[bytes.count] = 0
            guard let start = copy.baseAddress else { return nil }
            var end: UnsafeMutablePointer<CChar>?
            let value = unsafe convert(start, &end)
            return unsafe end == start + bytes.count ? value : nil
        }
    }
}
