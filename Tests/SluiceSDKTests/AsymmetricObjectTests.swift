import Foundation
import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import SluiceSDK
import Testing

/// It has a part of its own and tells of an object that is stored.
private class Sighting: AsymmetricObject {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var country: Country?
    @Persisted var resident: Resident?
    @Persisted var notes: List<String>
}

private class Nameless: AsymmetricObject {
    @Persisted var celsius: Double
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

/// Objects that are only ever sent.
@Suite struct AsymmetricObjectTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() async throws -> Realm {
        let realm = try await Realm(configuration: try folder.synced([Sighting.self, Resident.self]))
        let set = realm.subscriptions
        set.update({ set.append(QuerySubscription<Resident>()) }, onComplete: nil)
        return realm
    }

    @Test func `one is created, and there is nothing to hold on to`() async throws {
        let realm = try await open()
        let nothing: Void = try realm.write { realm.create(Sighting.self, value: ["notes": ["x"]]) }
        #expect(nothing == () && realm.isEmpty)
        #expect(try await _replica(of: realm).pendingIngest(after: 0)?.objects.count == 1)
    }

    @Test func `it can be read and described while it is nobody's`() {
        let sighting = Sighting(value: ["notes": ["a"], "country": ["code": "DE"]])
        #expect(sighting["notes"] is List<String> && (sighting["country"] as? Country)?.code == "DE")
        sighting["country"] = nil
        #expect(sighting.country == nil && sighting.description.contains("Sighting {"))
        #expect(sighting.objectSchema.isAsymmetric && Sighting.propertiesMapping().isEmpty)
    }

    @Test func `its class cannot be asked for, as nothing of it is there`() {
        let (type, object): (Any, Any) = (Sighting.self, Sighting())
        #expect(!(type is any RealmFetchable.Type) && !(object is any RealmCollectionValue) && !(object is any ThreadConfined))
    }

    /// ING-4: `@Persisted var sighting: Sighting?` does not compile, nor do its lists, sets and maps.
    @Test func `no property can be of its class, as nothing can link to what is not there`() {
        let (type, linked): (Any, Any) = (Sighting.self, Resident.self)
        #expect(!(type is any _Persistable.Type) && !(type is any _OptionalPersistable.Type) && !(type is any RealmCollectionValue.Type))
        #expect(linked is any _OptionalPersistable.Type && linked is any RealmCollectionValue.Type)
    }

    @Test func `it takes embedded objects along, and tells of others by their keys`() async throws {
        let realm = try await open()
        try realm.write {
            let jo = realm.create(Resident.self, value: ["_id": 1, "name": "Jo"])
            let known: [String: Any] = ["country": ["code": "DE", "rank": 3], "resident": jo, "notes": ["a", "b"]]
            realm.create(Sighting.self, value: known)
            // An object that nobody manages becomes one of the Realm, as with every link.
            realm.create(Sighting.self, value: ["resident": ["_id": 2, "name": "Di"]])
        }
        #expect(realm.objects(Resident.self).map(\.name) == ["Jo", "Di"])
        let sent = try #require(try await _replica(of: realm).pendingIngest(after: 0)).objects
        #expect(sent.map { $0.values["resident"] } == [.int(1), .int(2)])
        #expect(sent[0].values["country"] == .dictionary(["code": .string("DE"), "rank": .int(3)]))
        #expect(sent[0].values["notes"] == .list([.string("a"), .string("b")]))
    }

    @Test func `a transaction that is undone sends nothing`() async throws {
        let realm = try await open()
        realm.beginWrite()
        realm.create(Sighting.self)
        realm.cancelWrite()
        #expect(try await _replica(of: realm).pendingIngest(after: 0) == nil)
    }

    @Test func `local Realms refuse it, and all do without a primary key`() throws {
        let local = #expect(throws: Realm.Error.self) { try Realm(configuration: folder.configuration([Sighting.self])) }
        #expect(local?.message.contains("Asymmetric table 'Sighting' not allowed in a local Realm") == true)
        let keyless = #expect(throws: Realm.Error.self) { try Realm(configuration: try folder.synced([Nameless.self])) }
        #expect(keyless?.message.contains("The class Nameless has no primary key.") == true)
        let note = #expect(throws: Realm.Error.self) { try Realm(configuration: try folder.synced([KeylessTests.Note.self])) }
        #expect(note?.message.contains("The class Note has no primary key.") == true)
    }
}
