import SluiceSDK
import Synchronization
import TestSupport
import Testing

/// Loops over results read rows ahead; nobody may notice.
@Suite struct LoopTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: folder.configuration([Horse.self, Resident.self, Crowd.self]))
    }

    private func add(_ count: Int) throws {
        try realm.write { for key in 0..<count { realm.add(Horse(value: ["_id": key, "name": "horse \(key)", "wins": key])) } }
    }

    @Test(arguments: [0, 1, 4, 5, 19, 21, 84, 2_000]) func `a loop sees every object once, in order, with its values`(count: Int) throws {
        try add(count)
        var (keys, sum): ([Int], Int) = ([], 0)
        for horse in realm.objects(Horse.self) {
            keys.append(horse._id)
            // Not used in the first rounds: what was read ahead does not have it.
            if horse._id > count / 2 { sum += horse.name == "horse \(horse._id)" ? horse.wins : -1 }
        }
        #expect(keys == Array(0..<count) && sum == (0..<count).filter { $0 > count / 2 }.reduce(0, +))
        #expect(
            realm.objects(Horse.self).where { $0.wins >= 10 }.sorted(by: \.wins, ascending: false).map(\.wins)
                == (0..<count).filter { $0 >= 10 }.reversed())
    }

    @Test func `objects kept from a loop show later changes`() throws {
        try add(100)
        let horses = Array(realm.objects(Horse.self))
        try realm.write { for horse in horses { horse.wins += 1_000 } }
        #expect(horses.map(\.wins) == (0..<100).map { $0 + 1_000 } && horses[99].name == "horse 99")
        try realm.write { realm.delete(horses[50]) }
        #expect(horses[50].isInvalidated && !horses[51].isInvalidated && horses[51].wins == 1_051)
    }

    @Test(arguments: seeds(4)) func `an object that the body keeps in any way stays what it was`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        try add(3_000)
        try realm.write { for key in 0..<300 { realm.add(Crowd(value: ["_id": key, "sizes": [Size.small]])) } }
        var kept: [(key: Int, object: Horse)] = []
        var known: [(key: Int, object: WeakHorse)] = []
        var sent: [(key: Int, reference: ThreadSafeReference<Horse>)] = []
        var asked: [(key: Int, body: () -> Int)] = []
        for horse in realm.objects(Horse.self) {
            switch random.below(12) {
            case 0: kept.append((horse._id, horse))
            case 1: known.append((horse._id, WeakHorse(object: horse)))
            case 2: sent.append((horse._id, ThreadSafeReference(to: horse)))
            case 3: asked.append((horse._id, { horse.wins }))
            default: break
            }
        }
        #expect(kept.allSatisfy { $0.object._id == $0.key && $0.object.name == "horse \($0.key)" }, "seed \(seed)")
        #expect(known.allSatisfy { $0.object.object == nil || $0.object.object?._id == $0.key }, "seed \(seed)")
        #expect(sent.allSatisfy { realm.resolve($0.reference)?._id == $0.key }, "seed \(seed)")
        #expect(asked.allSatisfy { $0.body() == $0.key }, "seed \(seed)")
        // A collection of an object keeps it.
        var lists: [List<Size>] = []
        for crowd in realm.objects(Crowd.self) {
            try realm.write { if crowd._id % 2 == 0 { crowd.sizes.append(.large) } }
            lists.append(crowd.sizes)
        }
        #expect(lists.map(\.count) == (0..<300).map { $0 % 2 == 0 ? 2 : 1 }, "seed \(seed)")
    }

    @Test func `a loop whose body keeps nothing makes a few objects and fills them again`() throws {
        let realm = try Realm(configuration: folder.configuration([Counted.self], file: "counted"))
        try realm.write { for key in 0..<5_000 { realm.add(Counted(value: ["_id": key])) } }
        let before = Counted.made.withLock(\.self)
        #expect(realm.objects(Counted.self).reduce(0) { $0 + $1._id } == 4_999 * 2_500)
        #expect(Counted.made.withLock(\.self) - before <= 600)
    }

    @Test func `an object with a variable of its own begins with its initial value`() throws {
        let realm = try Realm(configuration: folder.configuration([Marked.self], file: "marked"))
        try realm.write { for key in 0..<2_000 { realm.add(Marked(value: ["_id": key])) } }
        var marks = 0
        for object in realm.objects(Marked.self) {
            marks += object.isMarked ? 1 : 0
            object.isMarked = true
        }
        #expect(marks == 0)
    }

    @Test func `a loop goes through what was there when it began, whatever its body does`() throws {
        try add(50)
        var seen: [Int] = []
        for horse in realm.objects(Horse.self) {
            seen.append(horse._id)
            try realm.write {
                realm.add(Horse(value: ["_id": 1_000 + horse._id]))
                if let next = realm.object(ofType: Horse.self, forPrimaryKey: horse._id + 1), horse._id % 10 == 0 { realm.delete(next) }
                horse.wins = -1
            }
        }
        #expect(seen == (0..<50).filter { $0 % 10 != 1 })
        #expect(realm.objects(Horse.self).where { $0.wins == -1 }.count == seen.count)
    }

    @Test func `a loop inside of a transaction may change what it looks at`() throws {
        try add(300)
        var seen: [Int] = []
        try realm.write {
            for horse in realm.objects(Horse.self).where({ $0.wins < 200 }) {
                seen.append(horse._id)
                horse.wins += 200
                if horse._id % 3 == 0 { realm.delete(horse) }
            }
        }
        #expect(seen == Array(0..<200))
        #expect(realm.objects(Horse.self).where { $0.wins < 200 }.count == 0 && realm.objects(Horse.self).count == 300 - 67)
    }

    @Test(arguments: [true, false]) func `a loop that began in a transaction goes on behind its end`(isStored: Bool) throws {
        try add(100)
        realm.beginWrite()
        for key in 100..<300 { realm.add(Horse(value: ["_id": key, "name": "horse \(key)"])) }
        var loop = realm.objects(Horse.self).makeIterator()
        var keys = (0..<50).compactMap { _ in loop.next()?._id }
        if isStored { try realm.commitWrite() } else { realm.cancelWrite() }
        // The next transaction has the writer to itself.
        try realm.write { realm.add(Horse(value: ["_id": 1_000])) }
        while let horse = loop.next() { keys.append(horse._id) }
        #expect(keys == Array(0..<(isStored ? 300 : 100)))
    }

    @Test func `loops in loops do not disturb each other`() throws {
        try add(30)
        var pairs = 0
        for left in realm.objects(Horse.self) {
            for right in realm.objects(Horse.self) where left.wins < right.wins { pairs += right.name == "horse \(right._id)" ? 1 : 0 }
        }
        #expect(pairs == 30 * 29 / 2)
    }

    @Test(arguments: seeds(4)) func `random loops see what a list of the keys would`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        try add(Int.random(in: 1...400, using: &random))
        for round in 0..<20 {
            let sorted = Bool.random(using: &random)
            let results = sorted ? realm.objects(Horse.self).sorted(by: \.name) : realm.objects(Horse.self)
            var expected = results.indices.map { results[$0]._id }
            var seen: [Int] = []
            var deleted: Set<Int> = []
            for horse in results {
                while let first = expected.first, first != horse._id {
                    #expect(deleted.contains(first), "passed over, seed \(seed), round \(round)")
                    expected.removeFirst()
                }
                expected = Array(expected.dropFirst())
                seen.append(horse._id)
                if Int.random(in: 0..<10, using: &random) == 0 { try change(&random).map { _ = deleted.insert($0) } }
                #expect(horse.isInvalidated || horse.name.hasPrefix("horse"), "seed \(seed), round \(round)")
            }
            #expect(deleted.isSuperset(of: expected), "seed \(seed), round \(round)")
            #expect(Set(seen).count == seen.count, "seed \(seed), round \(round)")
        }
    }

    /// - Returns: the key of an object that was deleted.
    private func change(_ random: inout SplitMix64) throws -> Int? {
        let key = Int.random(in: 0..<600, using: &random)
        return try realm.write {
            guard let horse = realm.object(ofType: Horse.self, forPrimaryKey: key) else {
                realm.add(Horse(value: ["_id": key, "name": "horse new"]))
                return nil
            }
            if random.chance(50) {
                realm.delete(horse)
                return key
            }
            horse.name = "horse of \(random.below(9))"
            return nil
        }
    }
}

private final class WeakHorse {
    weak var object: Horse?
    init(object: Horse) { self.object = object }
}

/// Counts its instances.
class Counted: Object {
    static let made = Mutex(0)
    @Persisted(primaryKey: true) var _id: Int
    required init() {
        super.init()
        Counted.made.withLock { $0 += 1 }
    }
}

/// Knows more than its row.
class Marked: Object {
    @Persisted(primaryKey: true) var _id: Int
    var isMarked = false
}
