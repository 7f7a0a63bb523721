import SluiceCore
import SluiceQuery
import SluiceValues
import TestSupport
import Testing

/// Calculations in 34 decimal digits, as queries do them.
struct DecimalArithmeticTests {
    private static let type = ObjectType(
        name: "T", properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "price", type: .decimal, isOptional: true)])

    /// Whether `left op right` gives a number.
    private func gives(_ left: Decimal128, _ symbol: String, _ right: Decimal128, _ result: Decimal128) throws -> Bool {
        let query = try Query.parse("price \(symbol) $0 == $1")
            .bind(to: Self.type, in: Schema([Self.type]), arguments: [.value(.decimal(right)), .value(.decimal(result))])
        let row = Row([.int(1), .decimal(left)])
        return query.matches(row, key: .int(1), in: MemoryGraph(schema: query.schema, rows: []))
    }

    @Test(arguments: [
        ("0.1", "+", "0.2", "0.3"), ("1e40", "+", "1", "1e40"), ("1", "+", "-1", "0"),
        ("9999999999999999999999999999999999", "+", "1", "1e34"),
        ("1e34", "-", "0.1", "1e34"), ("1e33", "-", "0.5", "999999999999999999999999999999999.5"), ("5", "-", "7.25", "-2.25"),
        ("-0", "+", "0", "0"),
        ("1e6111", "*", "1e100", "inf"), ("-3", "*", "0.5", "-1.5"), ("1e-6176", "*", "0.1", "0"), ("inf", "*", "0", "nan"),
        ("inf", "-", "inf", "nan"),
        ("inf", "+", "1", "inf"), ("1", "-", "inf", "-inf"), ("1", "/", "3", "0.3333333333333333333333333333333333"),
        ("2", "/", "3", "0.6666666666666666666666666666666667"), ("1", "/", "0", "inf"), ("-1", "/", "0", "-inf"), ("0", "/", "0", "nan"),
        ("inf", "/", "inf", "nan"), ("5", "/", "inf", "0"), ("10", "/", "4", "2.5"), ("1e6000", "/", "1e-200", "inf"),
        ("nan", "+", "1", "nan"),
        ("0", "+", "1e-100", "1e-100"), ("1", "-", "1e-80", "1"),
        ("3333333333333333333333333333333333", "*", "3", "9999999999999999999999999999999999"),
    ])
    func `results are rounded to 34 digits, halves to even`(_ left: String, _ symbol: String, _ right: String, _ result: String) throws {
        let numbers = try [left, right, result].map { try #require(Decimal128(rounding: $0)) }
        #expect(try gives(numbers[0], symbol, numbers[1], numbers[2]))
    }

    @Test(arguments: seeds(3))
    func `whole numbers are added, subtracted and multiplied exactly, and divided back`(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<300 {
            let (l, r) = (Int64.random(in: -1_000_000_000...1_000_000_000, using: &random), Int64.random(in: -999...999, using: &random))
            let (a, b) = (Decimal128(l), Decimal128(r))
            #expect(try gives(a, "+", b, Decimal128(l + r)), "seed \(seed): \(l) + \(r)")
            #expect(try gives(a, "-", b, Decimal128(l - r)), "seed \(seed): \(l) - \(r)")
            #expect(try gives(a, "*", b, Decimal128(l * r)), "seed \(seed): \(l) * \(r)")
            if r != 0 { #expect(try gives(Decimal128(l * r), "/", b, a), "seed \(seed): \(l * r) / \(r)") }
        }
    }
}
