import Foundation
import SluiceSDK
import Testing

@Suite struct AnyRealmValueTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Realm { try Realm(configuration: folder.configuration([Mixed.self])) }

    private static var scalars: [AnyRealmValue] {
        [
            .none, .int(.min), .bool(true), .float(0.5), .double(-0.1), .string("é"), .data(Data([0, 1])),
            .date(Date(timeIntervalSince1970: 1.5)), .objectId(ObjectId("0123456789abcdef01234567")), .decimal128(1.25),
            .uuid(UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))),
        ]
    }

    @Test func `every value comes back from the file`() throws {
        do {
            let realm = try open()
            let mixed = Mixed(value: ["_id": 0])
            mixed.list.append(objectsIn: Self.scalars)
            mixed.set.insert(objectsIn: Self.scalars)
            for (index, value) in Self.scalars.enumerated() { mixed.map["\(index)"] = value }
            try realm.write {
                realm.add(mixed)
                for (index, value) in Self.scalars.enumerated() { realm.create(Mixed.self, value: ["_id": index + 1]).any = value }
            }
        }
        let realm = try open()
        let mixed = try #require(realm.object(ofType: Mixed.self, forPrimaryKey: 0))
        #expect(Array(mixed.list) == Self.scalars && Set(mixed.set) == Set(Self.scalars))
        for (index, value) in Self.scalars.enumerated() {
            #expect(mixed.map["\(index)"] == value)
            #expect(realm.object(ofType: Mixed.self, forPrimaryKey: index + 1)?.any == value)
        }
    }

    @Test func `accessors give the value of its type only`() {
        #expect(AnyRealmValue.int(1).intValue == 1 && AnyRealmValue.int(1).doubleValue == nil)
        #expect(AnyRealmValue.bool(true).boolValue == true && AnyRealmValue.bool(true).intValue == nil)
        #expect(AnyRealmValue.string("a").stringValue == "a" && AnyRealmValue.none.stringValue == nil)
        #expect(AnyRealmValue.float(1).floatValue == 1 && AnyRealmValue.double(1).doubleValue == 1)
        #expect(AnyRealmValue.data(Data()).dataValue == Data() && AnyRealmValue.date(.distantPast).dateValue == .distantPast)
        #expect(AnyRealmValue.decimal128(1).decimal128Value == 1 && AnyRealmValue() == .none)
        #expect(AnyRealmValue.int(1) != .double(1) && AnyRealmValue.object(Mixed()).object(Mixed.self) != nil)
        #expect(AnyRealmValue.fromArray([.int(1)]).listValue?.count == 1)
        #expect(AnyRealmValue.fromDictionary(["a": .int(1)]).dictionaryValue?["a"] == .int(1))
    }

    @Test func `it links to objects of any class`() throws {
        let realm = try open()
        let mixed = Mixed(value: ["_id": 1])
        mixed.any = .object(Mixed(value: ["_id": 2]))
        mixed.list.append(.object(Mixed(value: ["_id": 3])))
        try realm.write { realm.add(mixed) }
        #expect(mixed.any.object(Mixed.self)?._id == 2 && mixed.list[0].object(Mixed.self)?._id == 3)
        #expect(mixed.any.dynamicObject?["_id"] as? Int == 2 && mixed.any.object(Task.self) == nil)
        try realm.write { realm.delete(mixed.any.object(Mixed.self)!) }
        #expect(mixed.any == .none)
    }

    @Test func `an object of a class that the Realm was not opened with reads as nothing`() throws {
        do {
            let realm = try Realm(configuration: folder.configuration([Mixed.self, Horse.self]))
            let mixed = Mixed(value: ["_id": 1])
            mixed.any = .object(Horse(value: ["_id": 7]))
            try realm.write { realm.add(mixed) }
            #expect(mixed.any.object(Horse.self)?._id == 7)
        }
        do { #expect(try open().objects(Mixed.self).first?.any == AnyRealmValue.none) }
        let realm = try Realm(configuration: folder.configuration([Mixed.self, Horse.self]))
        #expect(realm.objects(Mixed.self).first?.any.object(Horse.self)?._id == 7)
    }

    @Test func `ids and UUIDs have accessors too, and values go into sets and dictionaries`() {
        let (id, uuid) = (ObjectId.generate(), UUID())
        #expect(AnyRealmValue.objectId(id).objectIdValue == id && AnyRealmValue.uuid(uuid).uuidValue == uuid)
        #expect(AnyRealmValue.string("x").objectIdValue == nil && AnyRealmValue.none.uuidValue == nil)
        #expect(Set<AnyRealmValue>([.int(1), .int(1), .double(1), .none, .objectId(id), .objectId(id)]).count == 4)
    }

    @Test func `collections nest and are changed in place`() throws {
        let realm = try open()
        let inner = AnyRealmValue.fromDictionary(["a": .int(1), "deep": .fromArray([.string("x")])])
        let mixed = Mixed(value: ["_id": 1])
        mixed.any = .fromArray([.int(0), inner])
        try realm.write { realm.add(mixed) }
        let dictionary = try #require(mixed.any.listValue?[1].dictionaryValue)
        try realm.write {
            dictionary["a"] = .int(2)
            dictionary["deep"]?.listValue?.append(.bool(true))
            mixed.any.listValue?.insert(.none, at: 0)
            dictionary["after"] = .string("moved")
        }
        let again = try #require(realm.objects(Mixed.self).first?.any.listValue)
        #expect(again.count == 3 && again[2].dictionaryValue?["a"] == .int(2) && again[2].dictionaryValue?["after"] == .string("moved"))
        #expect(again[2].dictionaryValue?["deep"]?.listValue.map { Array($0) } == [.string("x"), .bool(true)])
        try realm.write { mixed.any = .int(7) }
        #expect(dictionary.isInvalidated && again.isInvalidated && mixed.any == .int(7))
    }

    @Test func `it is made from plain values`() {
        let mixed = Mixed(value: ["any": ["a": [1, 2.5, "x", true, NSNull()] as [Any]], "list": [1, "b"] as [Any]])
        let list = mixed.any.dictionaryValue?["a"]?.listValue
        #expect(list.map { Array($0) } == [.int(1), .double(2.5), .string("x"), .bool(true), .none])
        #expect(Array(mixed.list) == [.int(1), .string("b")])
        #expect(mixed["any"] is Map<String, AnyRealmValue>)
    }
}
