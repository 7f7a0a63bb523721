import Foundation
import SluiceSDK
import TestSupport
import Testing

@Suite struct NumberAndIdTests {
    @Test func `decimals are read from numbers and texts`() throws {
        #expect(Decimal128(value: 5) == 5 && Decimal128(value: 1.5) == 1.5 && Decimal128(value: "-2.25") == -2.25)
        #expect(Decimal128(value: Float(0.1)) == 0.1 && Decimal128(value: UInt64.max).stringValue == "18446744073709551615")
        #expect(Decimal128(number: 7) == 7 && Decimal128(value: Decimal(string: "3.5")!) == 3.5 && Decimal128(exactly: 12) == 12)
        #expect(throws: Realm.Error.self) { try Decimal128(string: "many") }
        #expect(try Decimal128(string: "1E+3") == 1000)
        #expect(Decimal128().stringValue == "0" && Decimal128(1.5).decimalValue == Decimal(1.5))
    }

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
        ("5", "0", "5", "5", "0", "Infinity"),
        ("Infinity", "1", "Infinity", "Infinity", "Infinity", "Infinity"),
        ("NaN", "1", "NaN", "NaN", "NaN", "NaN"),
        (
            "1E+6144", "9E+6144", "Infinity", "-8.000000000000000000000000000000000E+6144", "Infinity",
            "0.1111111111111111111111111111111111"
        ),
    ])
    func `arithmetic has 34 digits, halves to even`(
        left: String, right: String, sum: String, difference: String, product: String, quotient: String
    ) throws {
        let (l, r) = (try Decimal128(string: left), try Decimal128(string: right))
        #expect((l + r).stringValue == sum)
        #expect((l - r).stringValue == difference)
        #expect((l * r).stringValue == product)
        #expect((l / r).stringValue == quotient)
    }

    @Test func `what is rounded away decides only about halves`() throws {
        let one = try Decimal128(string: "1000000000000000000000000000000001")
        #expect((one + 0.5).stringValue == "1000000000000000000000000000000002")
        #expect((one + (try Decimal128(string: "0.49999"))).stringValue == "1000000000000000000000000000000001")
        #expect((one - (try Decimal128(string: "1E-6000"))).stringValue == "1000000000000000000000000000000001")
        #expect(Decimal128(1) - 1 == 0 && (Decimal128(1) - 1).stringValue == "0" && -Decimal128(2) == -2)
    }

    /// The oracle: integers.
    @Test(arguments: [UInt64(1), 2]) func `random integers add, subtract and multiply like integers`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let a = Int64.random(in: -1_000_000_000...1_000_000_000, using: &random)
            let b = Int64.random(in: -1_000_000_000...1_000_000_000, using: &random)
            let (l, r) = (Decimal128(Int(a)), Decimal128(Int(b)))
            #expect((l + r).stringValue == "\(a + b)" && (l - r).stringValue == "\(a - b)", "seed \(seed): \(a) and \(b)")
            #expect(l * r == Decimal128(Int(a * b)), "seed \(seed): \(a) and \(b)")
            if b != 0 { #expect(l * r / r == l, "seed \(seed): \(a) and \(b)") }
        }
    }

    @Test func `decimals have an order and ends`() {
        #expect(Decimal128.min < 0 && Decimal128.max > 1e300 && Decimal128(-1.5).magnitude == 1.5)
        #expect(Decimal128("NaN").isNaN && !Decimal128(1).isNaN && Decimal128("NaN").isSignaling)
        #expect([3, 1, 2.5 as Decimal128].sorted() == [1, 2.5, 3])
        #expect(Decimal128(1).distance(to: 4) == 3 && Decimal128(1).advanced(by: 2) == 3)
        #expect(Decimal128("1.0") == Decimal128("1") && Set([Decimal128("1.0"), Decimal128("1")]).count == 1)
    }

    @Test func `object ids have a time, an order and a text`() throws {
        let id = try ObjectId(string: "5f5a3b2c0123456789ABCDEF")
        #expect(id.stringValue == "5f5a3b2c0123456789abcdef" && id.timestamp == Date(timeIntervalSince1970: 0x5f5a_3b2c))
        #expect(id == ObjectId("5f5a3b2c0123456789abcdef") && id < ObjectId("6f5a3b2c0123456789abcdef"))
        #expect(ObjectId.generate() != ObjectId.generate() && abs(ObjectId.generate().timestamp.timeIntervalSinceNow) < 5)
        #expect(throws: Realm.Error.self) { try ObjectId(string: "short") }
        let now = Date(timeIntervalSince1970: 1_000_000)
        #expect(ObjectId(timestamp: now, machineId: 1, processId: 2).timestamp == now)
        let ends = [-Double.infinity, -1, .infinity].map { ObjectId(timestamp: Date(timeIntervalSince1970: $0)).timestamp }
        #expect(ends == [0, 0, Double(UInt32.max)].map { Date(timeIntervalSince1970: $0) })
        #expect(try JSONDecoder().decode([ObjectId].self, from: JSONEncoder().encode([id])) == [id])
    }
}
