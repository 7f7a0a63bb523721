import Dispatch
import Foundation
import SluiceSDK
import Synchronization
import TestSupport
import Testing

/// What the tests hear of a collection.
private struct Heard: Sendable, Equatable {
    var isInitial = false
    var deletions: [Int] = []
    var insertions: [Int] = []
    var modifications: [Int] = []

    static func update(_ deletions: [Int] = [], _ insertions: [Int] = [], _ modifications: [Int] = []) -> Heard {
        Heard(deletions: deletions, insertions: insertions, modifications: modifications)
    }
}

@Suite struct CollectionObservationTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() async throws -> (Realm, Walker) {
        let realm = try PredicateTests.fill(folder)
        guard let walker = realm.object(ofType: Walker.self, forPrimaryKey: 1) else { throw CancellationError() }
        return (realm, walker)
    }

    /// Observes on a queue; `next` waits for the next notification.
    private final class Listener {
        private var iterator: AsyncStream<Heard>.Iterator
        let token: NotificationToken

        init<C: RealmCollection>(_ collection: C, keyPaths: [String]? = nil) {
            let (events, continuation) = AsyncStream<Heard>.makeStream(bufferingPolicy: .bufferingOldest(64))
            iterator = events.makeAsyncIterator()
            token = collection.observe(keyPaths: keyPaths, on: DispatchQueue(label: "observer")) { change in
                switch change {
                case .initial: continuation.yield(Heard(isInitial: true))
                case .update(_, let deletions, let insertions, let modifications):
                    continuation.yield(.update(deletions, insertions, modifications))
                case .error: continuation.finish()
                }
            }
        }

        func next() async -> Heard? { await iterator.next(isolation: #isolation) }
    }

    @Test func `lists tell what was set, moved and taken out`() async throws {
        let (realm, walker) = try await open()
        let scores = Listener(walker.scores)
        #expect(await scores.next()?.isInitial == true)
        try realm.write { walker.scores[1] = 7 }
        #expect(await scores.next() == .update([], [], [1]))
        try realm.write { walker.scores.insert(9, at: 0) }
        #expect(await scores.next() == .update([], [0]))
        try realm.write { walker.scores.remove(at: 2) }
        #expect(await scores.next() == .update([2]))
        try realm.write { walker.scores.append(objectsIn: [3, 3]) }
        #expect(await scores.next() == .update([], [4, 5]))
        let hounds = Listener(walker.hounds)
        #expect(await hounds.next()?.isInitial == true)
        try realm.write { walker.hounds[1].age = 6 }
        #expect(await hounds.next() == .update([], [], [1]))
        try realm.write { walker.hounds[0].age = 6 }
        #expect(await hounds.next() == .update([], [], [0, 2]))
        try realm.write { walker.hounds.removeFirst() }
        #expect(await hounds.next() == .update([0]))
        let kennels = Listener(walker.kennels)
        #expect(await kennels.next()?.isInitial == true)
        try realm.write { walker.kennels[1].beds = 8 }
        #expect(await kennels.next() == .update([], [], [1]))
        try realm.write { realm.delete(walker) }
        #expect(await kennels.next() == .update([0, 1]))
    }

    @Test func `sets, inverse links and narrowed collections tell too`() async throws {
        let (realm, walker) = try await open()
        let words = Listener(walker.words)
        let fans = Listener(walker.hounds[1].walkers)
        let young = Listener(walker.hounds.filter("age < 5").sorted(byKeyPath: "name"))
        let blocks = Listener(realm.objects(Terrier.self).filter(NSPredicate { hound, _ in (hound as? Terrier)?.name.count == 3 }))
        for listener in [words, fans, young, blocks] { #expect(await listener.next()?.isInitial == true) }
        try realm.write { walker.words.insert("tre") }
        #expect(await words.next() == .update([], [1]))
        #expect(await fans.next() == .update([], [], [0]))
        let second = try #require(realm.object(ofType: Walker.self, forPrimaryKey: 2))
        try realm.write { second.hounds.append(walker.hounds[1]) }
        #expect(await fans.next() == .update([], [1]))
        try realm.write { walker.hounds[1].age = 1 }
        #expect(await young.next() == .update([], [2]))
        try realm.write { walker.hounds[1].name = "Leo" }
        #expect(await blocks.next() == .update([], [1]))
        let through = Listener(realm.objects(Walker.self).filter("favourite.age > 5"))
        #expect(await through.next()?.isInitial == true)
        try realm.write { walker.favourite?.age = 8 }
        #expect(await through.next() == .update([], [0]))
    }

    @Test func `changes behind links are heard four objects deep`() async throws {
        let realm = try await Realm(configuration: folder.configuration([Crowd.self]))
        let chain = try realm.write {
            let chain = (0..<7).map { realm.create(Crowd.self, value: ["_id": $0]) }
            for index in 0..<6 { chain[index].friend = chain[index + 1] }
            return chain
        }
        let first = Listener(realm.objects(Crowd.self).filter("_id == 0"))
        let paths = Listener(realm.objects(Crowd.self).filter("_id == 0"), keyPaths: ["friend.intMap", "friends"])
        let near = Listener(realm.objects(Crowd.self).filter("_id == 0"), keyPaths: ["friend"])
        for listener in [first, paths, near] { #expect(await listener.next()?.isInitial == true) }
        for index in [5, 4] { try realm.write { chain[index].friends.append(chain[0]) } }
        // The fifth link is too far; the fourth is not.
        #expect(await first.next() == .update([], [], [0]))
        try realm.write { chain[1].intMap["x"] = 1 }
        #expect(await paths.next() == .update([], [], [0]))
        #expect(await first.next() == .update([], [], [0]))
        try realm.write { chain[0].friends.append(chain[1]) }
        #expect(await paths.next() == .update([], [], [0]))
        try realm.write { chain[0].friend = chain[2] }
        #expect(await near.next() == .update([], [], [0]))
        #expect(await paths.next() == .update([], [], [0]))
    }

    /// The oracle goes the links forwards from every element.
    @Test(arguments: seeds(1)) func `in large results exactly those are told that lead to what has changed`(_ seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let realm = try await Realm(configuration: folder.configuration([Crowd.self]))
        try realm.write {
            let all = (0..<600).map { realm.create(Crowd.self, value: ["_id": $0]) }
            for one in all {
                switch random.below(6) {
                case 0, 1: one.friend = all[random.below(600)]
                case 2: one.friends.append(all[random.below(600)])
                case 3: one.friendSet.insert(all[random.below(600)])
                case 4: one.friendMap["x"] = all[random.below(600)]
                default: break
                }
            }
        }
        let elements = realm.objects(Crowd.self).filter("_id < 590")
        let links = Dictionary(
            uniqueKeysWithValues: realm.objects(Crowd.self).map { one in
                let map = one.friendMap.values.compactMap { $0?._id }
                return (one._id, [one.friend?._id].compactMap(\.self) + one.friends.map(\._id) + one.friendSet.map(\._id) + map)
            })
        let listener = Listener(elements)
        #expect(await listener.next()?.isInitial == true)
        for round in 0..<8 {
            let changed = Set((0..<(round % 2 == 0 ? 3 : 40)).map { _ in random.below(600) })
            try realm.write { for id in changed { realm.object(ofType: Crowd.self, forPrimaryKey: id)?.intMap["x"] = round } }
            let expected = (0..<590).filter { id in
                var reached: Set<Int> = [id]
                for _ in 0..<4 { reached.formUnion(reached.flatMap { links[$0] ?? [] }) }
                return !reached.isDisjoint(with: changed)
            }
            #expect(await listener.next() == .update([], [], expected), "seed \(seed), round \(round)")
        }
    }

    @Test func `maps tell keys`() async throws {
        let (realm, walker) = try await open()
        struct Keys: Sendable, Equatable { var deletions: [String] = [], insertions: [String] = [], modifications: [String] = [] }
        func listen<M: RealmKeyedCollection>(_ map: M) -> (AsyncStream<Keys>.Iterator, NotificationToken) where M.Key == String {
            let (events, continuation) = AsyncStream<Keys>.makeStream(bufferingPolicy: .bufferingOldest(64))
            let token = map.observe(on: DispatchQueue(label: "observer")) { change in
                switch change {
                case .initial: continuation.yield(Keys())
                case .update(_, let deletions, let insertions, let modifications):
                    continuation.yield(Keys(deletions: deletions, insertions: insertions, modifications: modifications))
                case .error: continuation.finish()
                }
            }
            return (events.makeAsyncIterator(), token)
        }
        var (points, token) = listen(walker.points)
        var (hounds, second) = listen(walker.byName)
        #expect(await points.next() == Keys())
        #expect(await hounds.next() == Keys())
        try realm.write {
            walker.points["x"] = nil
            walker.points["y"] = 1
            walker.points["z"] = 1
        }
        #expect(await points.next() == Keys(deletions: ["x"], insertions: ["z"], modifications: ["y"]))
        try realm.write { walker.byName["a"]??.age = 4 }
        #expect(await hounds.next() == Keys(modifications: ["a"]))
        token.invalidate()
        second.invalidate()
    }

    @MainActor @Test func `actors hear of collections in their own Realm`() async throws {
        let realm = try await Realm(configuration: folder.configuration([Walker.self, Terrier.self]))
        let (events, continuation) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingOldest(16))
        let token = await realm.objects(Terrier.self).observe(on: MainActor.shared) { actor, change in
            actor.assertIsolated()
            switch change {
            case .initial(let hounds), .update(let hounds, _, _, _): continuation.yield(hounds.count)
            case .error: continuation.finish()
            }
        }
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == 0)
        try realm.write { _ = realm.create(Terrier.self, value: ["_id": 1]) }
        #expect(await iterator.next() == 1)
        token.invalidate()
    }

    /// The oracle: a plain array that replays deletions and insertions, takes the new element where one was modified, and is
    /// then what the list is; and which elements were modified, found out from the objects' values before and after.
    @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6])
    func `indices replay to lists under random writes`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let realm = try await Realm(configuration: folder.configuration([Walker.self, Terrier.self]))
        let walker = try realm.write {
            for id in 0..<5 { _ = realm.create(Terrier.self, value: ["_id": id, "age": id]) }
            return realm.create(Walker.self, value: ["_id": 1])
        }
        let scores = Listener(walker.scores)
        let hounds = Listener(walker.hounds)
        let sorted = Listener(walker.hounds.sorted(byKeyPath: "age"))
        for listener in [scores, hounds, sorted] { #expect(await listener.next()?.isInitial == true) }
        func state() -> [[[Int]]] {
            [
                walker.scores.map { [$0] }, walker.hounds.map { [$0._id, $0.age] },
                walker.hounds.sorted(byKeyPath: "age").map { [$0._id, $0.age] },
            ]
        }
        for round in 0..<60 {
            let before = state()
            try realm.write {
                for _ in 0..<Int.random(in: 1...3, using: &random) { change(walker, realm, &random) }
            }
            let after = state()
            for (index, listener) in [scores, hounds, sorted].enumerated() where before[index] != after[index] {
                let heard = try #require(await listener.next())
                var replay = before[index].map { Optional($0) }
                for deletion in heard.deletions.reversed() { replay.remove(at: deletion) }
                for insertion in heard.insertions { replay.insert(nil, at: insertion) }
                let kept = replay
                for place in heard.insertions + heard.modifications { replay[place] = after[index][place] }
                #expect(replay.map { $0 } == after[index].map { $0 }, "seed \(seed) round \(round) collection \(index)")
                // What is called modified is another one than before.
                for place in heard.modifications { #expect(kept[place] != after[index][place], "seed \(seed) round \(round) \(index)") }
                #expect(heard.deletions == heard.deletions.sorted() && heard.insertions == heard.insertions.sorted())
            }
        }
    }

    private func change(_ walker: Walker, _ realm: Realm, _ random: inout SplitMix64) {
        let hound = realm.objects(Terrier.self)[Int.random(in: 0..<5, using: &random)]
        switch Int.random(in: 0..<7, using: &random) {
        case 0: walker.scores.insert(Int.random(in: 0..<4, using: &random), at: Int.random(in: 0...walker.scores.count, using: &random))
        case 1 where !walker.scores.isEmpty: walker.scores.remove(at: Int.random(in: 0..<walker.scores.count, using: &random))
        case 2 where !walker.scores.isEmpty:
            walker.scores[Int.random(in: 0..<walker.scores.count, using: &random)] = Int.random(in: 0..<4, using: &random)
        case 3: walker.hounds.insert(hound, at: Int.random(in: 0...walker.hounds.count, using: &random))
        case 4 where walker.hounds.count > 1:
            walker.hounds.move(
                from: Int.random(in: 0..<walker.hounds.count, using: &random), to: Int.random(in: 0..<walker.hounds.count, using: &random))
        case 5 where !walker.hounds.isEmpty: walker.hounds.remove(at: Int.random(in: 0..<walker.hounds.count, using: &random))
        default: hound.age += 1
        }
    }
}
