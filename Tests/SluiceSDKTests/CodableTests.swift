import Foundation
import SluiceSDK
import Testing

class Parcel: Object, Codable {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var name: String
    @Persisted var weight: Decimal128
    @Persisted var note: String?
    @Persisted var count = 3
    @Persisted var tags: List<String>
    @Persisted var marks: MutableSet<Int>
    @Persisted var prices: Map<String, Double>
    @Persisted var inner: Parcel?
    @Persisted var label: Label?
}

class Label: EmbeddedObject, Codable {
    @Persisted var text: String
}

@Suite struct CodableTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private let json = """
        {"_id":"0123456789abcdef01234567","count":4,"inner":{"_id":"0123456789abcdef01234568","count":1,"marks":[],"name":"inside",\
        "prices":{},"tags":[],"weight":"0"},"label":{"text":"fragile"},"marks":[1],"name":"box","prices":{"a":1.5},"tags":["x","y"],\
        "weight":"1.50"}
        """

    private func expect(_ parcel: Parcel) throws {
        #expect(parcel._id == ObjectId("0123456789abcdef01234567") && parcel.name == "box" && parcel.weight == 1.5)
        #expect(parcel.note == nil && parcel.count == 4 && Array(parcel.tags) == ["x", "y"] && Set(parcel.marks) == [1])
        #expect(parcel.prices["a"] == 1.5 && parcel.inner?.name == "inside" && parcel.label?.text == "fragile")
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let again = try JSONDecoder().decode(Parcel.self, from: encoder.encode(parcel))
        #expect(again.name == "box" && again.inner?.name == "inside" && again.label?.text == "fragile" && again.note == nil)
        #expect(Array(again.tags) == ["x", "y"] && again.prices["a"] == 1.5 && again.weight.stringValue == "1.50")
    }

    @Test func `models go to JSON and come back`() throws {
        let parcel = try JSONDecoder().decode(Parcel.self, from: Data(json.utf8))
        try expect(parcel)
        let realm = try Realm(configuration: folder.configuration([Parcel.self]))
        try realm.write { realm.add(parcel) }
        try expect(parcel)
        try expect(try #require(realm.object(ofType: Parcel.self, forPrimaryKey: parcel._id)))
    }

    @Test func `results are encoded as arrays`() throws {
        let realm = try Realm(configuration: folder.configuration([Parcel.self]))
        try realm.write {
            realm.create(Parcel.self, value: ["name": "b", "tags": ["y", "x"]] as [String: Any])
            realm.create(Parcel.self, value: ["name": "a"])
        }
        let parcels = realm.objects(Parcel.self).sorted(byKeyPath: "name")
        let again = try JSONDecoder().decode([Parcel].self, from: JSONEncoder().encode(parcels))
        #expect(again.map(\.name) == ["a", "b"])
        let tags = try #require(parcels.last).tags.sorted(ascending: true)
        #expect(String(decoding: try JSONEncoder().encode(tags), as: UTF8.self) == #"["x","y"]"#)
        #expect(String(decoding: try JSONEncoder().encode(AnyRealmCollection(tags)), as: UTF8.self) == #"["x","y"]"#)
    }

    @Test func `what is required and missing is an error`() {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Parcel.self, from: Data("{}".utf8)) }
    }
}
