import Foundation
import SluiceSDK
import Synchronization
import Testing

/// The texts that Swift's key paths stand for.
@Suite struct KeyPathNameTests {
    @Test func `a property's key path is its name`() {
        #expect(_name(for: \Horse.wins) == "wins" && _name(for: \Crowd.intMap) == "intMap" && _name(for: \Crowd.fans) == "fans")
        #expect(_name(for: \Terrier.size) == "size" && _name(for: \Mixed.any) == "any" && _name(for: \Custom.point) == "point")
    }

    @Test func `inherited properties have names, asking for one that is not stored ends the program`() async {
        #expect(_name(for: \Horse.name) == "name" && _name(for: \Horse._id) == "_id")
        let end = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = _name(for: \Horse.rider) }
        #expect(message(end).contains("leads to no @Persisted property."))
    }

    @Test func `links are followed, whether they may be nil or are said to be there`() {
        #expect(_name(for: \Walker.favourite?.name) == "favourite.name" && _name(for: \Walker.favourite!.age) == "favourite.age")
        #expect(_name(for: \Crowd.friend?.friend?.friend?._id) == "friend.friend.friend._id")
        #expect(_name(for: \Walker.favourite?.chip?.city) == "favourite.chip.city" && _name(for: \Address.country?.code) == "country.code")
    }

    @Test func `collections are gone into by an index, or by a key`() {
        #expect(_name(for: \Walker.hounds[0].name) == "hounds.name" && _name(for: \Walker.pack[3].age) == "pack.age")
        #expect(_name(for: \Terrier.walkers[0].favourite?.age) == "walkers.favourite.age")
        #expect(_name(for: \Walker.kennels[0].beds) == "kennels.beds" && _name(for: \Walker.scores[2]) == "scores")
    }

    @Test func `a key path that computes stands for what it reads`() {
        #expect(_name(for: \Horse.name.count) == "name" && _name(for: \Walker.hounds.count) == "hounds")
    }

    /// Looking into an object by reflection takes half a microsecond for each property: that happens once for each class.
    @Test func `a class is looked at once, not for every name or object`() throws {
        let folder = try TemporaryFolder()
        let realm = try Realm(configuration: folder.configuration([Counting.self]))
        _ = _name(for: \Counting.number)
        let before = Counting.made.load(ordering: .relaxed)
        for _ in 0..<100 { #expect(_name(for: \Counting.number) == "number") }
        #expect(realm.objects(Counting.self).where { $0.number > 3 && $0._id < 9 }.count == 0)
        #expect(Counting.made.load(ordering: .relaxed) == before)
        try realm.write { for id in 0..<10 { realm.add(Counting(value: ["_id": id])) } }
        #expect(Counting.made.load(ordering: .relaxed) == before + 10)
        #expect(Array(realm.objects(Counting.self)).count == 10)
        #expect(Counting.made.load(ordering: .relaxed) == before + 20)
    }

    /// Counts how many objects of it are made, by whomever.
    private final class Counting: Object {
        static let made = Atomic<Int>(0)

        @Persisted(primaryKey: true) var _id: Int
        @Persisted var number: Int

        required init() {
            super.init()
            Counting.made.add(1, ordering: .relaxed)
        }

        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    @Test func `generic code gets names too`() {
        func name<T: Object, V: _Persistable>(_ path: KeyPath<T, V>) -> String { _name(for: path) }
        #expect(name(\Horse.wins) == "wins" && name(\Walker.favourite?.name) == "favourite.name")
    }
}
