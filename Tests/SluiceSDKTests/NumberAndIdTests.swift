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

    /// `SluiceValuesTests` has the arithmetic itself.
    @Test func `decimals have the operators of numbers`() throws {
        let (l, r) = (try Decimal128(string: "1.10"), try Decimal128(string: "2.00"))
        #expect((l + r).stringValue == "3.10" && (l - r).stringValue == "-0.90")
        #expect((l * r).stringValue == "2.2000" && l / r == 0.55 && -l == -1.1)
        var sum = l
        sum += r
        #expect(sum == 3.1)
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
