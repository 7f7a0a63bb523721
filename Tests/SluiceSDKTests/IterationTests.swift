import Foundation
import SluiceSDK
import Testing

/// Going through the entries of a map, and through results and collections of any type.
@Suite struct IterationTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: folder.configuration([Crowd.self]))
    }

    /// One crowd, added to the Realm or not, with three entries.
    private func crowd(isManaged: Bool) throws -> Crowd {
        let crowd = Crowd(value: ["_id": 1, "intMap": ["b": 2, "a": 1, "c": 3]])
        if isManaged { try realm.write { realm.add(crowd) } }
        return crowd
    }

    @Test(arguments: [false, true]) func `a map's entries are keys with their values, in the keys' order`(isManaged: Bool) throws {
        let map = try crowd(isManaged: isManaged).intMap
        var iterator: RLMMapIterator<SingleMapEntry<String, Int>> = map.makeIterator()
        let entries = [iterator.next(), iterator.next(), iterator.next(), iterator.next()]
        #expect(entries.map { $0?.key } == ["a", "b", "c", nil] && entries.map { $0?.value } == [1, 2, 3, nil])
        var sum = 0
        for entry in map where entry.key != "b" { sum += entry.value }
        #expect(sum == 4 && map.map(\.key) == ["a", "b", "c"] && map.reduce(0) { $0 + $1.value } == 6)
    }

    @Test func `entries are equal by key and value`() throws {
        let (one, other) = (try crowd(isManaged: false), try crowd(isManaged: true))
        #expect(Array(one.intMap) == Array(other.intMap) && Set(one.intMap).union(other.intMap).count == 3)
        try realm.write { other.intMap["a"] = 9 }
        #expect(zip(one.intMap, other.intMap).map { $0 == $1 } == [false, true, true])
    }

    @Test func `a Realm that moves on by use shows what it has just counted, and no error where something is gone since`() async throws {
        let configuration = folder.configuration([Horse.self], file: "moving")
        try await Self.moving(configuration)
    }

    /// A task without an actor.
    @concurrent private static func moving(_ configuration: Realm.Configuration) async throws {
        let realm = try await Realm(configuration: configuration)
        try realm.write { for id in 0..<10 { realm.create(Horse.self, value: ["_id": id, "name": "h\(id)"]) } }
        let horses = realm.objects(Horse.self)
        let count = horses.count
        try await delete(configuration, from: 5)
        #expect((0..<count).map { horses[$0].name } == (0..<10).map { "h\($0)" })
        let left = horses.count
        #expect(left == 5)
        try await delete(configuration, from: 2)
        _ = realm.object(ofType: Horse.self, forPrimaryKey: 1)
        #expect((0..<left).map { horses[$0].name } == ["h0", "h1", "nobody", "nobody", "nobody"])
        #expect(horses.last?._id == 1 && Array(horses).count == 2 && horses.map(\._id) == [0, 1])
        #expect(!horses.isEmpty)
        try await delete(configuration, from: 0)
        #expect(horses.last == nil && Array(AnyRealmCollection(horses)).isEmpty && horses.map(\._id).isEmpty)
    }

    @Test func `so do lists, sets and inverse links of a Realm that moves on by use`() async throws {
        try await Self.movingInside(folder.configuration([Walker.self, Terrier.self], file: "inside"))
    }

    @concurrent private static func movingInside(_ configuration: Realm.Configuration) async throws {
        let realm = try await Realm(configuration: configuration)
        try realm.write {
            let terriers = (0..<6).map { realm.create(Terrier.self, value: ["_id": $0, "name": "t\($0)"]) }
            for id in 0..<4 { realm.create(Walker.self, value: ["_id": id, "hounds": terriers, "pack": terriers]) }
        }
        let walker = try #require(realm.object(ofType: Walker.self, forPrimaryKey: 0))
        let walkers = try #require(realm.object(ofType: Terrier.self, forPrimaryKey: 0)).walkers
        #expect(walker.hounds.count == 6 && walker.pack.count == 6 && walkers.count == 4)
        try await delete(configuration, from: 2)
        _ = realm.object(ofType: Walker.self, forPrimaryKey: 1)
        #expect((0..<6).map { walker.hounds[$0].name } == ["t0", "t1", "", "", "", ""])
        #expect((0..<6).map { walker.pack[$0].name }.filter { !$0.isEmpty }.count == 2)
        #expect((0..<4).map { walkers[$0]._id }.sorted() == [0, 0, 0, 1])
        #expect(walker.hounds.map(\._id) == [0, 1] && Array(walker.pack).count == 2)
        #expect(Set(walkers.map(\._id)) == [0, 1] && Array(walkers).count == 2 && walkers.last != nil)
    }

    /// As another program would, or the gateway.
    private static func delete(_ configuration: Realm.Configuration, from id: Int) async throws {
        try await onThread {
            let realm = try Realm(configuration: configuration)
            try realm.write {
                for objectClass in configuration.objectTypes ?? [] {
                    guard let name = (objectClass as? Object.Type)?.className() else { continue }
                    realm.delete(realm.dynamicObjects(name).filter("_id >= %@", id))
                }
            }
        }
    }

    @Test func `an iteration goes through what was there when it began`() throws {
        let map = try crowd(isManaged: true).intMap
        var keys: [String] = []
        try realm.write {
            for entry in map {
                keys.append(entry.key)
                map["x\(entry.key)"] = 0
                map.removeObject(for: entry.key)
            }
        }
        #expect(keys == ["a", "b", "c"] && map.keys == ["xa", "xb", "xc"])
    }

    @Test func `enumerations are keys, and links are values`() throws {
        let crowd = try crowd(isManaged: true)
        try realm.write {
            crowd.cornerMap[.south] = .small
            crowd.friendMap["me"] = crowd
            crowd.friendMap["nobody"] = .some(nil)
        }
        #expect(crowd.cornerMap.map { "\($0.key) \($0.value)" } == ["south small"])
        #expect(crowd.friendMap.map { $0.value?._id } == [1, nil])
    }

    @Test func `results and collections of any type are gone through by one iterator`() throws {
        let crowd = try crowd(isManaged: true)
        try realm.write { crowd.friends.append(objectsIn: [crowd, Crowd(value: ["_id": 2])]) }
        var results: RLMIterator<Crowd> = realm.objects(Crowd.self).makeIterator()
        #expect([results.next(), results.next(), results.next()].map { $0?._id } == [1, 2, nil])
        var any: RLMIterator<Crowd> = AnyRealmCollection(crowd.friends).makeIterator()
        #expect([any.next(), any.next(), any.next()].map { $0?._id } == [1, 2, nil])
    }
}
