import SluiceSDK
import Testing

@Suite struct AddingTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: folder.configuration([Resident.self, Horse.self, Crowd.self]))
    }

    private func horse(_ value: [String: Any]) -> Horse { Horse(value: value.merging(["_id": 1]) { $1 }) }

    @Test func `adding over an object sets all of its properties`() throws {
        try realm.write { realm.add(horse(["name": "a", "wins": 3])) }
        let other = horse(["name": "b"])
        try realm.write { realm.add(other, update: .all) }
        #expect(realm.objects(Horse.self).count == 1 && other.name == "b" && other.wins == 0)
        try realm.write { realm.add(horse(["wins": 5]), update: .modified) }
        #expect(other.name == "nobody" && other.wins == 5)
    }

    @Test func `creating over an object sets what is given, in links too`() throws {
        let values: [String: Any] = ["_id": 1, "friend": ["_id": 2, "sizes": [1], "intMap": ["a": 1]], "sizes": [2]]
        let crowd = try realm.write { realm.create(Crowd.self, value: values) }
        try realm.write {
            _ = realm.create(Crowd.self, value: ["_id": 1, "friend": ["_id": 2, "intMap": ["b": 2]]], update: .modified)
        }
        #expect(Array(crowd.sizes) == [.large] && crowd.friend.map { Array($0.sizes) } == [.small] && crowd.friend?.intMap.keys == ["b"])
        #expect(realm.objects(Crowd.self).count == 2)
    }

    @Test func `objects that link to each other are added together`() throws {
        let (left, right) = (Crowd(value: ["_id": 1]), Crowd(value: ["_id": 2]))
        left.friend = right
        right.friend = left
        right.friends.append(objectsIn: [left, right])
        try realm.write { realm.add(left) }
        #expect(left.friend == right && right.friend == left && Array(right.friends) == [left, right] && left.realm == right.realm)
    }

    @Test func `an object of the Realm that is added or created again stays itself`() throws {
        let first = try realm.write { realm.create(Horse.self, value: ["_id": 1, "name": "a"]) }
        try realm.write {
            realm.add(first)
            #expect(realm.create(Horse.self, value: first, update: .modified) === first)
        }
        #expect(first.name == "a")
    }

    @Test func `a write leaves what another accessor wrote`() throws {
        let first = try realm.write { realm.create(Horse.self, value: ["_id": 1]) }
        let second = try #require(realm.object(ofType: Horse.self, forPrimaryKey: 1))
        try realm.write {
            first.name = "written by one"
            second.wins = 2
            #expect(second.name == "written by one" && first.wins == 2)
        }
    }

    @Test func `misuse ends the program`() async {
        let twice = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            let realm = try Realm(configuration: folder.configuration([Horse.self]))
            try realm.write { realm.add([Horse(value: ["_id": 1]), Horse(value: ["_id": 1])]) }
        }
        #expect(message(twice).contains("Attempting to create an object of type 'Horse' with an existing primary key value '1'."))
        let outside = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            try Realm(configuration: folder.configuration([Horse.self])).add(Horse(value: ["_id": 1]))
        }
        #expect(message(outside).contains("Cannot modify managed objects outside of a write transaction."))
        let deleted = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            let realm = try Realm(configuration: folder.configuration([Horse.self]))
            try realm.write {
                let horse = realm.create(Horse.self, value: ["_id": 1])
                realm.delete(horse)
                horse.wins = 1
            }
        }
        #expect(message(deleted).contains("Object has been deleted or invalidated."))
    }
}
