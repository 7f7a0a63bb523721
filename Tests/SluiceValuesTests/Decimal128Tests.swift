import SluiceValues
import TestSupport
import Testing

@Suite struct Decimal128Tests {
    @Test(arguments: [
        ("0", "0"), ("-0", "-0"), ("1", "1"), ("-1.5", "-1.5"), ("0.001234", "0.001234"), ("123.4567e-2", "1.234567"),
        ("1E+3", "1E+3"), ("12345678901234567", "12345678901234567"), (".5", "0.5"), ("5.", "5"), ("1e-7", "1E-7"),
        ("0.000001", "0.000001"), ("0.0000001", "1E-7"), ("100", "100"), ("1.00", "1.00"), ("+7", "7"), ("12e2", "1.2E+3"),
        ("9999999999999999999999999999999999", "9999999999999999999999999999999999"),
        ("9.999999999999999999999999999999999E+6144", "9.999999999999999999999999999999999E+6144"),
        ("1E-6176", "1E-6176"), ("1E+6144", "1.000000000000000000000000000000000E+6144"), ("0E+9000", "0E+6111"),
        ("nan", "NaN"), ("inf", "Infinity"), ("-Infinity", "-Infinity"),
        ("10000000000000000000000000000000000", "1.000000000000000000000000000000000E+34"),
    ])
    func `reads and prints in the canonical form`(text: String, canonical: String) throws {
        #expect(try #require(Decimal128(text)).description == canonical)
    }

    @Test(arguments: ["", "-", ".", "e5", "1e", "1.2.3", "0x10", " 1", "1 ", "--1", "1e+", "nano"])
    func `refuses what is not a number`(text: String) { #expect(Decimal128(text) == nil) }

    @Test(
        arguments: [
            ("1E-9223372036854775808", nil), ("1E9223372036854775807", nil), ("1E+9223372036854775808", nil), ("1E-1000000", nil),
            ("1E+1000000", nil), ("1E-999999", .zero), ("-1E+999999", .negativeInfinity), ("0E-999999", .zero),
        ] as [(String, Decimal128?)])
    func `an exponent of any size is rounded or refused`(text: String, rounded: Decimal128?) throws {
        #expect(Decimal128(rounding: text).map { Decimal128.compare($0, rounded ?? .nan) } == rounded.map { _ in 0 })
        #expect((Decimal128(text) != nil) == text.hasPrefix("0"))
    }

    @Test func `knows the published encodings`() throws {
        // IEEE 754-2008 decimal128, binary integer encoding, as BSON stores it.
        #expect(try #require(Decimal128("0")) == Decimal128(high: 0x3040_0000_0000_0000, low: 0))
        #expect(try #require(Decimal128("1")) == Decimal128(high: 0x3040_0000_0000_0000, low: 1))
        #expect(try #require(Decimal128("-1")) == Decimal128(high: 0xB040_0000_0000_0000, low: 1))
        #expect(try #require(Decimal128("0.1")) == Decimal128(high: 0x303E_0000_0000_0000, low: 1))
        #expect(
            try #require(Decimal128("9.999999999999999999999999999999999E+6144"))
                == Decimal128(high: 0x5FFF_ED09_BEAD_87C0, low: 0x378D_8E63_FFFF_FFFF))
    }

    @Test func `tells rounding from exactness`() {
        let long = "12345678901234567890123456789012345"
        #expect(Decimal128(long) == nil)
        #expect(Decimal128(rounding: long)?.description == "1.234567890123456789012345678901234E+34")
        #expect(Decimal128(rounding: "12345678901234567890123456789012355")?.description == "1.234567890123456789012345678901236E+34")
        #expect(Decimal128(rounding: "99999999999999999999999999999999995")?.description == "1.000000000000000000000000000000000E+35")
        #expect(Decimal128("1E+7000") == nil && Decimal128(rounding: "1E+7000") == .infinity)
        #expect(Decimal128("1E-7000") == nil && Decimal128(rounding: "-1E-7000")?.description == "-0E-6176")
        #expect(Decimal128(rounding: "6E-6177")?.description == "1E-6176")
    }

    @Test func `compares numbers whatever their exponents`() throws {
        let ascending = [
            "NaN", "-Infinity", "-1E+6000", "-2", "-1.5", "-1E-6000", "0", "1E-6176", "0.1", "1", "1.5", "1E+6144", "Infinity",
        ]
        for (i, left) in ascending.enumerated() {
            for (j, right) in ascending.enumerated() {
                let order = Decimal128.compare(try #require(Decimal128(left)), try #require(Decimal128(right)))
                #expect(order == (i < j ? -1 : i > j ? 1 : 0), "\(left) and \(right)")
            }
        }
        #expect(Decimal128.compare(try #require(Decimal128("1.00")), Decimal128(Int64(1))) == 0)
        #expect(Decimal128.compare(try #require(Decimal128("-0")), .zero) == 0)
        let big = try #require(Decimal128("1000000000000000000000000000000000"))
        #expect(Decimal128.compare(try #require(Decimal128("1E+33")), big) == 0)
    }

    @Test(arguments: seeds(10)) func `agrees with doubles and integers`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let double = Double(bitPattern: generator.next())
            if !double.isNaN { #expect(Decimal128(double: double).double == double, "seed \(seed)") }
            let (left, right) = (Int64.random(in: .min ... .max, using: &generator), Int64.random(in: -100...100, using: &generator))
            #expect(Decimal128(left).description == String(left), "seed \(seed)")
            #expect(Decimal128.compare(Decimal128(left), Decimal128(right)) == (left - right).signum(), "seed \(seed)")
        }
    }

    @Test(arguments: seeds(10)) func `its text reads back to the same encoding`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let decimal = Decimal128(high: generator.next(), low: generator.next())
            let again = try #require(Decimal128(decimal.description))
            #expect(again.description == decimal.description, "seed \(seed)")
            #expect(Decimal128.compare(again, decimal) == 0, "seed \(seed)")
        }
    }
}
