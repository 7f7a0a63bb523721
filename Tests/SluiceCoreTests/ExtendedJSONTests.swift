import SluiceCore
import SluiceValues
import TestSupport
import Testing

@Suite struct ExtendedJSONTests {
    let store = ObjectType(
        name: "Store", properties: [Property(id: 1, name: "_id", type: .uuid), Property(id: 2, name: "name", type: .string)])
    let address = ObjectType(
        name: "Address", kind: .embedded, properties: [Property(id: 1, name: "street", type: .string)], primaryKey: nil)
    let item = ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "_id", type: .objectId),
            Property(id: 2, name: "quantity", type: .int),
            Property(id: 3, name: "price", type: .double, isOptional: true),
            Property(id: 4, name: "tags", type: .string, collection: .set),
            Property(id: 5, name: "store", type: .link(to: "Store"), isOptional: true),
            Property(id: 6, name: "address", type: .embedded("Address"), isOptional: true),
            Property(id: 7, name: "extra", type: .mixed),
        ])
    var schema: Schema { Schema([store, address, item]) }

    static let id = "65a1b2c3d4e5f60718293a4b"
    static let uuid = "0b0e36f4-1a5d-4b7c-9f60-3c2f1f0a9b8e"

    @Test func `prints every type in the relaxed form`() throws {
        let oid = try #require(ObjectIdentifierBytes(hex: Self.id))
        let uuid = try #require(UUIDBytes(Self.uuid))
        let cases: [(Value, String)] = [
            (.null, "null"), (.bool(true), "true"), (.int(-5), "-5"), (.double(0.5), "0.5"), (.float(0.1), "0.1"),
            (.double(.nan), #"{"$numberDouble":"NaN"}"#), (.double(-.infinity), #"{"$numberDouble":"-Infinity"}"#),
            (.decimal(Decimal128(125)), #"{"$numberDecimal":"125"}"#), (.string("x"), #""x""#),
            (.binary([1, 2, 255]), #"{"$binary":{"base64":"AQL/","subType":"00"}}"#),
            (.timestamp(Timestamp(seconds: 0, nanoseconds: 1_000)), #"{"$date":"1970-01-01T00:00:00.000001Z"}"#),
            (.timestamp(Timestamp(seconds: 253_402_300_800)), #"{"$date":{"$numberLong":"253402300800000"}}"#),
            (.objectId(oid), #"{"$oid":"\#(Self.id)"}"#), (.uuid(uuid), #"{"$uuid":"\#(Self.uuid)"}"#),
            (.list([.int(1), .null]), "[1,null]"), (.dictionary(["b": .int(1), "a": .int(2)]), #"{"a":2,"b":1}"#),
            (.link(type: "Store", key: .int(7)), #"{"$ref":"Store","$id":7}"#),
        ]
        for (value, text) in cases { #expect(ExtendedJSON.json(value).text == text) }
    }

    @Test(arguments: seeds(20)) func `a mixed value reads back as it was`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<100 {
            let value = Value.random(using: &generator)
            if value.holdsFloatOrForeignDecimal { continue }
            #expect(ExtendedJSON.value(try JSON.parse(ExtendedJSON.json(value).utf8)) == value.withPlainNaN, "seed \(seed)")
        }
    }

    @Test func `a float reads back with its type`() throws {
        var generator = SplitMix64(seed: 7)
        let property = Property(id: 1, name: "f", type: .float)
        for _ in 0..<10_000 {
            let value = Float(bitPattern: UInt32(truncatingIfNeeded: generator.next()))
            if value.isNaN { continue }
            #expect(try ExtendedJSON.value(ExtendedJSON.json(.float(value)), property: property) == .float(value))
        }
    }

    static let plainForms: [(PropertyType, JSON, Value)] = [
        (.double, .int(3), .double(3)),
        (.int, .double(3), .int(3)),
        (.int, ["$numberLong": "9007199254740993"], .int(9_007_199_254_740_993)),
        (.decimal, "12.50", .decimal(Decimal128("12.50") ?? .nan)),
        (.timestamp, .int(1_500), .timestamp(Timestamp(seconds: 1, nanoseconds: 500_000_000))),
        (.timestamp, ["$date": ["$numberLong": "-1"]], .timestamp(Timestamp(seconds: 0, nanoseconds: -1_000_000))),
        (.timestamp, "2026-01-01T00:00:00+01:00", .timestamp(Timestamp(seconds: 1_767_222_000))),
        (.binary, "AQI=", .binary([1, 2])),
        (.binary, ["$binary": "AQI=", "$type": "00"], .binary([1, 2])),
        (.bool, true, .bool(true)),
    ]

    @Test(arguments: plainForms)
    func `takes plain forms where the type is known`(type: PropertyType, json: JSON, value: Value) throws {
        #expect(try ExtendedJSON.value(json, property: Property(id: 1, name: "p", type: type)) == value)
    }

    @Test(arguments: [
        (PropertyType.int, JSON.double(1.5), "p: expected int, found 1.5."),
        (.int, "1", #"p: expected int, found "1"."#),
        (.int, .null, "p: expected int, found null."),
        (.bool, 1, "p: expected bool, found 1."),
        (.objectId, "xyz", #"p: expected objectId, found "xyz"."#),
        (.float, .double(1e300), "p: expected float, found 1e+300."),
        (.timestamp, "yesterday", #"p: expected date, found "yesterday"."#),
    ])
    func `refuses a value of another type and names it`(type: PropertyType, json: JSON, message: String) {
        #expect(throws: SluiceError(.wrongValueType, message)) {
            try ExtendedJSON.value(json, property: Property(id: 1, name: "p", type: type))
        }
    }

    @Test func `reads an object by its type`() throws {
        let json = try JSON.parse(
            #"{"_id":"\#(Self.id)","quantity":3,"tags":["b","a","b"],"store":"\#(Self.uuid)","address":{"street":"Main"},"extra":{"$oid":"\#(Self.id)"}}"#
        )
        let values = try ExtendedJSON.values(json, type: item, schema: schema)
        let oid = try #require(ObjectIdentifierBytes(hex: Self.id))
        #expect(
            values == [
                "_id": .objectId(oid), "quantity": .int(3), "tags": .list([.string("a"), .string("b")]),
                "store": .uuid(try #require(UUIDBytes(Self.uuid))), "address": .dictionary(["street": .string("Main")]),
                "extra": .objectId(oid),
            ])
        let row = try ExtendedJSON.row(json, type: item, schema: schema)
        #expect(row[1] == .int(3) && row[2] == nil)
    }

    @Test func `suggests the name of an unknown member`() {
        #expect(throws: SluiceError(.unknownProperty, "Item has no property 'quantty'. Did you mean 'quantity'?")) {
            try ExtendedJSON.values(["_id": .string(Self.id), "quantty": 3], type: item)
        }
    }

    @Test func `misses a required property`() {
        #expect(throws: SluiceError(.wrongValueType, "Item.quantity is required and missing; expected int.")) {
            try ExtendedJSON.values(["_id": .string(Self.id)], type: item)
        }
    }

    @Test func `names the class of a wrong embedded value`() {
        #expect(throws: SluiceError(.wrongValueType, "Address.street: expected string, found 5.")) {
            try ExtendedJSON.value(["street": 5], property: item.properties[5], schema: schema)
        }
    }
}

@Suite struct `A value as Extended JSON` {
    @Test(arguments: ["1E-9223372036854775808", "1E+1000000", "-1E+999999", "0E-999999", "1.5"])
    func `is read with an exponent of any size, or refused`(text: String) {
        let cost = Property(id: 1, name: "cost", type: .decimal)
        for json: JSON in [.string(text), ["$numberDecimal": .string(text)]] {
            #expect((try? ExtendedJSON.value(json, property: cost)) == Decimal128(text).map { .decimal($0) })
        }
    }

    /// ISO 8601 has four digits of the year. Times beyond have their milliseconds instead.
    @Test(arguments: [Int64.min, .min + 1, -1, 0, 1, .max - 1, .max], [Int32(0), 1, 999_999_999])
    func `is a text for a time of our years, and a number beyond`(seconds: Int64, fraction: Int32) {
        let time = Timestamp(seconds: seconds, nanoseconds: seconds < 0 ? -fraction : fraction)
        let json = ExtendedJSON.json(.timestamp(time))["$date"]
        let isFar = abs(Double(seconds)) > 1
        #expect(isFar ? json?["$numberLong"]?.string == "\(seconds < 0 ? Int64.min : .max)" : json?.string == time.iso8601)
    }
}

extension Value {
    /// Floats need their property's type, random decimal words need not be canonical.
    fileprivate var holdsFloatOrForeignDecimal: Bool {
        switch self {
        case .float, .decimal: true
        case .list(let elements): elements.contains(where: \.holdsFloatOrForeignDecimal)
        case .dictionary(let pairs): pairs.values.contains(where: \.holdsFloatOrForeignDecimal)
        default: false
        }
    }

    /// JSON has one NaN.
    fileprivate var withPlainNaN: Value {
        switch self {
        case .double(let value) where value.isNaN: .double(.nan)
        case .list(let elements): .list(elements.map(\.withPlainNaN))
        case .dictionary(let pairs): .dictionary(pairs.mapValues(\.withPlainNaN))
        default: self
        }
    }
}
