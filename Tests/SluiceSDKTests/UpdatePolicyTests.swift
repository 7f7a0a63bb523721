import Foundation
import SluiceSDK
import Testing

/// What `add` and `create` write, and what they leave alone.
@MainActor @Suite struct UpdatePolicyTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: folder.configuration([Horse.self, Crowd.self]))
    }

    @Test func `the policies have RealmSwift's numbers`() {
        #expect(Realm.UpdatePolicy.error.rawValue == 1 && Realm.UpdatePolicy.modified.rawValue == 3 && Realm.UpdatePolicy.all.rawValue == 2)
        #expect(Realm.UpdatePolicy(rawValue: 3) == .modified && Realm.UpdatePolicy(rawValue: 0) == nil)
    }

    /// The names of the properties that an observer of the horse hears of, transaction by transaction.
    private func heard(_ writes: [(Horse) throws -> Void]) async throws -> [[String]] {
        let horse = try realm.write { realm.create(Horse.self, value: ["_id": 1, "name": "a", "wins": 2]) }
        let (changes, change) = AsyncStream<[String]>.makeStream(bufferingPolicy: .bufferingOldest(16))
        let token = horse.observe { (event: ObjectChange<Horse>) in
            if case .change(_, let properties) = event { change.yield(properties.map(\.name)) }
        }
        var heard: [[String]] = []
        var iterator = changes.makeAsyncIterator()
        for (index, write) in writes.enumerated() {
            try realm.write { try write(horse) }
            // What is sure to be told ends what comes of the write.
            try realm.write { horse.born = Date(timeIntervalSince1970: Double(index)) }
            var names: [String] = []
            while let next = await iterator.next(isolation: #isolation) {
                names += next.filter { $0 != "born" }
                if next.contains("born") { break }
            }
            heard.append(names)
        }
        token.invalidate()
        return heard
    }

    @Test func `all sets what is given though it is the same, modified only what differs`() async throws {
        let realm = realm
        let told = try await heard([
            { _ in realm.create(Horse.self, value: ["_id": 1, "name": "a"], update: .all) },
            { _ in realm.create(Horse.self, value: ["_id": 1, "name": "a"], update: .modified) },
            { _ in realm.create(Horse.self, value: ["_id": 1, "name": "a", "wins": 3], update: .modified) },
            { horse in horse.name = "a" },
        ])
        #expect(told == [["name"], [], ["wins"], ["name"]])
    }

    @Test func `what a dictionary does not name stays, what an object does not say becomes its default`() throws {
        let horse = try realm.write { realm.create(Horse.self, value: ["_id": 1, "name": "a", "wins": 2, "colour": "green"]) }
        for policy in [Realm.UpdatePolicy.all, .modified] {
            try realm.write { realm.create(Horse.self, value: ["_id": 1, "wins": 5], update: policy) }
            #expect(horse.name == "a" && horse.wins == 5 && horse.colour == .green)
        }
        try realm.write { realm.create(Horse.self, value: [1, "b"] as [Any], update: .modified) }
        #expect(horse.name == "b" && horse.wins == 5)
        try realm.write { realm.add(Horse(value: ["_id": 1, "wins": 7]), update: .all) }
        #expect(horse.name == "nobody" && horse.wins == 7 && horse.colour == .red)
    }

    @Test func `the objects of a map are deleted`() throws {
        let crowd = Crowd(value: ["_id": 1])
        crowd.friendMap["a"] = Crowd(value: ["_id": 2])
        crowd.friendMap["b"] = Crowd(value: ["_id": 3])
        crowd.friendMap["nobody"] = .some(nil)
        try realm.write { realm.add(crowd) }
        try realm.write { realm.delete(crowd.friendMap) }
        #expect(realm.objects(Crowd.self).map(\._id) == [1] && crowd.friendMap["a"] == .some(nil))
    }

    /// RealmSwift: `RLMAccessorContext.propertyValue` takes what an array does not have for not given.
    @Test func `an array may be shorter than the list of properties, the others are not given`() throws {
        #expect(Horse(value: [] as [Any]).name == Horse().name && Horse(value: [4]).wins == Horse().wins)
        #expect(Horse(value: [4, "d"]).name == "d")
        let horse = try realm.write { realm.create(Horse.self, value: [1, "a"] as [Any]) }
        #expect(horse._id == 1 && horse.name == "a" && horse.wins == Horse().wins && horse.colour == Horse().colour)
        try realm.write { horse.wins = 9 }
        for policy in [Realm.UpdatePolicy.all, .modified] {
            let same = try realm.write { realm.create(Horse.self, value: [1, "b"] as [Any], update: policy) }
            #expect(same == horse && horse.name == "b" && horse.wins == 9)
        }
    }

    @Test func `NSNull in an update makes what may be nil nil, empties a collection and leaves what is not named`() throws {
        let realm = try Realm(configuration: folder.configuration([Kennel.self, Every.self], file: "null"))
        for policy in [Realm.UpdatePolicy.all, .modified] {
            let value: [String: Any] = ["_id": 1, "optionalInt": 3, "optionalString": "s", "optionalDate": Date(), "ints": [1], "int": 5]
            let every = try realm.write { realm.create(Every.self, value: value, update: .all) }
            let nothing: [String: Any] = [
                "_id": 1, "optionalInt": NSNull(), "optionalString": NSNull(), "optionalDate": NSNull(), "ints": NSNull(),
                "link": NSNull(),
            ]
            try realm.write { realm.create(Every.self, value: nothing, update: policy) }
            #expect(every.optionalInt == nil && every.optionalString == nil && every.optionalDate == nil && every.ints.isEmpty)
            #expect(every.int == 5 && every.link == nil)
            let kennel = try realm.write {
                realm.create(
                    Kennel.self, value: ["_id": 1, "guardDog": ["_id": 1], "home": ["street": "Elm"], "name": "k"] as [String: Any],
                    update: .all)
            }
            try realm.write {
                realm.create(Kennel.self, value: ["_id": 1, "guardDog": NSNull(), "home": NSNull()] as [String: Any], update: policy)
            }
            #expect(kennel.guardDog == nil && kennel.home == nil && kennel.name == "k" && realm.objects(Hound.self).count == 1)
        }
    }

    final class Litter: Object {
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var first: Pup?
        @Persisted var pups: List<Pup>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    final class Pup: Object {
        @Persisted var name: String
        @Persisted var age: Int
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    @Test func `nested objects without a key are made anew by every update`() throws {
        let realm = try Realm(configuration: folder.configuration([Litter.self], file: "keyless"))
        let value: [String: Any] = ["_id": 1, "first": ["name": "a", "age": 3], "pups": [["name": "b"], ["c", 2]]]
        let litter = try realm.write { realm.create(Litter.self, value: value) }
        let first = try #require(litter.first)
        #expect(first.name == "a" && first.age == 3 && litter.pups.map(\.name) == ["b", "c"] && litter.pups.map(\.age) == [0, 2])
        for (index, policy) in [Realm.UpdatePolicy.all, .modified].enumerated() {
            let update: [String: Any] = ["_id": 1, "first": ["name": "d"], "pups": [["name": "b"]]]
            try realm.write { realm.create(Litter.self, value: update, update: policy) }
            #expect(litter.first?.name == "d" && litter.first?.age == 0 && litter.pups.map(\.name) == ["b"])
            #expect(first.name == "a" && !first.isInvalidated && litter.first != first)
            #expect(realm.objects(Pup.self).count == 5 + index * 2)
        }
        // One that is in the Realm already is linked to, not copied.
        try realm.write { realm.create(Litter.self, value: ["_id": 1, "first": first], update: .all) }
        #expect(litter.first == first && realm.objects(Pup.self).count == 7)
    }
}
