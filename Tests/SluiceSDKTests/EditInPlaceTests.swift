import Foundation
import SluiceSDK
import TestSupport
import Testing

/// Collections that one transaction edits many times.
@Suite struct EditInPlaceTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open(isSynced: Bool = false) throws -> Realm {
        guard isSynced else { return try Realm(configuration: folder.configuration([Crowd.self])) }
        let realm = try Realm(configuration: try folder.synced([Crowd.self]))
        let subscriptions = realm.subscriptions
        subscriptions.update({ subscriptions.append(QuerySubscription<Crowd>()) }, onComplete: nil)
        return realm
    }

    /// A crowd as the test has it.
    private struct Model: Equatable {
        var ints: [Int?] = []
        var friends: [Int] = []
        var set: Set<Int> = []
        var map: [String: Int] = [:]
    }

    @Test(arguments: seeds(4), [false, true])
    func `what is read within the transaction and after it is what was done`(seed: UInt64, isSynced: Bool) throws {
        var random = SplitMix64(seed: seed)
        let realm = try open(isSynced: isSynced)
        try realm.write { for id in 0..<4 { realm.create(Crowd.self, value: ["_id": id]) } }
        var (models, others) = ([0: Model(), 1: Model()], Set([2, 3]))
        for _ in 0..<12 {
            let before = (models, others)
            realm.beginWrite()
            for _ in 0..<15 {
                try change(realm, &models, &others, &random)
                if random.chance(30) { try check(realm, models, others, &random) }
            }
            try check(realm, models, others, &random)
            if random.chance(25) {
                realm.cancelWrite()
                (models, others) = before
            } else {
                try realm.commitWrite()
            }
            try check(realm, models, others, &random)
            try check(realm.freeze(), models, others, &random)
        }
    }

    private func change(
        _ realm: Realm, _ models: inout [Int: Model], _ others: inout Set<Int>, _ random: inout SplitMix64
    ) throws {
        let id = random.below(2)
        let crowd = try #require(realm.object(ofType: Crowd.self, forPrimaryKey: id))
        guard var model = models[id] else { return }
        let number = random.below(9)
        switch random.below(12) {
        case 0, 1:
            crowd.optionalInts.append(number)
            model.ints.append(number)
        case 2 where !model.ints.isEmpty:
            let index = random.below(model.ints.count)
            crowd.optionalInts[index] = nil
            model.ints[index] = nil
        case 3 where !model.ints.isEmpty:
            let index = random.below(model.ints.count)
            crowd.optionalInts.remove(at: index)
            model.ints.remove(at: index)
        case 4:
            let index = random.below(model.ints.count + 1)
            crowd.optionalInts.insert(contentsOf: [7, 8], at: index)
            model.ints.insert(contentsOf: [7, 8], at: index)
        case 5:
            crowd.intSet.insert(number)
            model.set.insert(number)
        case 6:
            crowd.intMap["k\(number % 3)"] = number == 0 ? nil : number
            model.map["k\(number % 3)"] = number == 0 ? nil : number
        case 7: try changeFriends(realm, crowd, &model, &others, &random)
        case 8 where model.ints.count > 1:
            crowd.optionalInts.move(from: 0, to: model.ints.count - 1)
            model.ints.append(model.ints.removeFirst())
        case 9:
            crowd.optionalInts = List()
            model.ints = []
        case 10:
            crowd.intSet.remove(number)
            model.set.remove(number)
        default:
            try changeFriends(realm, crowd, &model, &others, &random)
        }
        models[id] = model
    }

    private func changeFriends(
        _ realm: Realm, _ crowd: Crowd, _ model: inout Model, _ others: inout Set<Int>, _ random: inout SplitMix64
    ) throws {
        let id = 2 + random.below(2)
        if random.chance(20), let friend = realm.object(ofType: Crowd.self, forPrimaryKey: id) {
            realm.delete(friend)
            others.remove(id)
            return
        }
        if random.chance(30), !others.contains(id) {
            realm.create(Crowd.self, value: ["_id": id])
            others.insert(id)
            return
        }
        let friend = try #require(realm.object(ofType: Crowd.self, forPrimaryKey: others.contains(id) ? id : 0))
        let shown = model.friends.indices.filter { model.friends[$0] < 2 || others.contains(model.friends[$0]) }
        if random.chance(40), let place = shown.indices.randomElement(using: &random) {
            crowd.friends[place] = friend
            model.friends[shown[place]] = friend._id
        } else {
            crowd.friends.append(friend)
            model.friends.append(friend._id)
        }
    }

    private func check(_ realm: Realm, _ models: [Int: Model], _ others: Set<Int>, _ random: inout SplitMix64) throws {
        for (id, model) in models {
            let crowd = try #require(realm.object(ofType: Crowd.self, forPrimaryKey: id))
            let friends = model.friends.filter { $0 < 2 || others.contains($0) }
            // In different orders: what is read first may be what makes the rest right.
            if random.chance(50) { #expect(realm.objects(Crowd.self).where { $0.intSet.count == model.set.count }.contains(crowd)) }
            #expect(Array(crowd.optionalInts) == model.ints && crowd.optionalInts.count == model.ints.count)
            #expect(crowd.friends.map(\._id) == friends && crowd.friends.count == friends.count && crowd.friends.last?._id == friends.last)
            #expect(Set(crowd.intSet) == model.set && crowd.intSet.count == model.set.count)
            let entries = model.map.sorted { $0.key < $1.key }
            #expect(crowd.intMap.keys == entries.map(\.key) && crowd.intMap.values == entries.map(\.value))
            #expect(realm.objects(Crowd.self).where { $0.optionalInts.count == model.ints.count }.contains(crowd))
            for other in others {
                let friend = try #require(realm.object(ofType: Crowd.self, forPrimaryKey: other))
                #expect(friend.fans.filter("_id == %@", id).count == friends.filter { $0 == other }.count)
            }
        }
        #expect(realm.objects(Crowd.self).map(\._id) == (Array(models.keys) + others).sorted())
    }

    @Test func `a result shows the object at a place, whatever was done before`() throws {
        let realm = try open()
        try realm.write { for id in 0..<2_000 { realm.create(Crowd.self, value: ["_id": id]) } }
        let all = realm.objects(Crowd.self)
        #expect(all[1_500]._id == 1_500 && all.last?._id == 1_999 && all[0]._id == 0)
        try realm.write {
            // Changes of objects leave them where they are; others move those behind them.
            for index in 0..<600 { all[index].intSet.insert(index) }
            realm.delete(all[10])
            #expect(all[10]._id == 11 && all[1_998]._id == 1_999 && all.count == 1_999)
            realm.create(Crowd.self, value: ["_id": -5])
            #expect(all[0]._id == -5 && all[11]._id == 11 && realm.objects(Crowd.self)[1_999]._id == 1_999)
        }
        #expect(all[11]._id == 11 && all.last?._id == 1_999 && realm.objects(Crowd.self)[700]._id == 700)
        let frozen = all.freeze()
        try realm.write { realm.delete(all.where { $0._id < 1_000 }) }
        #expect(all[0]._id == 1_000 && frozen[0]._id == -5 && frozen[1_999]._id == 1_999)
        #expect(all.sorted(byKeyPath: "_id", ascending: false)[3]._id == 1_996)
    }
}
