import Foundation
import SluiceSDK
import Testing

@Suite struct CollectionTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Realm { try Realm(configuration: folder.configuration([Crowd.self])) }

    private func fill(_ crowd: Crowd) {
        crowd.optionalInts.append(objectsIn: [1, nil, 3])
        crowd.optionalDates.append(objectsIn: [nil, Date(timeIntervalSince1970: 5)])
        crowd.sizes.append(objectsIn: [.large, .small])
        crowd.optionalSizes.append(objectsIn: [.large, nil])
        crowd.intSet.insert(objectsIn: [3, 1, 3, 2])
        crowd.stringSet.insert(objectsIn: ["b", "a"])
        crowd.optionalSet.insert(objectsIn: ["x", nil, nil])
        crowd.dataSet.insert(Data([1, 2]))
        crowd.decimalSet.insert(objectsIn: [1.5, 2])
        crowd.intMap["a"] = 1
        crowd.intMap["b"] = 2
        crowd.optionalMap["none"] = .some(nil)
        crowd.optionalMap["some"] = 2.5
        crowd.cornerMap[.north] = .large
    }

    private func expectFilled(_ crowd: Crowd) {
        #expect(Array(crowd.optionalInts) == [1, nil, 3] && Array(crowd.optionalDates) == [nil, Date(timeIntervalSince1970: 5)])
        #expect(Array(crowd.sizes) == [.large, .small] && Array(crowd.optionalSizes) == [.large, nil])
        #expect(Set(crowd.intSet) == [1, 2, 3] && crowd.intSet.count == 3 && Set(crowd.stringSet) == ["a", "b"])
        #expect(Set(crowd.optionalSet) == ["x", nil] && Set(crowd.dataSet) == [Data([1, 2])] && Set(crowd.decimalSet) == [1.5, 2])
        #expect(crowd.intMap.keys == ["a", "b"] && crowd.intMap.values == [1, 2] && crowd.intMap.count == 2)
        #expect(crowd.optionalMap.count == 2 && crowd.optionalMap["none"] == .some(nil) && crowd.optionalMap["some"] == 2.5)
        #expect(crowd.cornerMap[.north] == .large && crowd.cornerMap[.south] == nil && crowd.cornerMap.keys == [.north])
    }

    @Test func `every kind of element lives alone, in a Realm and in the file`() throws {
        let crowd = Crowd(value: ["_id": 1])
        fill(crowd)
        expectFilled(crowd)
        do {
            let realm = try open()
            try realm.write { realm.add(crowd) }
            expectFilled(crowd)
            let other = try realm.write { realm.create(Crowd.self, value: ["_id": 2]) }
            try realm.write { fill(other) }
            expectFilled(other)
        }
        let realm = try open()
        #expect(realm.objects(Crowd.self).count == 2)
        for crowd in realm.objects(Crowd.self) { expectFilled(crowd) }
    }

    @Test func `collections are made from values`() throws {
        let crowd = Crowd(value: [
            "_id": 1, "intSet": [1, 1, 2], "intMap": ["a": 1], "optionalInts": [1, NSNull()], "cornerMap": ["north": 2],
            "friends": [["_id": 2]],
        ])
        #expect(crowd.intSet.count == 2 && crowd.intMap["a"] == 1 && Array(crowd.optionalInts) == [1, nil])
        #expect(crowd.cornerMap[.north] == .large && crowd.friends.first?._id == 2)
        let realm = try open()
        try realm.write { _ = realm.create(Crowd.self, value: crowd) }
        let copy = try #require(realm.object(ofType: Crowd.self, forPrimaryKey: 1))
        #expect(copy.intMap["a"] == 1 && copy.friends.map(\._id) == [2] && copy.cornerMap[.north] == .large)
        #expect(crowd.realm == nil && copy.realm == realm)
    }

    @Test(arguments: [false, true]) func `sets have the operations of sets`(isManaged: Bool) throws {
        let realm = try open()
        let (left, right) = (Crowd(value: ["_id": 1]), Crowd(value: ["_id": 2]))
        realm.beginWrite()
        if isManaged { realm.add([left, right]) }
        left.intSet.insert(objectsIn: [1, 2, 3])
        right.intSet.insert(objectsIn: [2, 3, 4])
        #expect(left.intSet.contains(2) && !left.intSet.contains(4) && left.intSet.intersects(right.intSet))
        #expect(!left.intSet.isSubset(of: right.intSet))
        left.intSet.formIntersection(right.intSet)
        #expect(Set(left.intSet) == [2, 3] && left.intSet.isSubset(of: right.intSet))
        left.intSet.formUnion(right.intSet)
        #expect(left.intSet == right.intSet)
        left.intSet.subtract(right.intSet)
        #expect(left.intSet.isEmpty && !left.intSet.intersects(right.intSet))
        right.intSet.remove(4)
        right.intSet.remove(99)
        #expect(Set(right.intSet) == [2, 3])
        right.intSet.removeAll()
        #expect(right.intSet.isEmpty)
        try realm.commitWrite()
    }

    @Test(arguments: [false, true]) func `maps have the operations of dictionaries`(isManaged: Bool) throws {
        let realm = try open()
        let crowd = Crowd(value: ["_id": 1])
        realm.beginWrite()
        if isManaged { realm.add(crowd) }
        let map = crowd.intMap
        map.updateValue(1, forKey: "a")
        map["b"] = 2
        map.merge(["b": 10, "c": 3].map { (key: $0.key, value: $0.value) }, uniquingKeysWith: +)
        #expect(map["b"] == 12 && map["c"] == 3 && map.count == 3)
        #expect(map.contains { key, value in key == "c" && value == 3 } && !map.contains { key, _ in key == "d" })
        #expect(map.asKeyValueSequence().map(\.key) == ["a", "b", "c"] && map.map(\.value) == [1, 12, 3])
        let other = Map<String, Int>()
        other["a"] = 5
        map.merge(other) { old, _ in old }
        #expect(map["a"] == 1)
        map["a"] = nil
        map.removeObject(for: "b")
        #expect(map.keys == ["c"] && crowd.intMap == map)
        map.removeAll()
        #expect(map.isEmpty)
        try realm.commitWrite()
    }

    @Test func `links in sets and maps lead to objects on the device`() throws {
        let realm = try open()
        let crowd = Crowd(value: ["_id": 1])
        crowd.friendSet.insert(Crowd(value: ["_id": 2]))
        crowd.friendMap["best"] = Crowd(value: ["_id": 3])
        crowd.friendMap["nobody"] = .some(nil)
        try realm.write { realm.add(crowd) }
        #expect(realm.objects(Crowd.self).count == 3)
        #expect(crowd.friendSet.map(\._id) == [2] && crowd.friendMap["best"]??._id == 3 && crowd.friendMap["nobody"] == .some(nil))
        try realm.write { realm.delete(crowd.friendSet) }
        #expect(crowd.friendSet.isEmpty && realm.objects(Crowd.self).count == 2)
        try realm.write { realm.delete(crowd.friendMap["best"]!!) }
        #expect(crowd.friendMap["best"] == .some(nil))
    }

    @Test func `a collection held before adding becomes that of the Realm`() throws {
        let realm = try open()
        let crowd = Crowd(value: ["_id": 1])
        let (list, set, map) = (crowd.sizes, crowd.intSet, crowd.intMap)
        list.append(.small)
        try realm.write { realm.add(crowd) }
        #expect(list.realm == realm && set.realm == realm && map.realm == realm)
        try realm.write {
            list.append(.large)
            set.insert(1)
            map["a"] = 1
        }
        #expect(Array(crowd.sizes) == [.small, .large] && crowd.intSet.count == 1 && crowd.intMap["a"] == 1)
        try realm.write { realm.delete(crowd) }
        #expect(list.isInvalidated && set.isInvalidated && map.isInvalidated && list.isEmpty)
    }

    @Test func `a collection that is assigned is copied`() throws {
        let realm = try open()
        let (first, second) = (Crowd(value: ["_id": 1, "sizes": [1, 2]]), Crowd(value: ["_id": 2]))
        try realm.write {
            realm.add([first, second])
            second.sizes = first.sizes
            first.sizes.removeAll()
            let map = Map<String, Int>()
            map["z"] = 26
            second.intMap = map
        }
        #expect(Array(second.sizes) == [.small, .large] && first.sizes.isEmpty && second.intMap["z"] == 26)
    }

    @Test func `hidden links stay in a list that changes`() throws {
        let realm = try open()
        let crowd = Crowd(value: ["_id": 1, "friends": [["_id": 2], ["_id": 3], ["_id": 4]]])
        try realm.write { realm.add(crowd) }
        try realm.write { realm.delete(crowd.friends[1]) }
        try realm.write {
            crowd.friends.append(Crowd(value: ["_id": 5]))
            crowd.friends.swapAt(0, 1)
        }
        #expect(crowd.friends.map(\._id) == [4, 2, 5])
        try realm.write { _ = realm.create(Crowd.self, value: ["_id": 3]) }
        #expect(crowd.friends.map(\._id) == [4, 3, 2, 5])
    }

    @Test func `lists move, remove and replace several elements`() throws {
        let realm = try open()
        let managed = Crowd(value: ["_id": 1])
        realm.beginWrite()
        realm.add(managed)
        for crowd in [managed, Crowd()] {
            let list = crowd.optionalInts
            list.append(objectsIn: [0, 1, 2, 3, 4])
            list.move(fromOffsets: IndexSet([0, 2]), toOffset: 4)
            #expect(Array(list) == [1, 3, 0, 2, 4])
            list.remove(atOffsets: IndexSet([0, 4]))
            list.insert(contentsOf: [7, 8], at: 1)
            #expect(Array(list) == [3, 7, 8, 0, 2])
            list.replaceSubrange(0..<2, with: [nil])
            list.removeFirst()
            list.removeLast()
            list.replace(index: 0, object: 5)
            #expect(Array(list) == [5, 0] && list.index(of: 0) == 1 && list.first == 5 && list.last == .some(0))
        }
        realm.cancelWrite()
    }

    @Test func `misuse ends the program`() async {
        let end0 = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            let realm = try Realm(configuration: folder.configuration([Crowd.self]))
            let crowd = try realm.write { realm.create(Crowd.self, value: ["_id": 1]) }
            crowd.intSet.insert(1)
        }
        #expect(message(end0).contains("Cannot modify managed objects outside of a write transaction."))
        let end1 = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            let realm = try Realm(configuration: folder.configuration([Crowd.self]))
            try realm.write { realm.create(Crowd.self, value: ["_id": 1]).intMap["a.b"] = 1 }
        }
        #expect(message(end1).contains("Invalid key 'a.b'"))
        let end2 = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { _ = List<Int>()[0] }
        #expect(message(end2).contains("Index 0 is out of bounds (must be less than 0)."))
    }
}
