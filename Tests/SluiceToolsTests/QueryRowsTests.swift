import SluiceCore
import SluiceGateway
import SluiceTools
import SluiceValues
import Testing

struct QueryRowsTests {
    @Test(arguments: [
        ("TRUEPREDICATE", "cba"), ("name == 'Rex'", "c"), ("name == nil", "a"), ("weight == 1.5", "c"), ("price == 9.99", "c"),
        ("born == 2020-01-01@00:00:00", "c"), ("chip == uuid(0000000a-0000-0000-0000-000000000001)", "c"),
        (#"photo == binary(B64"AQI=")"#, "c"), ("weight == nil", "ba"), ("'a' IN tags", "c"), ("tags.@count == 0", "a"),
        ("tags == nil", "b"), ("marks.@count == 0", "ba"),
        ("marks.@count == 2", "c"), ("{1, 3} == marks", "c"), ("extra['k'] == 'v'", "c"), ("extra.@count == 0", "ba"), ("thing == 5", "c"),
        ("thing == obj('Person', 7)", "b"), ("thing.@type == 'objectlink'", "b"), ("owner.name == 'Ann'", "c"), ("owner == nil", "b"),
        ("home.city == 'Rome'", "c"), ("home.keeper.name == 'Ann'", "c"), ("home == nil", "b"), ("friends.@count == 2", "a"),
        ("ANY friends.name == 'Ace'", "a"), ("@links.Dog.friends.@count == 1", "cb"), ("@links.@count == 0", "a"),
        ("_id == oid(00000000000000000000000b)", "b"), ("SUBQUERY(friends, $f, $f.age > 2).@count == 1", "a"),
        ("age > 0 SORT(age ASC)", "bca"), ("age > 0 SORT(age DESC) LIMIT(1)", "a"), ("TRUEPREDICATE DISTINCT(owner.name)", "cb"),
    ])
    func `are what a query sees`(query: String, dogs: String) throws {
        #expect(try Kennel.dogs(query) == dogs)
    }

    @Test func `are asked with arguments in extended JSON`() throws {
        #expect(try Kennel.dogs("age > $0", "-1") == "cba")
        #expect(try Kennel.dogs("name == $0 or age IN $1", #""Rex""#, "[9, 10]") == "ca")
        #expect(try Kennel.dogs("$K0 == $1", #""owner.name""#, #""Ann""#) == "c")
        #expect(try Kennel.dogs("_id == $0", #"{"$oid": "00000000000000000000000b"}"#) == "b")
        #expect(try Kennel.dogs("chip == $0", #"{"$uuid": "0000000A-0000-0000-0000-000000000001"}"#) == "c")
        #expect(try Kennel.dogs("born >= $0", #"{"$date": {"$numberLong": "1577836800000"}}"#) == "c")
        #expect(try Kennel.dogs("price == $0", #"{"$numberDecimal": "9.990"}"#) == "c")
        #expect(try Kennel.dogs("weight < $0", #"{"$numberDouble": "Infinity"}"#) == "c")
        #expect(try Kennel.dogs("photo == $0", #"{"$binary": {"base64": "AQI=", "subType": "00"}}"#) == "c")
        #expect(try Kennel.dogs("weight == $0", "null") == "ba")
    }

    @Test(arguments: ["Rex", "[1", #"{"$oid": "12"}"#, #"[{"$date": "yesterday"}]"#, ""])
    func `are not asked with an argument that is none`(text: String) {
        let error = #expect(throws: SluiceError.self) { try QueryArguments.read(["1", text]) }
        #expect(error?.code == .badJSON)
        #expect(error?.message.contains("$1") == true, "\(String(describing: error))")
    }

    @Test(arguments: [
        (#"{"_id": 1"#, "rows.jsonl:4:10: ", ErrorCode.badJSON), ("[]", "rows.jsonl:4: ", .wrongValueType),
        (#"{"_class": "Cat", "_id": 1}"#, "no class 'Cat'", .unknownType), (#"{"_class": 1}"#, "'_class'", .wrongValueType),
        (#"{"_id": {"$oid": "00000000000000000000000d"}, "nam": "x"}"#, "Dog has no property 'nam'", .unknownProperty),
        (#"{"_id": {"$oid": "00000000000000000000000d"}, "age": "x"}"#, "Dog.age: expected int", .wrongValueType),
        (#"{"_id": {"$oid": "00000000000000000000000d"}, "home": {"town": "x"}}"#, "Address has no property 'town'", .unknownProperty),
        (#"{"_id": {"$oid": "00000000000000000000000d"}, "owner": "x"}"#, "Dog.owner: expected", .wrongValueType),
        (#"{"name": "x"}"#, "no '_id'", .wrongValueType), (#"{"_class": "Address", "city": "x"}"#, "embedded class", .wrongValueType),
        (#"{"_id": {"$oid": "00000000000000000000000c"}}"#, "in line 2", .wrongValueType),
    ])
    func `are refused by file and line`(line: String, words: String, code: ErrorCode) throws {
        var reader = try Kennel.reader()
        try reader.add(Array(Kennel.rows[1].utf8), number: 2)
        let error = #expect(throws: SluiceError.self) { try reader.add(Array(line.utf8), number: 4) }
        #expect(error?.message.hasPrefix("rows.jsonl:4:") == true, "\(String(describing: error))")
        #expect(error?.message.contains(words) == true, "\(String(describing: error))")
        #expect(error?.code == code)
    }
}
