import SluiceCore
import SluiceQuery
import SluiceValues
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

    /// `SluiceValuesTests` has the arithmetic itself.
    @Test(arguments: [
        ("0.1", "+", "0.2", "0.3"), ("5", "-", "7.25", "-2.25"), ("-3", "*", "0.5", "-1.5"),
        ("1", "/", "3", "0.3333333333333333333333333333333333"),
        ("9999999999999999999999999999999999", "+", "1", "1e34"), ("1e6111", "*", "1e100", "inf"), ("inf", "-", "inf", "nan"),
    ])
    func `have each operator`(_ left: String, _ symbol: String, _ right: String, _ result: String) throws {
        let numbers = try [left, right, result].map { try #require(Decimal128(rounding: $0)) }
        #expect(try gives(numbers[0], symbol, numbers[1], numbers[2]))
    }
}
