import Foundation
import SluiceSDK
import Testing

/// What apps hand over as `Any`: numbers of every type, and what Foundation reads from JSON.
@Suite struct UntypedValueTests {
    private func json(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test(arguments: [false, true]) func `an object is made from JSON`(isManaged: Bool) throws {
        let value = try json(
            """
            {"_id": 1, "bool": true, "int": -5, "int8": 7, "int64": 1099511627776, "float": 0.5, "double": 3, "string": "x", "decimal": 2,
             "optionalBool": false, "optionalInt": 1, "optionalDouble": null, "optionalString": null, "colour": "green",
             "ints": [3, 0, 1], "strings": ["a"], "optionalStrings": ["b", null]}
            """)
        let realm = try Realm(configuration: try TemporaryFolder().local)
        let every = try isManaged ? realm.write { realm.create(Every.self, value: value) } : Every(value: value)
        #expect(every._id == 1 && every.bool && every.int == -5 && every.int8 == 7 && every.int64 == 1 << 40)
        #expect(every.float == 0.5 && every.double == 3 && every.string == "x" && every.decimal == 2 && every.colour == .green)
        #expect(every.optionalBool == false && every.optionalInt == 1 && every.optionalDouble == nil && every.optionalString == nil)
        #expect(Array(every.ints) == [3, 0, 1] && Array(every.strings) == ["a"] && Array(every.optionalStrings) == ["b", nil])
    }

    @Test func `in mixed values truth and numbers stay apart`() throws {
        let mixed = Mixed(
            value: try json(#"{"any": {"yes": true, "one": 1, "half": 0.5, "none": null, "text": "1"}, "list": [true, 0, 1]}"#))
        let map = try #require(mixed.any.dictionaryValue)
        #expect(map["yes"] == .bool(true) && map["one"] == .int(1) && map["half"] == .double(0.5) && map["text"] == .string("1"))
        #expect(map["none"] == AnyRealmValue.none && Array(mixed.list) == [.bool(true), .int(0), .int(1)])
    }

    @Test func `numbers of every type fit where they can be held`() {
        let every = Every(value: ["int": UInt8(3), "int8": 4, "int16": Int64(5), "float": 2, "double": Float(0.5), "decimal": 1.5])
        #expect(every.int == 3 && every.int8 == 4 && every.int16 == 5 && every.float == 2 && every.double == 0.5 && every.decimal == 1.5)
        #expect(
            Every(value: ["decimal": "1.50"]).decimal.stringValue == "1.50" && Every(value: ["optionalDecimal": 3]).optionalDecimal == 3)
        let large = Every(value: ["float": UInt64.max, "double": UInt64.max])
        #expect(large.float == Float(UInt64.max) && large.double == Double(UInt64.max))
        every["int32"] = NSNumber(value: 9)
        every["bool"] = NSNumber(value: true)
        #expect(every.int32 == 9 && every.bool)
    }

    @Test func `arguments of queries are numbers and truth too`() throws {
        let realm = try Realm(configuration: try TemporaryFolder().local)
        try realm.write { for id in 0..<3 { realm.create(Every.self, value: ["_id": id, "int": id, "bool": id == 1]) } }
        let all = realm.objects(Every.self)
        #expect(all.filter("int == %@", NSNumber(value: 2)).map(\._id) == [2] && all.filter("int == %@", UInt16(1)).map(\._id) == [1])
        #expect(all.filter("bool == %@", NSNumber(value: true)).map(\._id) == [1] && all.filter("bool == %@", true).map(\._id) == [1])
        let numbers: [NSNumber] = [0, 2]
        #expect(all.filter("int IN %@", numbers).map(\._id) == [0, 2])
        #expect(realm.object(ofType: Every.self, forPrimaryKey: NSNumber(value: 2))?._id == 2)
    }

    @Test func `an argument beyond 64 signed bits equals no integer, and is compared by its value`() throws {
        let realm = try Realm(configuration: try TemporaryFolder().local)
        try realm.write {
            realm.create(Every.self, value: ["_id": Int.max, "int": Int.max, "decimal": "9223372036854775807"])
            realm.create(Every.self, value: ["_id": 1, "int": Int.min, "decimal": "18446744073709551615"])
        }
        let all = realm.objects(Every.self)
        #expect(all.filter("int == %@", UInt64(Int64.max)).map(\._id) == [Int.max])
        let arguments: [Any] = [UInt64(Int64.max) + 1, UInt64.max, NSNumber(value: UInt64.max)]
        for beyond in arguments {
            #expect(all.filter("int == %@", beyond).isEmpty && all.filter("int IN {0, %@}", beyond).isEmpty, "\(beyond)")
            #expect(all.filter("int < %@", beyond).count == 2, "\(beyond)")
            #expect(realm.object(ofType: Every.self, forPrimaryKey: beyond) == nil, "\(beyond)")
        }
        #expect(all.filter("decimal == %@", UInt64.max).map(\._id) == [1])
    }
}
