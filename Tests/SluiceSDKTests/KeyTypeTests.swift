import Foundation
import SluiceSDK
import Testing

/// Not in Realms that name no classes.
class OfOneKey<Key: _Persistable & Equatable>: Object where Key.PersistedType: _PrimaryKey {
    @Persisted(primaryKey: true) var _id: Key
    @Persisted var text: String
    @Persisted var next: OfOneKey<Key>?
}

/// Every type that can have an index.
private class Indexed: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted(indexed: true) var bool: Bool
    @Persisted(indexed: true) var int8: Int8
    @Persisted(indexed: true) var int16: Int16
    @Persisted(indexed: true) var int32: Int32?
    @Persisted(indexed: true) var int64: Int64
    @Persisted(indexed: true) var string: String?
    @Persisted(indexed: true) var date: Date
    @Persisted(indexed: true) var objectId: ObjectId
    @Persisted(indexed: true) var uuid: UUID?
    @Persisted(indexed: true) var colour: Colour
    @Persisted(wrappedValue: .large, indexed: true) var size: Size?
    @Persisted(indexed: true) var celsius: Version
}

/// The types of primary keys and of properties with an index.
@Suite struct KeyTypeTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Two objects, known by their keys while the file is open and when it is opened again.
    private func check<Key: _Persistable & Equatable>(
        _ first: Key, _ second: Key, stored: (Key) -> Any? = { $0 }, at place: SourceLocation = #_sourceLocation
    ) throws where Key.PersistedType: _PrimaryKey {
        let configuration = folder.configuration([OfOneKey<Key>.self], file: "\(Key.self)")
        do {
            let realm = try Realm(configuration: configuration)
            try realm.write {
                for (key, text) in [(first, "first"), (second, "second")] {
                    let object = OfOneKey<Key>()
                    object._id = key
                    object.text = text
                    realm.add(object)
                }
                let found = realm.object(ofType: OfOneKey<Key>.self, forPrimaryKey: stored(first))
                found?.next = realm.object(ofType: OfOneKey<Key>.self, forPrimaryKey: stored(second))
                realm.create(OfOneKey<Key>.self, value: ["_id": stored(second) as Any, "text": "again"], update: .modified)
            }
        }
        let realm = try Realm(configuration: configuration)
        let found = try #require(realm.object(ofType: OfOneKey<Key>.self, forPrimaryKey: stored(first)), sourceLocation: place)
        #expect(found._id == first && found.text == "first" && found.next?._id == second, sourceLocation: place)
        #expect(found.next?.text == "again" && realm.objects(OfOneKey<Key>.self).count == 2, sourceLocation: place)
        #expect(realm.schema.objectSchema.first?.primaryKeyProperty?.name == "_id", sourceLocation: place)
    }

    @Test func `integers of every width, texts, ids and UUIDs are primary keys`() throws {
        try check(1, Int.min)
        try check(Int8.min, 7)
        try check(Int16.max, 7)
        try check(Int32.max, 7)
        try check(Int64.max, 7)
        try check("", "é\u{0}'\"")
        try check(ObjectId("0123456789abcdef01234567"), ObjectId.generate())
        try check(UUID(), UUID())
    }

    @Test func `a key may be of an optional type, and is no nil`() async throws {
        try check(Int?.some(3), 7)
        try check(String?.some("x"), "")
        try check(ObjectId?.some(.generate()), ObjectId.generate())
        try check(UUID?.some(UUID()), UUID())
        let realm = try await Realm(configuration: folder.configuration([OfOneKey<Int?>.self]))
        try realm.write { realm.create(OfOneKey<Int?>.self, value: ["_id": 0]) }
        #expect(realm.object(ofType: OfOneKey<Int?>.self, forPrimaryKey: nil as Int?) == nil)
        let end = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let realm = try Realm(configuration: TemporaryFolder().configuration([OfOneKey<Int?>.self]))
            try realm.write { realm.add(OfOneKey<Int?>()) }
        }
        #expect(message(end).contains("Invalid null value for the primary key of 'OfOneKey<Optional<Int>>'."))
    }

    @Test func `enumerations and custom types are keys as what is stored of them`() throws {
        try check(Size.small, .large) { $0.rawValue }
        try check(Colour.red, .green) { $0.rawValue }
        try check(Version(major: 1), Version(major: 2)) { $0.persistableValue }
    }

    @Test func `properties of every type with an index are found, and say that they have one`() throws {
        let realm = try Realm(configuration: folder.configuration([Indexed.self]))
        let (id, uuid, date) = (ObjectId.generate(), UUID(), Date(timeIntervalSince1970: 1.5))
        try realm.write {
            for number in 0..<3 { realm.create(Indexed.self, value: ["_id": number]) }
            let one = realm.create(Indexed.self, value: ["_id": 9, "bool": true, "string": "x", "uuid": uuid] as [String: Any])
            (one.int8, one.int16, one.int32, one.int64) = (-1, -2, -3, -4)
            (one.date, one.objectId, one.colour, one.size, one.celsius) = (date, id, .green, .small, Version(major: 4))
        }
        let all = realm.objects(Indexed.self)
        let found = [
            all.where { $0.bool }, all.where { $0.int8 == -1 }, all.where { $0.int16 < 0 }, all.where { $0.int32 != nil },
            all.where { $0.int64 == -4 }, all.where { $0.string == "x" }, all.where { $0.date == date }, all.where { $0.objectId == id },
            all.where { $0.uuid == uuid }, all.where { $0.colour == .green }, all.where { $0.size == .small },
            all.where { $0.celsius == Version(major: 4) },
        ]
        for results in found { #expect(results.map(\._id) == [9]) }
        #expect(all.where { $0.size == .large }.count == 3)
        #expect(realm.schema["Indexed"]?.properties.allSatisfy(\.isIndexed) == true)
        #expect(Indexed.indexedProperties().count == 12)
    }
}
