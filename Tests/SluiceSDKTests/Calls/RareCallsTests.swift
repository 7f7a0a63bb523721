import Foundation
import SluiceSDK
import Testing

/// What the rarely used overloads do; that the others do what they say is tested with their types.
@MainActor @Suite struct RareCallsTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: folder.configuration([Fellow.self, Lodging.self]))
    }

    private func fellow(_ name: String, age: Int = 3) -> Fellow { Fellow(value: ["name": name, "age": age] as [String: Any]) }

    @Test func `objects are deleted whatever they are known as`() throws {
        let (first, second) = (fellow("a"), fellow("b"))
        second.home = Lodging(value: ["street": "x"])
        second.homes.append(objectsIn: [Lodging(), Lodging(value: ["street": "y"])])
        try realm.write { realm.add([first, second]) }
        try realm.write {
            realm.delete(first as ObjectBase)
            realm.delete([try #require(second.home)])
            realm.delete(Array(second.homes.prefix(1)))
        }
        #expect(realm.objects(Fellow.self).count == 1 && second.home == nil && second.homes.map { $0.street } == ["y"])
        try realm.write { realm.delete([second] as [ObjectBase]) }
        #expect(realm.isEmpty)
    }

    @Test func `a Realm freezes and thaws what belongs to it`() throws {
        let known = fellow("a")
        known.nums.append(1)
        try realm.write { realm.add(known) }
        let frozen = realm.freeze(known)
        let (numbers, all) = (realm.freeze(known.nums), realm.freeze(realm.objects(Fellow.self)))
        try realm.write {
            known.name = "b"
            known.nums.append(2)
            realm.add(fellow("c"))
        }
        #expect(frozen.isFrozen && frozen.name == "a" && Array(numbers) == [1] && all.count == 1)
        #expect(realm.thaw(frozen)?.name == "b" && realm.thaw(frozen) == known)
        try realm.write { realm.delete(known) }
        #expect(realm.thaw(frozen) == nil)
    }

    @Test func `sections are asked for with the block at the end`() throws {
        try realm.write { for name in ["bo", "al", "ann"] { realm.add(fellow(name)) } }
        let sections = realm.objects(Fellow.self).sectioned(sortDescriptors: [.init(keyPath: \Fellow.name)]) { String($0.name.prefix(1)) }
        #expect(sections.allKeys == ["a", "b"] && sections[0].map { $0.name } == ["al", "ann"])
    }

    @Test(arguments: [false, true]) func `lists take ranges of every kind`(isManaged: Bool) throws {
        let known = fellow("a")
        known.nums.append(objectsIn: 0..<10)
        try realm.write {
            if isManaged { realm.add(known) }
            let list = known.nums
            list.removeSubrange(8...)
            list.removeSubrange(...1)
            list.replaceSubrange(1...2, with: [30, 40, 50])
            list.removeSubrange(4..<5)
        }
        #expect(Array(known.nums) == [2, 30, 40, 50, 6, 7])
    }

    /// As generic code of an app sees a map.
    private func byName<M: RealmKeyedCollection>(_ map: M) -> [String] where M.Key == String, M.Value == Fellow? {
        map.setValue(fellow("set", age: 9), forKey: "s")
        guard map.contains(where: { key, value in key == "s" && value?.age == 9 }) else { return [] }
        return [map.value(forKeyPath: "s.name") as? String, (map.value(forKey: "s") as? Fellow)?.name].compactMap { $0 }
    }

    @Test func `maps of objects calculate and sort by Swift key paths`() throws {
        let known = fellow("a")
        try realm.write { realm.add(known) }
        let map = known.friendMap
        try realm.write {
            for (key, age) in [("x", 4), ("y", 1), ("z", 2)] { map[key] = fellow(key, age: age) }
        }
        #expect(map.min(of: \.age) == 1 && map.max(of: \.age) == 4 && map.sum(of: \.age) == 7)
        #expect(map.average(of: \.age) == 2, "of whole numbers it is one")
        #expect(map.sorted(by: \.age).map { $0?.name } == ["y", "z", "x"])
        #expect(map.sorted(by: \.age, ascending: false).first??.name == "x")
        try realm.write { #expect(byName(map) == ["set", "set"]) }
    }

    @Test func `several properties are read and set by name`() throws {
        let known = fellow("a")
        try realm.write {
            realm.add(known)
            known.setValuesForKeys(["name": "b", "age": 7, "nick": NSNull()])
        }
        let values = known.dictionaryWithValues(forKeys: ["name", "age", "nick"])
        #expect(values["name"] as? String == "b" && values["age"] as? Int == 7 && values["nick"] is NSNull)
    }

    @Test func `an opening that fails names the file`() async throws {
        var missing = folder.configuration([Fellow.self], file: "none")
        missing.readOnly = true
        let error = #expect(throws: Realm.Error.self) { try Realm(configuration: missing, queue: nil) }
        #expect(error?.code == .fileNotFound && error?.fileURL == missing.fileURL)
        #expect(error?.userInfo[NSFilePathErrorKey] as? String == missing.fileURL?.path)
        let later: (any Error)? = await withCheckedContinuation { done in
            Realm.asyncOpen(configuration: missing) { result in
                if case .failure(let error) = result { done.resume(returning: error) } else { done.resume(returning: nil) }
            }
        }
        #expect(later as? Realm.Error == error)
        #expect(Realm.Error.callFailed.code == .fail && Realm.Error.callFailed.fileURL == nil)
    }

    private func back<T: BSON>(_ value: T) -> T? { AnyBSON(value).value() }

    @Test func `values go into documents and come back with their types`() {
        let (id, uuid, date) = (ObjectId.generate(), UUID(), Date(timeIntervalSince1970: 3))
        #expect(back(3) == 3 && back(Int32(3)) == 3 && back(Int64(3)) == 3 && back(1.5) == 1.5 && back(true) == true && back("x") == "x")
        #expect(back(id) == id && back(uuid) == uuid && back(date) == date && back(Data([1])) == Data([1]) && back(Decimal128(2)) == 2)
        let document: Document = ["a": [1, nil]]
        #expect(back(document) == document && back([1, nil] as [AnyBSON?]) == [1, nil])
        #expect(AnyBSON(Int32(3)).value() == nil as Int? && AnyBSON("3").value() == nil as Int? && AnyBSON.null.value() == nil as String?)
        #expect(AnyBSON.double(3).asInt() == 3 && AnyBSON.double(3.5).asInt() == nil && AnyBSON.double(3e30).asInt64() == nil)
    }

    @Test func `an app is configured as for RealmSwift`() {
        let plain = AppConfiguration(baseURL: "http://127.0.0.1:9", defaultRequestTimeoutMS: 5)
        #expect(AppConfiguration(baseURL: "http://127.0.0.1:9", transport: nil, defaultRequestTimeoutMS: 5) == plain)
        let named = AppConfiguration(
            baseURL: "http://127.0.0.1:9", transport: nil, localAppName: "shop", localAppVersion: "3", defaultRequestTimeoutMS: 5)
        #expect(named == plain && App(id: "shop", configuration: named).baseURL == "http://127.0.0.1:9")
    }
}
