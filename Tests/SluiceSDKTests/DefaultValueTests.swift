import Foundation
import SluiceSDK
import Testing

private class Plain: EmbeddedObject {
    @Persisted var number: Int
}

/// Nothing has an initial value.
private class Blank: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var bool: Bool
    @Persisted var int8: Int8
    @Persisted var int16: Int16
    @Persisted var int32: Int32
    @Persisted var int64: Int64
    @Persisted var float: Float
    @Persisted var double: Double
    @Persisted var string: String
    @Persisted var data: Data
    @Persisted var date: Date
    @Persisted var decimal: Decimal128
    @Persisted var objectId: ObjectId
    @Persisted var uuid: UUID
    @Persisted var any: AnyRealmValue
    @Persisted var colour: Colour
    @Persisted var size: Size
    @Persisted var celsius: Celsius
    @Persisted var maybeInt: Int?
    @Persisted var maybeText: String?
    @Persisted var maybeDate: Date?
    @Persisted var maybeId: ObjectId?
    @Persisted var maybeColour: Colour?
    @Persisted var link: Blank?
    @Persisted var plain: Plain?
    @Persisted var list: List<Int>
    @Persisted var set: MutableSet<String>
    @Persisted var map: Map<String, Blank?>
    @Persisted(originProperty: "link") var links: LinkingObjects<Blank>
}

/// What properties begin with when the class gives them no value.
@Suite struct DefaultValueTests {
    private func expectBlank(_ blank: Blank, at place: SourceLocation = #_sourceLocation) {
        #expect(!blank.bool && blank.int8 == 0 && blank.int16 == 0 && blank.int32 == 0 && blank.int64 == 0, sourceLocation: place)
        #expect(blank.float == 0 && blank.double == 0 && blank.string == "" && blank.data == Data(), sourceLocation: place)
        #expect(blank.decimal == 0 && blank.any == .none && blank.colour == .red && blank.size == .small, sourceLocation: place)
        #expect(blank.celsius == Celsius(degrees: 0) && blank.maybeInt == nil && blank.maybeText == nil, sourceLocation: place)
        #expect(blank.maybeDate == nil && blank.maybeId == nil && blank.maybeColour == nil, sourceLocation: place)
        #expect(blank.link == nil && blank.plain == nil && blank.links.isEmpty, sourceLocation: place)
        #expect(blank.list.isEmpty && blank.set.isEmpty && blank.map.isEmpty, sourceLocation: place)
    }

    private func open(_ folder: TemporaryFolder) throws -> Realm { try Realm(configuration: folder.configuration([Blank.self])) }

    @Test func `every type has a default, alone and in a Realm`() throws {
        let folder = try TemporaryFolder()
        expectBlank(Blank())
        do {
            let realm = try open(folder)
            let added = Blank(value: ["_id": 1])
            try realm.write {
                realm.add(added)
                expectBlank(realm.create(Blank.self, value: ["_id": 2]))
            }
            expectBlank(added)
        }
        for blank in try open(folder).objects(Blank.self) { expectBlank(blank) }
    }

    @Test func `ids are new ones and dates are now, once for each object`() throws {
        let before = Date()
        let (first, second) = (Blank(), Blank())
        let date = first.date
        #expect(before <= date && date <= Date())
        #expect(first.objectId != second.objectId && first.uuid != second.uuid)
        let (id, uuid) = (first.objectId, first.uuid)
        #expect(first.objectId == id && first.uuid == uuid && first.date == date)
        let folder = try TemporaryFolder()
        let realm = try open(folder)
        try realm.write { realm.add(first) }
        #expect(first.objectId == id && first.uuid == uuid && first.date == date)
        let made = try realm.write { realm.create(Blank.self, value: ["_id": 9]) }
        #expect(made.objectId == made.objectId && made.date >= before && made.uuid != uuid)
        #expect(realm.object(ofType: Blank.self, forPrimaryKey: 9)?.objectId == made.objectId)
    }

    @Test func `a default that makes itself up stays the same when it is first read by name`() {
        let blank = Blank()
        let id = blank["objectId"] as? ObjectId
        #expect(blank.objectId == id && blank["uuid"] as? UUID == blank.uuid && blank["date"] as? Date == blank.date)
    }
}
