import Foundation
import SluiceSDK
import Testing

/// A class that says by methods what others say with `@Persisted`.
final class Vessel: Object {
    @Persisted var imo: Int
    @Persisted var name: String?
    @Persisted var flag: String
    @Persisted var draught: Double
    @Persisted var onScreen: Bool
    @Persisted var escort: Vessel?
    @Persisted(originProperty: "escort") var escorted: LinkingObjects<Vessel>

    override class func primaryKey() -> String? { "imo" }
    override class func indexedProperties() -> [String] { ["flag"] }
    override class func ignoredProperties() -> [String] { ["onScreen"] }
    override class func requiredProperties() -> [String] { ["name"] }
    override class func defaultPropertyValues() -> [String: Any]? { ["name": "unnamed", "draught": 4.5] }
}

/// `RLMObject`'s header, member by member, in its order: what each of them is here.
@MainActor @Suite(.serialized) struct RLMObjectTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: folder.configuration([Vessel.self]))
    }

    @Test func `init and initWithValue make objects that no Realm manages`() {
        let vessel = Vessel(value: ["imo": 1, "flag": "NL"])
        #expect(Vessel().realm == nil && vessel.realm == nil && vessel.flag == "NL")
        #expect(Vessel(value: [7, "Ada", "DK"]).name == "Ada")
    }

    @Test func `className is the class's name`() { #expect(Vessel.className() == "Vessel") }

    @Test func `create makes an object, createOrUpdate sets what is given, createOrUpdateModified what differs`() throws {
        let vessel = try Vessel.create(in: realm, withValue: ["imo": 1, "flag": "NL", "name": "Ada"])
        let same = try Vessel.createOrUpdate(in: realm, withValue: ["imo": 1, "flag": "DK"])
        #expect(same == vessel && vessel.flag == "DK" && vessel.name == "Ada")
        try Vessel.createOrUpdateModified(in: realm, withValue: ["imo": 1, "draught": 9])
        #expect(vessel.flag == "DK" && vessel.draught == 9)
        try realm.write { _ = try Vessel.create(in: realm, withValue: ["imo": 2]) }
        #expect(Vessel.allObjects(in: realm).count == 2)
    }

    @Test func `realm, objectSchema and isInvalidated tell of the object`() throws {
        let vessel = try Vessel.create(in: realm, withValue: ["imo": 1])
        #expect(vessel.realm == realm && vessel.objectSchema.className == "Vessel" && !vessel.isInvalidated)
        try realm.write { realm.delete(vessel) }
        #expect(vessel.isInvalidated)
    }

    @Test func `class methods describe the properties`() throws {
        #expect(Vessel.primaryKey() == "imo" && Vessel.indexedProperties() == ["flag"] && Vessel.requiredProperties() == ["name"])
        #expect(Vessel.linkingObjectsProperties().keys.sorted() == ["escorted"])
        #expect(Vessel.linkingObjectsProperties()["escorted"].map { [$0.objectClass, $0.propertyName] } == ["Vessel", "escort"])
        let schema = Vessel().objectSchema
        #expect(schema.primaryKeyProperty?.name == "imo" && schema["flag"]?.isIndexed == true && schema["name"]?.isOptional == false)
        #expect(schema["onScreen"] == nil && Vessel.ignoredProperties() == ["onScreen"])
        #expect(Horse.primaryKey() == "_id" && Horse.requiredProperties() == [] && Horse.defaultPropertyValues() == nil)
    }

    @Test func `default values are those of new objects, and given values count more`() throws {
        #expect(Vessel().name == "unnamed" && Vessel().draught == 4.5 && Vessel(value: ["name": "Ada"]).name == "Ada")
        let vessel = try Vessel.create(in: realm, withValue: ["imo": 1, "draught": 3])
        #expect(vessel.name == "unnamed" && vessel.draught == 3)
        try Vessel.createOrUpdate(in: realm, withValue: ["imo": 1, "flag": "DK"])
        #expect(vessel.draught == 3)
    }

    @Test func `an ignored property is the object's own`() throws {
        let vessel = Vessel(value: ["imo": 1])
        vessel.onScreen = true
        try realm.write { realm.add(vessel) }
        let accessor = try #require(realm.object(ofType: Vessel.self, forPrimaryKey: 1))
        #expect(vessel.onScreen && !accessor.onScreen)
        accessor.onScreen = true
        #expect(accessor.onScreen && Vessel.object(in: realm, forPrimaryKey: 1)?.onScreen == false)
    }

    @Test func `a required property refuses nil`() async {
        await #expect(processExitsWith: .failure) {
            let folder = try TemporaryFolder()
            let realm = try Realm(configuration: folder.configuration([Vessel.self]))
            try Vessel.create(in: realm, withValue: ["imo": 1, "name": NSNull()])
        }
    }

    @Test func `objects are found by predicate and by key`() throws {
        for imo in 1...5 { try Vessel.create(in: realm, withValue: ["imo": imo, "flag": imo % 2 == 0 ? "NL" : "DK"]) }
        #expect(Vessel.objects(in: realm, where: "flag == %@ AND imo > %d", "DK", 1).map(\.imo) == [3, 5])
        #expect(Vessel.objects(in: realm, with: NSPredicate(format: "imo < %d", 3)).map(\.imo) == [1, 2])
        #expect(Vessel.objects(in: realm, with: nil).count == 5)
        #expect(Vessel.object(in: realm, forPrimaryKey: 4)?.flag == "NL")
        #expect(Vessel.object(in: realm, forPrimaryKey: 9) == nil && Vessel.object(in: realm, forPrimaryKey: nil) == nil)
    }

    @Test func `the same by the default Realm`() throws {
        let before = Realm.Configuration.defaultConfiguration
        defer { Realm.Configuration.defaultConfiguration = before }
        Realm.Configuration.defaultConfiguration = folder.configuration([Vessel.self])
        try Vessel.createInDefaultRealm(withValue: ["imo": 1, "flag": "NL"])
        try Vessel.createOrUpdateInDefaultRealm(withValue: ["imo": 1, "draught": 2])
        try Vessel.createOrUpdateModifiedInDefaultRealm(withValue: ["imo": 1, "name": "Ada"])
        #expect(try Vessel.allObjects().count == 1 && Vessel.objects(where: "draught == %@ AND name == 'Ada'", 2).count == 1)
        #expect(try Vessel.objects(with: NSPredicate(format: "flag == 'NL'")).count == 1)
        #expect(try Vessel.object(forPrimaryKey: 1)?.name == "Ada" && Vessel.object(forPrimaryKey: 2) == nil)
    }

    @Test func `a notification block gets names, previous values and values, then the deletion`() async throws {
        let vessel = try Vessel.create(in: realm, withValue: ["imo": 1, "flag": "NL"])
        let (news, continuation) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .unbounded)
        let token = vessel.addNotificationBlock { isDeleted, changes, error in
            let texts = (changes ?? []).map { "\($0.name): \($0.previousValue ?? "nil") to \($0.value ?? "nil")" }
            continuation.yield("\(isDeleted) \(texts) \(error == nil)")
        }
        var iterator = news.makeAsyncIterator()
        try await change(folder.configuration([Vessel.self])) { $0.flag = "DK" }
        #expect(await iterator.next() == #"false ["flag: NL to DK"] true"#)
        try await change(folder.configuration([Vessel.self])) { $0.realm?.delete($0) }
        #expect(await iterator.next() == "true [] true")
        token.invalidate()
    }

    /// On another thread: only what others change has a previous value.
    @concurrent private nonisolated func change(_ configuration: Realm.Configuration, _ body: @Sendable (Vessel) -> Void) async throws {
        let realm = try await Realm(configuration: configuration)
        try realm.write { realm.objects(Vessel.self).forEach(body) }
    }

    @Test func `two objects of one row are the same, and keys reach the properties`() throws {
        let vessel = try Vessel.create(in: realm, withValue: ["imo": 1, "flag": "NL"])
        let other = Vessel.object(in: realm, forPrimaryKey: 1)
        #expect(vessel.isSameObject(as: other) && !vessel.isSameObject(as: Vessel(value: ["imo": 1])))
        try realm.write { vessel["flag"] = "DK" }
        #expect(vessel["flag"] as? String == "DK" && vessel["imo"] as? Int == 1)
    }
}
