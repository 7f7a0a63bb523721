import SluiceSDK
import Testing

class Country: EmbeddedObject {
    @Persisted var code: String
    @Persisted var rank: Int
}

class Address: EmbeddedObject {
    @Persisted var street: String
    @Persisted var number: Int?
    @Persisted var country: Country?
    @Persisted var notes: List<String>
    @Persisted var former: List<Country>
    @Persisted var owner: Resident?
    @Persisted(originProperty: "home") var residents: LinkingObjects<Resident>
}

class Resident: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var name: String
    @Persisted var home: Address?
    @Persisted var others: List<Address>
    @Persisted var named: Map<String, Address?>
}

@Suite struct EmbeddedObjectTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: folder.configuration([Resident.self]))
    }

    private func resident(_ value: [String: Any] = [:]) throws -> Resident {
        try realm.write { realm.create(Resident.self, value: value.merging(["_id": 1]) { $1 }) }
    }

    private func address(_ street: String) -> Address { Address(value: ["street": street]) }

    @Test func `an object that is added takes its embedded objects along`() throws {
        let home = address("Elm")
        home.country = Country(value: ["code": "DE", "rank": 3])
        home.notes.append("door")
        let resident = Resident(value: ["_id": 1, "name": "Jo"])
        resident.home = home
        resident.others.append(address("Oak"))
        resident.named["work"] = address("Ash")
        #expect(home.realm == nil)
        try realm.write { realm.add(resident) }
        #expect(home.realm == realm && !home.isInvalidated)
        let other = try #require(realm.object(ofType: Resident.self, forPrimaryKey: 1))
        #expect(other.home?.street == "Elm" && other.home?.number == nil && other.home?.country?.code == "DE")
        #expect(other.home.map { Array($0.notes) } == ["door"] && other.others.map(\.street) == ["Oak"])
        #expect(other.named["work"]??.street == "Ash" && other.home == home)
        try realm.write { home.country?.rank = 9 }
        #expect(other.home?.country?.rank == 9)
    }

    @Test func `it comes back from the file`() throws {
        do {
            let resident = try resident([
                "home": ["street": "Elm", "country": ["code": "FR"]], "others": [["street": "a"], ["street": "b"]],
            ])
            try realm.write { resident.named["x"] = address("c") }
        }
        let copy = try Realm(configuration: folder.configuration([Resident.self]))
        let resident = try #require(copy.objects(Resident.self).first)
        #expect(resident.home?.country?.code == "FR")
        #expect(resident.others.map(\.street) == ["a", "b"] && resident.named["x"]??.street == "c")
    }

    @Test func `a property is written through to the owner`() throws {
        let resident = try resident(["home": ["street": "Elm"]])
        let home = try #require(resident.home)
        try realm.write {
            home.street = "Oak"
            home.number = 7
            home.country = Country(value: ["code": "IT"])
            home.notes.append(objectsIn: ["a", "b"])
            home.former.append(Country(value: ["code": "CH"]))
            home.former[0].rank = 4
            home.country?.rank = 2
        }
        let other = try #require(realm.objects(Resident.self).first?.home)
        #expect(other.street == "Oak" && other.number == 7 && other.country?.rank == 2 && Array(other.notes) == ["a", "b"])
        #expect(other.former.map(\.code) == ["CH"] && other.former[0].rank == 4)
    }

    @Test func `one that is replaced is invalidated`() throws {
        let resident = try resident(["home": ["street": "Elm", "country": ["code": "FR"]]])
        let home = try #require(resident.home)
        let country = try #require(home.country)
        let next = address("Oak")
        try realm.write { resident.home = next }
        #expect(home.isInvalidated && country.isInvalidated && !next.isInvalidated && next.realm == realm)
        #expect(resident.home?.street == "Oak")
        try realm.write { resident.home = nil }
        #expect(next.isInvalidated && resident.home == nil)
    }

    @Test func `it goes with its owner`() throws {
        let resident = try resident(["home": ["street": "Elm"], "others": [["street": "a"]]])
        let (home, first) = (try #require(resident.home), resident.others[0])
        try realm.write { realm.delete(resident) }
        #expect(home.isInvalidated && first.isInvalidated)
    }

    @Test func `accessors follow their elements through a list`() throws {
        let resident = try resident(["others": ["a", "b", "c"].map { ["street": $0] }])
        let (a, b, c) = (resident.others[0], resident.others[1], resident.others[2])
        try realm.write { resident.others.insert(address("0"), at: 0) }
        #expect(a.street == "a" && c.street == "c")
        try realm.write { resident.others.remove(at: 1) }
        #expect(a.isInvalidated && b.street == "b")
        try realm.write { resident.others.move(from: 2, to: 0) }
        #expect(c.street == "c" && resident.others.map(\.street) == ["c", "0", "b"])
        try realm.write { c.street = "C" }
        #expect(resident.others.map(\.street) == ["C", "0", "b"])
        try realm.write { resident.others[2] = address("x") }
        #expect(b.isInvalidated)
        try realm.write { realm.delete(resident.others[0]) }
        #expect(c.isInvalidated && resident.others.map(\.street) == ["0", "x"])
        #expect(resident.others.index(of: resident.others[1]) == 1)
    }

    @Test func `accessors of a map follow their keys`() throws {
        let resident = try resident()
        try realm.write {
            resident.named["a"] = address("1")
            resident.named["b"] = address("2")
        }
        let (a, b) = (try #require(resident.named["a"] ?? nil), try #require(resident.named["b"] ?? nil))
        try realm.write { resident.named["a"] = address("3") }
        #expect(a.isInvalidated && b.street == "2" && resident.named["a"]??.street == "3")
        try realm.write { resident.named.removeObject(for: "b") }
        #expect(b.isInvalidated && resident.named.keys == ["a"])
    }

    @Test func `it knows the object that it is in`() throws {
        let resident = try resident(["home": ["street": "Elm"], "others": [["street": "a"]]])
        #expect(resident.home?.residents.first == resident && resident.home?.residents.count == 1)
        #expect(resident.others[0].residents.isEmpty)
    }

    @Test func `it can link to objects`() throws {
        let resident = try resident(["home": ["street": "Elm"]])
        try realm.write { resident.home?.owner = Resident(value: ["_id": 2, "name": "Landlord"]) }
        #expect(resident.home?.owner?.name == "Landlord" && realm.objects(Resident.self).count == 2)
    }

    @Test func `misuse ends the program`() async {
        let end0 = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            let realm = try Realm(configuration: folder.configuration([Resident.self]))
            try realm.write {
                let resident = realm.create(Resident.self, value: ["_id": 1, "home": ["street": "Elm"]])
                // One object cannot be in two places.
                realm.create(Resident.self, value: ["_id": 2]).home = resident.home
            }
        }
        #expect(message(end0).contains("Can't set link to existing managed embedded object"))
        let end1 = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            let realm = try Realm(configuration: folder.configuration([Resident.self]))
            let home = try realm.write { realm.create(Resident.self, value: ["_id": 1, "home": ["street": "Elm"]]).home }
            home?.street = "outside of a transaction"
        }
        #expect(message(end1).contains("Cannot modify managed objects outside of a write transaction."))
    }
}
