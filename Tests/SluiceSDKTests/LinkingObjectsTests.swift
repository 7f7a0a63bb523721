import SluiceReplica
import SluiceSDK
import TestSupport
import Testing

@Suite struct LinkingObjectsTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Realm { try Realm(configuration: folder.configuration([Crowd.self])) }

    @Test func `an object that no Realm manages has none`() {
        let crowd = Crowd()
        let other = Crowd()
        other.friends.append(crowd)
        #expect(crowd.fans.isEmpty && crowd.lovers.count == 0 && crowd.fans.first == nil)
    }

    @Test func `they follow links of every kind`() throws {
        let realm = try open()
        let star = Crowd(value: ["_id": 1])
        let fan = Crowd(value: ["_id": 2])
        try realm.write {
            realm.add(star)
            fan.friends.append(star)
            fan.friend = star
            fan.friendSet.insert(star)
            fan.friendMap["x"] = star
            realm.add(fan)
        }
        #expect(Array(star.fans) == [fan] && Array(star.lovers) == [fan] && Array(star.setFans) == [fan] && Array(star.mapFans) == [fan])
        #expect(fan.fans.isEmpty && star.fans.index(of: fan) == 0 && star.fans.realm == realm)
        let fans = star.fans
        try realm.write {
            fan.friends.append(star)
            // Seen within the transaction too; a second link counts twice.
            #expect(fans.count == 2)
            fan.friend = nil
            fan.friendSet.removeAll()
            fan.friendMap.removeAll()
        }
        #expect(fans.map(\._id) == [2, 2] && star.lovers.isEmpty && star.setFans.isEmpty && star.mapFans.isEmpty)
        try realm.write { realm.delete(fan) }
        #expect(fans.isEmpty)
    }

    /// The oracle: a scan of all objects.
    @Test(arguments: [UInt64(1), 2, 3]) func `random writes leave what a scan finds`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<3 {
            // A new round opens the file anew.
            let realm = try open()
            for _ in 0..<25 {
                realm.beginWrite()
                for _ in 0..<4 {
                    let id = Int.random(in: 0..<8, using: &random)
                    let crowd = realm.create(Crowd.self, value: ["_id": id], update: .modified)
                    let target = realm.create(Crowd.self, value: ["_id": Int.random(in: 0..<8, using: &random)], update: .modified)
                    switch Int.random(in: 0..<6, using: &random) {
                    case 0: crowd.friends.append(target)
                    case 1: crowd.friend = target
                    case 2: crowd.friends.removeAll()
                    case 3: crowd.friendMap["\(id % 3)"] = target
                    case 4: crowd.friendSet.insert(target)
                    default: realm.delete(crowd)
                    }
                }
                if Int.random(in: 0..<5, using: &random) == 0 { realm.cancelWrite() } else { try realm.commitWrite() }
            }
            let all = Array(realm.objects(Crowd.self))
            for crowd in all {
                let fans = all.flatMap { fan in fan.friends.filter { $0 == crowd }.map { _ in fan._id } }
                #expect(crowd.fans.map(\._id).sorted() == fans.sorted(), "seed \(seed)")
                #expect(crowd.lovers.map(\._id).sorted() == all.filter { $0.friend == crowd }.map(\._id).sorted(), "seed \(seed)")
                let bySet = all.filter { $0.friendSet.contains(crowd) }.map(\._id)
                #expect(crowd.setFans.map(\._id).sorted() == bySet.sorted(), "seed \(seed)")
                let byMap = all.flatMap { fan in fan.friendMap.values.filter { $0 == crowd }.map { _ in fan._id } }
                #expect(crowd.mapFans.map(\._id).sorted() == byMap.sorted(), "seed \(seed)")
            }
        }
    }

    class Orphan: Object {
        @Persisted(primaryKey: true) var _id: Int
        @Persisted(originProperty: "nothing") var nobody: LinkingObjects<Crowd>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    class Tag: EmbeddedObject {
        @Persisted var tagged: Tagged?
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    class Tagged: Object {
        @Persisted(primaryKey: true) var _id: Int
        @Persisted(originProperty: "tagged") var tags: LinkingObjects<Tag>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    @Test func `links from embedded objects are refused`() async {
        let end = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            _ = try Realm(configuration: folder.configuration([Tagged.self]))
        }
        #expect(message(end).contains("'Tagged.tags' is the inverse of links from the embedded class 'Tag'"))
    }

    @Test func `an origin that does not exist ends the program`() async {
        let end0 = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            _ = try Realm(configuration: folder.configuration([Orphan.self]))
        }
        #expect(message(end0).contains("'Crowd.nothing' declared as origin of linking objects property 'Orphan.nobody' does not exist"))
    }
}
