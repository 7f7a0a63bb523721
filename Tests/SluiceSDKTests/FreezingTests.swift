import Foundation
import SluiceSDK
import Testing

/// Hands something over that the compiler cannot know to be safe.
struct Sent<Content>: @unchecked Sendable {  // Sendable because: the tests send what is frozen, which any thread may read.
    let content: Content
    init(_ content: Content) { self.content = content }
}

/// Runs the body on a thread of its own, outside of tasks and queues of actors.
func onThread<R>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
    let result = await withCheckedContinuation { (done: CheckedContinuation<Sent<Result<R, any Error>>, Never>) in
        Thread { done.resume(returning: Sent(Result { try body() })) }.start()
    }
    return try result.content.get()
}

@Suite struct FreezingTests {
    let folder: TemporaryFolder
    let configuration: Realm.Configuration
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        configuration = folder.configuration([Resident.self, Horse.self, Crowd.self])
        realm = try Realm(configuration: configuration)
    }

    private func horse(_ id: Int, _ name: String) throws -> Horse {
        try realm.write { realm.create(Horse.self, value: ["_id": id, "name": name]) }
    }

    @Test func `a frozen object stays as it was, and the live one moves on`() throws {
        let horse = try horse(1, "a")
        let frozen = horse.freeze()
        #expect(frozen.isFrozen && frozen.realm?.isFrozen == true && !horse.isFrozen && !realm.isFrozen)
        try realm.write { horse.name = "b" }
        try realm.write { realm.delete(horse) }
        #expect(frozen.name == "a" && !frozen.isInvalidated && horse.isInvalidated)
        #expect(frozen.freeze() === frozen)
        #expect(frozen.thaw() == nil)
    }

    @Test func `freezing does not move the Realm, and freezing one state twice gives one Realm`() async throws {
        let horse = try horse(1, "a")
        let configuration = configuration
        try await onThread {
            let other = try Realm(configuration: configuration)
            try other.write { other.objects(Horse.self).first?.name = "from elsewhere" }
        }
        let frozen = realm.freeze()
        #expect(frozen == realm.freeze() && frozen.objects(Horse.self).first?.name == "a" && horse.name == "a")
        realm.refresh()
        #expect(horse.name == "from elsewhere" && frozen != realm.freeze())
        #expect(frozen.objects(Horse.self).map(\.name) == ["a"])
        #expect(frozen.thaw().objects(Horse.self).first?.name == "from elsewhere")
    }

    @Test func `results and collections freeze with everything in them`() throws {
        let crowd = try realm.write {
            realm.create(
                Crowd.self,
                value: [
                    "_id": 1, "optionalInts": [1, 2], "intSet": [3], "intMap": ["a": 4], "friends": [["_id": 2]], "friend": ["_id": 2],
                ] as [String: Any], update: .modified)
        }
        let (list, set, map, friends) = (
            crowd.optionalInts.freeze(), crowd.intSet.freeze(), crowd.intMap.freeze(), crowd.friends.freeze()
        )
        let fans = try #require(crowd.friends.first).fans.freeze()
        let results = realm.objects(Crowd.self).where { $0._id > 0 }.sorted(byKeyPath: "_id", ascending: false).freeze()
        try realm.write {
            crowd.optionalInts.removeAll()
            crowd.intSet.removeAll()
            crowd.intMap["a"] = nil
            realm.deleteAll()
        }
        #expect(Array(list) == [1, 2] && Array(set) == [3] && map["a"] == 4 && friends.first?._id == 2 && fans.map(\._id) == [1])
        #expect(results.map(\._id) == [2, 1] && results.isFrozen && list.isFrozen && set.isFrozen && map.isFrozen && fans.isFrozen)
        #expect(results.last?.friend?._id == 2 && results.where { $0._id == 2 }.count == 1)
        #expect(list.thaw() == nil && results.thaw()?.count == 0)
    }

    @Test func `embedded objects freeze`() throws {
        let resident = try realm.write {
            realm.create(
                Resident.self,
                value: ["_id": 1, "home": ["street": "Elm", "former": [["code": "DE"]]], "others": [["street": "Oak"]]] as [String: Any])
        }
        let home = try #require(resident.home).freeze()
        let country = try #require(resident.home?.former.first).freeze()
        let other = try #require(resident.others.first).freeze()
        try realm.write {
            resident.home?.street = "Ash"
            resident.others.removeAll()
        }
        #expect(home.street == "Elm" && country.code == "DE" && other.street == "Oak" && home.isFrozen)
        #expect(home.thaw()?.street == "Ash" && other.thaw() == nil)
        try realm.write { home.thaw()?.street = "Elder" }
        #expect(resident.home?.street == "Elder")
    }

    @Test func `many threads read a frozen Realm while the live one is written`() async throws {
        for id in 0..<200 { _ = try horse(id, "horse \(id)") }
        let results = Sent(realm.objects(Horse.self).freeze())
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await onThread {
                        let narrow = results.content.where { $0.name.contains("horse 1") }
                        return results.content.reduce(0) { $0 + $1._id } + narrow.count
                    }
                }
            }
            try realm.write { realm.deleteAll() }
            for try await sum in group { #expect(sum == 199 * 100 + 111) }
        }
    }

    @Test func `misuse ends the program`() async {
        let writes = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let realm = try Realm(configuration: TemporaryFolder().configuration([Horse.self]))
            let horse = try realm.write { realm.create(Horse.self, value: ["_id": 1]) }.freeze()
            horse.name = "b"
        }
        #expect(message(writes).contains("Attempting to modify a frozen object - call thaw on the Object instance first."))
        let transaction = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Realm(configuration: TemporaryFolder().configuration([Horse.self])).freeze().write {}
        }
        #expect(message(transaction).contains("Can't perform transactions on a frozen Realm"))
        let observes = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let realm = try Realm(configuration: TemporaryFolder().configuration([Horse.self]))
            _ = realm.objects(Horse.self).freeze().observe { _ in }
        }
        #expect(message(observes).contains("Frozen Realms do not change and do not have change notifications."))
        let unmanaged = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = Horse().freeze() }
        #expect(message(unmanaged).contains("Unmanaged objects cannot be frozen."))
    }
}
