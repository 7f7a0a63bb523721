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
}
