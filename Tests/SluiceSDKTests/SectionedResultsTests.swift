import Dispatch
import Foundation
import SluiceSDK
import Synchronization
import TestSupport
import Testing

@Suite struct SectionedResultsTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private struct Heard: Sendable, Equatable {
        var deletions: [IndexPath] = []
        var insertions: [IndexPath] = []
        var modifications: [IndexPath] = []
        var sectionsToInsert = IndexSet()
        var sectionsToDelete = IndexSet()
    }

    /// Observes on a queue; nil stands for the initial state.
    private final class Listener {
        private var iterator: AsyncStream<Heard?>.Iterator
        let token: NotificationToken

        init<Key, Element>(_ sections: SectionedResults<Key, Element>) {
            let (events, continuation) = AsyncStream<Heard?>.makeStream(bufferingPolicy: .bufferingOldest(64))
            iterator = events.makeAsyncIterator()
            token = sections.observe(on: DispatchQueue(label: "observer")) { continuation.yield(Listener.heard($0)) }
        }

        init<Key, Element>(_ section: ResultsSection<Key, Element>) {
            let (events, continuation) = AsyncStream<Heard?>.makeStream(bufferingPolicy: .bufferingOldest(64))
            iterator = events.makeAsyncIterator()
            token = section.observe(on: DispatchQueue(label: "observer")) { continuation.yield(Listener.heard($0)) }
        }

        private static func heard<C>(_ change: SectionedResultsChange<C>) -> Heard? {
            switch change {
            case .initial: nil
            case .update(_, let deletions, let insertions, let modifications, let sectionsToInsert, let sectionsToDelete):
                Heard(
                    deletions: deletions, insertions: insertions, modifications: modifications, sectionsToInsert: sectionsToInsert,
                    sectionsToDelete: sectionsToDelete)
            }
        }

        func next() async -> Heard? { await iterator.next(isolation: #isolation) ?? nil }
    }

    private func hounds(_ realm: Realm, _ names: [String]) throws -> [Terrier] {
        try realm.write { names.enumerated().map { realm.create(Terrier.self, value: ["_id": $0, "name": $1]) } }
    }

    private func open() throws -> Realm { try Realm(configuration: folder.configuration([Walker.self, Terrier.self])) }

    private func initial(_ hound: Terrier) -> String { String(hound.name.prefix(1)) }

    @Test func `elements stand in sections by a property or by what a block says`() throws {
        let realm = try open()
        let hounds = try hounds(realm, ["any", "zebra", "apple", "zulu", "banana"])
        let sections = realm.objects(Terrier.self).sectioned(by: initial, sortDescriptors: [SortDescriptor(keyPath: "name")])
        #expect(sections.allKeys == ["a", "b", "z"] && sections.count == 3 && sections.map(\.key) == ["a", "b", "z"])
        #expect(sections.map { $0.map(\.name) } == [["any", "apple"], ["banana"], ["zebra", "zulu"]])
        #expect(sections[0].id == "a" && sections[2].count == 2 && sections[IndexPath(indexes: [2, 1])].name == "zulu")
        let ages = realm.objects(Terrier.self).sectioned(by: \.age, ascending: false)
        try realm.write { for (index, hound) in hounds.enumerated() { hound.age = index % 2 } }
        #expect(ages.allKeys == [1, 0] && ages[0].map(\._id) == [1, 3])
        let both = realm.objects(Terrier.self).sectioned(
            by: \.age, sortDescriptors: [SortDescriptor(keyPath: "age"), SortDescriptor(keyPath: "name", ascending: false)])
        #expect(both.map { $0.map(\.name) } == [["banana", "apple", "any"], ["zulu", "zebra"]])
        let frozen = both.freeze()
        let section = both[1]
        try realm.write { realm.delete(hounds[1]) }
        #expect(frozen.isFrozen && frozen[1].count == 2 && section.count == 1 && frozen.thaw()?.count == 2)
        try realm.write { realm.delete(hounds[3]) }
        #expect(section.isEmpty && both.count == 1)
        let walker = try realm.write { realm.create(Walker.self, value: ["_id": 1, "scores": [5, 2, 4, 1]]) }
        let parity = walker.scores.sectioned(by: { $0 % 2 == 0 }, ascending: true)
        #expect(parity.allKeys == [false, true] && parity.map { Array($0) } == [[1, 5], [2, 4]])
    }

    @Test func `sections tell what has changed`() async throws {
        let realm = try open()
        let sections = realm.objects(Terrier.self).sectioned(by: initial, sortDescriptors: [SortDescriptor(keyPath: "name")])
        let listener = Listener(sections)
        #expect(await listener.next() == nil)
        let hounds = try hounds(realm, ["any", "zebra", "apple", "zulu", "banana"])
        #expect(
            await listener.next()
                == Heard(insertions: [[0, 0], [0, 1], [1, 0], [2, 0], [2, 1]], sectionsToInsert: [0, 1, 2]))
        let beans = try realm.write { realm.create(Terrier.self, value: ["_id": 9, "name": "beans"]) }
        #expect(await listener.next() == Heard(insertions: [[1, 1]]))
        let section = Listener(sections[0])
        #expect(await section.next() == nil)
        try realm.write { realm.delete(hounds[4]) }
        #expect(await listener.next() == Heard(deletions: [[1, 0]]))
        try realm.write { beans.name = "breakfast" }
        #expect(await listener.next() == Heard(modifications: [[1, 0]]))
        try realm.write { beans.name = "all" }
        #expect(await listener.next() == Heard(insertions: [[0, 0]], sectionsToDelete: [1]))
        #expect(await section.next() == Heard(insertions: [[0, 0]]))
        try realm.write { for hound in sections[0] { hound.name = "max" } }
        #expect(
            await listener.next() == Heard(insertions: [[0, 0], [0, 1], [0, 2]], sectionsToInsert: [0], sectionsToDelete: [0]))
        #expect(await section.next() == Heard(sectionsToDelete: [0]))
    }

    /// The oracle: an array of arrays that replays what is told and is then what the sections hold.
    /// In the second order sections are mixed.
    @Test(arguments: [UInt64(1), 2, 3, 4], [["name", "_id"], ["_id"]])
    func `changes replay to sections under random writes`(seed: UInt64, order: [String]) async throws {
        var random = SplitMix64(seed: seed)
        let realm = try open()
        let sections = realm.objects(Terrier.self).sectioned(
            by: initial, sortDescriptors: order.map { SortDescriptor(keyPath: $0) })
        func state() -> [(key: String, items: [[Int]])] { sections.map { ($0.key, $0.map { [$0._id, $0.age] }) } }
        let listener = Listener(sections)
        #expect(await listener.next() == nil)
        // Something changes in every round, so that each is told about once.
        let always = try realm.write { realm.create(Terrier.self, value: ["_id": 8, "name": "b"]) }
        #expect(await listener.next() != nil)
        for round in 0..<60 {
            let before = state()
            try realm.write {
                always.age += 1
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    let id = Int.random(in: 0..<8, using: &random)
                    let hound = realm.object(ofType: Terrier.self, forPrimaryKey: id)
                    if let hound, Int.random(in: 0..<4, using: &random) == 0 {
                        realm.delete(hound)
                    } else if let hound, Bool.random(using: &random) {
                        hound.age += 1
                    } else {
                        let name = "abc".randomElement(using: &random).map { "\($0)\(Int.random(in: 0..<3, using: &random))" } ?? ""
                        _ = realm.create(Terrier.self, value: ["_id": id, "name": name, "age": hound?.age ?? 0], update: .modified)
                    }
                }
            }
            let after = state()
            let heard = try #require(await listener.next())
            #expect(replay(heard, before, after) == after.map(\.items), "seed \(seed) round \(round)")
        }
    }

    @Test func `while sections are observed the block is asked about what is new or changed`() async throws {
        let realm = try open()
        let hounds = try hounds(realm, (0..<50).map { "\($0 % 10)" })
        let asked = Mutex<[Int]>([])
        let sections = realm.objects(Terrier.self).sectioned(
            by: { hound in
                asked.withLock { $0.append(hound._id) }
                return hound.name
            }, sortDescriptors: [SortDescriptor(keyPath: "name")])
        let listener = Listener(sections)
        #expect(await listener.next() == nil)
        asked.withLock { $0 = [] }
        try realm.write { hounds[7].age = 3 }
        #expect(await listener.next() == Heard(modifications: [[7, 0]]))
        try realm.write { hounds[11].name = "3" }
        #expect(await listener.next() == Heard(deletions: [[1, 1]], insertions: [[3, 1]]))
        #expect(asked.withLock { $0 } == [7, 11])
    }

    private func replay(
        _ heard: Heard, _ before: [(key: String, items: [[Int]])], _ after: [(key: String, items: [[Int]])]
    ) -> [[[Int]]] {
        var sections: [[[Int]]] = before.map(\.items)
        for path in heard.deletions.reversed() { sections[path[0]].remove(at: path[1]) }
        for section in heard.sectionsToDelete.reversed() { sections.remove(at: section) }
        for section in heard.sectionsToInsert { sections.insert([], at: section) }
        for path in heard.insertions { sections[path[0]].insert(after[path[0]].items[path[1]], at: path[1]) }
        for path in heard.modifications { sections[path[0]][path[1]] = after[path[0]].items[path[1]] }
        return sections
    }
}
