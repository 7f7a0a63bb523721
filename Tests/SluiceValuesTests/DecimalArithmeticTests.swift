import SluiceValues
import TestSupport
import Testing

@Suite struct `Decimal arithmetic` {
    private static func number(_ text: String) throws -> Decimal128 { try #require(Decimal128(rounding: text), "\(text)") }

    @Test(arguments: [
        ("0.1", "0.2", "0.3", "-0.1", "0.02", "0.5"),
        ("1", "3", "4", "-2", "3", "0.3333333333333333333333333333333333"),
        ("2", "3", "5", "-1", "6", "0.6666666666666666666666666666666667"),
        ("1E+40", "1", "1.000000000000000000000000000000000E+40", "1.000000000000000000000000000000000E+40", "1E+40", "1E+40"),
        (
            "9999999999999999999999999999999999", "1", "1.000000000000000000000000000000000E+34", "9999999999999999999999999999999998",
            "9999999999999999999999999999999999", "9999999999999999999999999999999999"
        ),
        ("1.10", "2.00", "3.10", "-0.90", "2.2000", "0.55"),
        ("5", "0", "5", "5", "0", "Infinity"), ("-1", "0", "-1", "-1", "-0", "-Infinity"), ("0", "0", "0", "0", "0", "NaN"),
        ("10", "4", "14", "6", "40", "2.5"), ("-3", "0.5", "-2.5", "-3.5", "-1.5", "-6"),
        ("Infinity", "1", "Infinity", "Infinity", "Infinity", "Infinity"), ("5", "Infinity", "Infinity", "-Infinity", "Infinity", "0"),
        ("Infinity", "Infinity", "Infinity", "NaN", "Infinity", "NaN"), ("Infinity", "0", "Infinity", "Infinity", "NaN", "Infinity"),
        ("Infinity", "-Infinity", "NaN", "Infinity", "-Infinity", "NaN"),
        ("NaN", "1", "NaN", "NaN", "NaN", "NaN"), ("1", "NaN", "NaN", "NaN", "NaN", "NaN"),
        (
            "1E+6144", "9E+6144", "Infinity", "-8.000000000000000000000000000000000E+6144", "Infinity",
            "0.1111111111111111111111111111111111"
        ),
    ])
    func `has 34 digits, halves to even`(
        left: String, right: String, sum: String, difference: String, product: String, quotient: String
    ) throws {
        let (l, r, ratio) = (try Self.number(left), try Self.number(right), try Self.number(quotient))
        #expect((l + r).description == sum && (l - r).description == difference)
        #expect((l * r).description == product && Decimal128.compare(l / r, ratio) == 0, "\(l * r) \(l / r)")
    }

    @Test func `is decided by what is rounded away only at halves`() throws {
        let one = try Self.number("1000000000000000000000000000000001")
        #expect(try (one + Self.number("0.5")).description == "1000000000000000000000000000000002")
        #expect(try (one + Self.number("0.49999")).description == "1000000000000000000000000000000001")
        #expect(try (one - Self.number("1E-6000")).description == "1000000000000000000000000000000001")
        #expect(try (Self.number("1E+33") - Self.number("0.5")).description == "999999999999999999999999999999999.5")
        #expect(try (Self.number("1E+34") - Self.number("0.1")).description == "1.000000000000000000000000000000000E+34")
    }

    @Test func `ends where the exponents end`() throws {
        #expect(try (Self.number("1E+6111") * Self.number("1E+100")).description == "Infinity")
        #expect(try (Self.number("1E+6000") / Self.number("1E-200")).description == "Infinity")
        #expect(try Decimal128.compare(Self.number("1E-6176") * Self.number("0.1"), .zero) == 0)
        #expect(try (Self.number("0") + Self.number("1E-100")).description == "1E-100")
    }

    /// A whole number below 10³⁸ rounded to 34 digits, halves to even, with its exponent: the oracle.
    private static func rounded(_ number: UInt128) -> (digits: UInt128, exponent: Int) {
        var (digits, exponent, unit) = (number, 0, 1 as UInt128)
        while number / unit >= 10_000_000_000_000_000_000_000_000_000_000_000 { (unit, exponent) = (unit * 10, exponent + 1) }
        digits = number / unit
        let rest = number % unit
        if rest * 2 > unit || rest * 2 == unit && !digits.isMultiple(of: 2) { digits += 1 }
        return (digits, exponent)
    }

    @Test(arguments: seeds(10)) func `of whole numbers is that of integers, rounded`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            // Of every magnitude, so that the product has up to 38 digits.
            let (l, r) = (random.next() >> (1 + random.below(60)), random.next() >> (1 + random.below(60)))
            let (a, b) = (Decimal128(Int64(l)), Decimal128(Int64(r)))
            let (sum, product) = (UInt128(l) + UInt128(r), Self.rounded(UInt128(l) * UInt128(r)))
            #expect(Decimal128.compare(a + b, try Self.number("\(sum)")) == 0, "seed \(seed): \(l) + \(r)")
            #expect(Decimal128.compare(a - b, try Self.number("\(Int64(l) - Int64(r))")) == 0, "seed \(seed): \(l) - \(r)")
            let wanted = try Self.number("\(product.digits)E\(product.exponent)")
            #expect(Decimal128.compare(a * b, wanted) == 0, "seed \(seed): \(l) * \(r)")
            // An exact quotient is found again.
            if r != 0, product.exponent == 0 { #expect(Decimal128.compare(a * b / b, a) == 0, "seed \(seed): \(l) * \(r) / \(r)") }
        }
    }

    @Test(arguments: seeds(10)) func `of any numbers is the same in either order, and never traps`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let a = Decimal128(high: random.next(), low: random.next())
            // Near the other one in half of the cases, where digits meet.
            let b = Decimal128(high: random.chance(50) ? a.high ^ (random.next() >> 40) : random.next(), low: random.next())
            #expect((a + b).description == (b + a).description && (a * b).description == (b * a).description, "seed \(seed): \(a) \(b)")
            #expect(a.isNaN || a.isInfinite || Decimal128.compare(a - a, .zero) == 0, "seed \(seed): \(a)")
            let quotient = a / b
            let isUndefined = a.isNaN || b.isNaN || a.isInfinite && b.isInfinite || a.isZero && b.isZero
            #expect(quotient.isNaN == isUndefined, "seed \(seed): \(a) / \(b) is \(quotient)")
        }
    }
}
