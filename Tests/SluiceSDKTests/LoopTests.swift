import SluiceSDK
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
