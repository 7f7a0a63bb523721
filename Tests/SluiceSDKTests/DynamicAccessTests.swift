import Foundation
import SluiceSDK
import Testing

class Animal: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var name = "nobody"
    @Persisted(indexed: true) var born: Date?
}

/// Inherits its key and name.
class Horse: Animal {
    @Persisted var wins: Int
    @Persisted var stable: Stable?
    @Persisted var colour: Colour
    var rider = "not stored"
    lazy var cheer = "Go, \(name)!"
}

class Stable: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var city: String
    @Persisted var horses: List<Horse>
    @Persisted var byBox: Map<String, Horse?>
    @Persisted var favourites: MutableSet<Horse>
    @Persisted var hidden: String

    override class func propertiesMapping() -> [String: String] { ["city": "town", "hidden": "_hidden"] }
}

class Renamed: Object {
    @Persisted(primaryKey: true) var _id: Int
    override class func _realmObjectName() -> String? { "NewName" }
}

@Suite struct DynamicAccessTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: folder.configuration([Stable.self, Renamed.self]))
    }

    private func stable() throws -> Stable {
        let horse: [String: Any] = ["_id": 1, "name": "Kincsem", "wins": 54, "colour": "green"]
        return try realm.write {
            let stable = realm.create(Stable.self, value: ["_id": 1, "city": "Göd", "horses": [horse]])
            stable.byBox["a"] = stable.horses[0]
            stable.favourites.insert(stable.horses[0])
            stable.horses[0].stable = stable
            return stable
        }
    }

    @Test func `a class has the properties that it inherits and not those without the wrapper`() throws {
        let horse = Horse(value: ["_id": 7, "name": "Red", "wins": 2])
        #expect(horse.objectSchema.properties.map(\.name) == ["_id", "name", "born", "wins", "stable", "colour"])
        #expect(horse.objectSchema.primaryKeyProperty?.name == "_id" && horse.objectSchema.className == "Horse")
        #expect(Horse.primaryKey() == "_id" && Horse.indexedProperties() == ["born"])
        try realm.write { realm.add(horse) }
        let again = try #require(realm.object(ofType: Horse.self, forPrimaryKey: 7))
        #expect(again.name == "Red" && again.wins == 2 && again.rider == "not stored" && again.cheer == "Go, Red!")
    }

    @Test func `properties are read and set by name`() throws {
        let stable = try stable()
        for horse in [Horse(value: ["_id": 2, "name": "Kincsem", "wins": 54, "colour": "green"]), stable.horses[0]] {
            #expect(horse["name"] as? String == "Kincsem" && horse["wins"] as? Int == 54 && horse["born"] == nil)
            #expect(horse["colour"] as? String == "green" && horse.value(forKey: "name") as? String == "Kincsem")
            try realm.write {
                horse["name"] = "Camarero"
                horse.setValue(56, forKey: "wins")
                horse["born"] = Date(timeIntervalSince1970: 0)
                horse["colour"] = "red"
            }
            #expect(horse.name == "Camarero" && horse.wins == 56 && horse.born == Date(timeIntervalSince1970: 0) && horse.colour == .red)
            try realm.write { horse["born"] = nil }
            #expect(horse.born == nil)
            try realm.write { horse.setValuesForKeys(["name": "Eclipse", "wins": 18]) }
            let values = horse.dictionaryWithValues(forKeys: ["name", "wins", "born"])
            #expect(values["name"] as? String == "Eclipse" && values["wins"] as? Int == 18 && values.count == 3)
            #expect(values["born"] is NSNull)
        }
    }

    @Test func `key paths go through links and collections`() throws {
        let stable = try stable()
        #expect(stable.horses[0].value(forKeyPath: "stable.city") as? String == "Göd")
        #expect(stable.value(forKeyPath: "horses.name") as? [String?] == ["Kincsem"])
        #expect(stable.horses.value(forKey: "wins") as? [Int?] == [54])
        #expect(stable.byBox.value(forKeyPath: "a.name") as? String == "Kincsem")
        try realm.write { stable.horses.setValue("Both", forKey: "name") }
        #expect(stable.horses[0].name == "Both")
    }

    @Test func `dynamic objects need no class`() throws {
        _ = try stable()
        let horses = realm.dynamicObjects("Horse")
        #expect(horses.count == 1 && horses.first?["name"] as? String == "Kincsem" && horses.filter("wins > 50").count == 1)
        let stable = try #require(realm.dynamicObject(ofType: "Stable", forPrimaryKey: 1))
        #expect(stable.city as? String == "Göd" && stable.objectSchema.className == "Stable")
        #expect(stable.dynamicList("horses").first?["wins"] as? Int == 54)
        let favourite = stable.dynamicMutableSet("favourites").first
        let boxed: Map<String, DynamicObject?> = stable.dynamicMap("byBox")
        #expect(favourite?["name"] as? String == "Kincsem" && boxed["a"]??["name"] as? String == "Kincsem")
        #expect((horses.first?["stable"] as? DynamicObject)?["city"] as? String == "Göd")
        try realm.write {
            stable["city"] = "Pest"
            horses.first?.name = "Renamed"
            let made = realm.dynamicCreate("Horse", value: ["_id": 9])
            stable.dynamicList("horses").append(made)
        }
        #expect(realm.objects(Stable.self).first?.city == "Pest" && realm.objects(Stable.self).first?.horses.count == 2)
        #expect(realm.dynamicObject(ofType: "Horse", forPrimaryKey: 99) == nil)
    }

    @Test func `names in the file may differ`() throws {
        _ = try stable()
        let schema = try #require(realm.schema["Stable"])
        #expect(schema["city"]?.columnName == "town" && schema["hidden"]?.columnName == "_hidden" && schema["town"] == nil)
        #expect(realm.objects(Stable.self).where { $0.city == "Göd" }.count == 1)
        #expect(realm.objects(Stable.self).sorted(byKeyPath: "city").count == 1)
        #expect(realm.schema["NewName"]?.objectClass == Renamed.self && realm.schema["Renamed"] == nil)
    }

    @Test func `the schema tells what properties are`() throws {
        let stable = try #require(realm.schema["Stable"])
        #expect(stable["horses"]?.isArray == true && stable["horses"]?.type == .object && stable["horses"]?.objectClassName == "Horse")
        #expect(stable["byBox"]?.isMap == true && stable["favourites"]?.isSet == true && stable["_id"]?.isIndexed == true)
        #expect(realm.schema["Horse"]?["stable"]?.isOptional == true && realm.schema["Horse"]?["born"]?.type == .date)
        #expect(realm.schema["Horse"]?["colour"]?.type == .string && stable == realm.schema["Stable"])
        #expect(!stable.isEmbedded && !stable.isAsymmetric)
    }

    @Test func `a Realm without classes has all of the program`() throws {
        var configuration = try TemporaryFolder().configuration([])
        configuration.objectTypes = nil
        let names = Set(try Realm(configuration: configuration).schema.objectSchema.map(\.className))
        #expect(names.isSuperset(of: ["Task", "Team", "Horse", "Stable", "Address", "NewName"]))
        #expect(names.isDisjoint(with: ["Object", "DynamicObject", "Orphan", "Reading"]))
    }

    @Test func `what is only sent cannot be in a Realm that nobody syncs`() throws {
        let configuration = try TemporaryFolder().configuration([Reading.self])
        #expect(throws: Realm.Error.self) { try Realm(configuration: configuration) }
    }

    @Test func `objects describe themselves`() throws {
        let text = try stable().horses[0].description
        #expect(text.contains("Horse {") && text.contains("name = Kincsem;") && text.contains("born = (null);"))
    }

    @Test func `misuse ends the program`() async {
        let unknown = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = Horse()["legs"] }
        #expect(message(unknown).contains("Invalid property name 'legs' for class 'Horse'."))
        let wrong = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { Horse()["wins"] = "many" }
        #expect(message(wrong).contains("Invalid value 'many' of type 'String' for property 'Horse.wins'."))
        let extra = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = Horse(value: ["legs": 4]) }
        #expect(message(extra).contains("Invalid property name 'legs' for class 'Horse'."))
        let missing = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            _ = try Realm(configuration: folder.configuration([Horse.self])).dynamicObjects("Cow")
        }
        #expect(message(missing).contains("Object type 'Cow' is not managed by the Realm."))
    }
}
