import Foundation
import SluiceSDK

// The calls that RealmSwift has for queries and generic code, each overload once. That they compile is the contract.

@MainActor func callsOfQueries(_ p: Results<Fellow>) {
    _ = p.where { $0.name == "a" && $0.age != 3 || !($0.age > 3) }
    _ = p.where { $0.age >= 3 && $0.age < 4 && $0.age <= 5 }
    _ = p.where { $0.age > $0.age && $0.height < $0.height }
    _ = p.where { $0.age.contains(1..<3) && $0.age.contains(1...3) && $0.born.contains(Date()...Date()) && $0.price.contains(1...3) }
    _ = p.where { $0.height.contains(1.0..<3.0) && $0.height.contains(1.0...3.0) }
    _ = p.where { $0.height == nil && $0.height != nil && $0.home == nil && $0.friend != nil }
    _ = p.where { $0.name.contains("a") && $0.name.contains("a", options: [.caseInsensitive, .diacriticInsensitive]) }
    _ = p.where { $0.name.starts(with: "a") && $0.name.starts(with: "a", options: .caseInsensitive) }
    _ = p.where { $0.name.ends(with: "a") && $0.name.ends(with: "a", options: .caseInsensitive) }
    _ = p.where { $0.name.like("a*") && $0.name.like("a?", caseInsensitive: true) }
    _ = p.where {
        $0.name.equals("a", options: .caseInsensitive) && $0.name.notEquals("a", options: [.caseInsensitive]) && $0.name.equals("a")
    }
    _ = p.where {
        $0.name.contains($0.name) && $0.name.starts(with: $0.name) && $0.name.ends(with: $0.name, options: .caseInsensitive)
            && $0.name.equals($0.name, options: .caseInsensitive) && $0.name.notEquals($0.name)
    }
    _ = p.where {
        $0.photo == Data() && $0.photo.contains(Data()) && $0.photo.starts(with: Data()) && $0.photo.ends(with: Data())
            && $0.photo.equals(Data()) && $0.photo.notEquals(Data())
    }
    _ = p.where { $0.age.in([1, 2]) && $0.name.in(["a"]) && $0.height.in([1.0, nil]) && $0.mood.in([.calm]) }
    _ = p.where { $0.mood == .calm && $0.moodOpt == nil && $0.moodOpt == .glad && $0.mood != .glad }
    _ = p.where { $0.mood.rawValue == "calm" && $0.mood.rawValue.starts(with: "c") && $0.moodOpt.rawValue == "x" }
    _ = p.where { $0.tint == Hue(hex: "a") && $0.tint.persistableValue == "a" && $0.tint.persistableValue.contains("a") }
    _ = p.where { $0.any == .none && $0.any == .int(3) && $0.any == .string("x") && $0.any > .int(2) && $0.any != .none }
    _ = p.where { $0.any.contains(.string("a"), options: .caseInsensitive) || $0.any.starts(with: .string("x")) }
    _ = p.where { $0.any["a"] == .int(3) && $0.any[0] == .int(2) && $0.any.any == .int(1) && $0.any["a"][0].any == .int(2) }
}

@MainActor func callsOfQueriesOnLinks(_ p: Results<Fellow>, _ friend: Fellow) {
    _ = p.where {
        $0.friend == friend && $0.friend.name == "x" && $0.friend.age > 3 && $0.home.zip == 3 && $0.home.street.starts(with: "x")
    }
    _ = p.where { $0.friend.friend.friend.name == "a" }
    _ = p.where { $0.friends.contains(friend) && $0.friends.name == "x" && $0.friends.age > 3 && $0.friends.count > 3 }
    _ = p.where { $0.friends.containsAny(in: [friend]) && $0.nums.containsAny(in: [1, 2]) }
    _ = p.where { ($0.friends.age > 3 && $0.friends.name == "x").count > 2 }
    _ = p.where { $0.friends.age.min > 3 && $0.friends.age.max < 9 && $0.friends.age.sum == 3 && $0.friends.age.avg > 2 }
    _ = p.where {
        $0.nums.contains(3) && $0.nums.contains(1..<3) && $0.nums.contains(1...3) && $0.nums == 3 && $0.nums != 3 && $0.nums > 3
            && $0.nums >= 3 && $0.nums < 3 && $0.nums <= 3
    }
    _ = p.where { $0.nums.min == 1 && $0.nums.max == 2 && $0.nums.sum == 3 && $0.nums.avg == 4 && $0.nums.count == 5 }
    _ = p.where { $0.optNums.contains(3) && $0.optNums.contains(nil) && $0.optNums.contains(1..<3) && $0.optNums.min > 3 }
    _ = p.where { $0.names.contains("a") && $0.names == "x" }
    _ = p.where { $0.dates.max > Date() && $0.dates.contains(Date()...Date()) }
    _ = p.where {
        $0.numSet.contains(3) && $0.numSet.sum > 3 && $0.friendSet.name == "x" && $0.friendSet.contains(friend) && $0.friendSet.count == 0
    }
}

@MainActor func callsOfQueriesOnMaps(_ p: Results<Fellow>, _ friend: Fellow) {
    _ = p.where {
        $0.numMap["a"] == 3 && $0.numMap["a"] > 3 && $0.numMap.keys == "a" && $0.numMap.values > 3 && $0.numMap.contains(3)
            && $0.numMap.count > 3
    }
    _ = p.where {
        $0.numMap.min > 3 && $0.numMap.max > 3 && $0.numMap.sum > 3 && $0.numMap.avg > 3 && $0.numMap.contains(1..<3)
            && $0.numMap.contains(1...3)
    }
    _ = p.where {
        $0.numMap.keys.starts(with: "a") && $0.numMap.keys.contains("a") && $0.numMap.keys.like("a*") && $0.numMap == 3 && $0.numMap != 4
            && $0.numMap > 3
    }
    _ = p.where {
        $0.nameMap["a"] == "x" && $0.nameMap["a"].starts(with: "x") && $0.nameMap.values.contains("x") && $0.nameMap.containsAny(in: ["x"])
    }
    _ = p.where {
        $0.friendMap.values.name == "x" && $0.friendMap["a"].name == "x" && $0.friendMap.values.age > 3 && $0.friendMap.contains(friend)
    }
    _ = p.where { $0.optNumMap["a"] == nil && $0.optNumMap["a"] > 3 && $0.optNumMap.contains(nil) }
    _ = p.where { $0.homes.street == "x" && $0.homes.count > 3 && $0.homeMap.values.street == "y" && ($0.homes.zip > 3).count > 0 }
    _ = p.where { $0.befriended.count > 3 && $0.befriended.name == "x" && $0.befriendedList.age > 3 }
    _ = p.where { $0.moods.contains(.calm) && $0.moods == .calm && $0.moods.rawValue == "x" && $0.tints.persistableValue == "y" }
    _ = p.where { $0.anys.contains(.int(3)) && $0.anys == .int(3) }
    _ = p.where { $0._id == ObjectId.generate() && $0._id > ObjectId.generate() && $0.token == UUID() && $0.price > 3 && $0.weight < 3.5 }
    _ = p.where { $0.name == $0.friend.name && $0.age == $0.friends.count }
    _ = friend.nums.where { $0 > 3 && $0.in([1]) && $0.contains(1...3) }
    _ = friend.names.where { $0.starts(with: "x") }
    _ = friend.optNums.where { $0 == nil || $0 > 3 }
    _ = friend.numMap.where { $0 > 3 }
}

@MainActor func callsOfPlaces(_ p: Results<Fellow>) {
    let box = GeoBox(bottomLeft: (1, 1), topRight: (2, 2))
    let box2 = GeoBox(bottomLeft: GeoPoint(latitude: 1, longitude: 2)!, topRight: GeoPoint(latitude: 1, longitude: 2, altitude: 3)!)
    let circle = GeoCircle(center: (1, 2), radiusInRadians: 3)
    let circle2 = GeoCircle(center: (1, 2), radius: Distance.kilometers(3)!)
    let polygon = GeoPolygon(outerRing: [(1, 2), (2, 3), (3, 4), (1, 2)], holes: [(1, 2), (2, 3), (3, 4), (1, 2)])
    let polygon2 = GeoPolygon(outerRing: [GeoPoint(latitude: 1, longitude: 2)!])
    _ = p.where {
        $0.home.geoWithin(box!) && $0.home.geoWithin(box2) && $0.home.geoWithin(circle!) && $0.home.geoWithin(circle2!)
            && $0.home.geoWithin(polygon!) && $0.home.geoWithin(polygon2!)
    }
    let _: Double? = Distance.degrees(3)?.radians
    let _: Double? = Distance.miles(3)?.asKilometers()
    let _: Double? = Distance.radians(3)?.asMiles()
    let _: Double? = Distance.kilometers(3)?.asDegrees()
    _ = p.filter("location IN %@", box!)
    _ = p.where {
        $0.nick.contains("x") && $0.nick == nil && $0.nick.like("a*") && $0.nick.starts(with: "a", options: .caseInsensitive)
            && $0.name == $0.nick && $0.name.contains($0.nick)
    }
    let (format, arguments): (String, [Any]) = Query<Fellow>._constructForTesting().name.contains("x")._constructPredicate()
    _ = (format, arguments)
    let _: StringOptions = [.caseInsensitive]
    let _: StringOptions = StringOptions(rawValue: 1)
}

func generically<T: Object, V: _Persistable>(_ type: T.Type, _ path: KeyPath<T, V>) -> String { _name(for: path) }
func genericQuery<T: Object>(_ results: Results<T>, _ body: (Query<T>) -> Query<Bool>) -> Results<T> { results.where(body) }
func genericValue<T: RealmCollectionValue>(_ list: List<T>, _ value: T) { list.append(value) }
func genericNumber<T: _HasPersistedType>(_ list: List<Fellow>, _ path: String) -> T? where T.PersistedType: MinMaxType {
    list.min(ofProperty: path)
}
func genericSum<T: _HasPersistedType>(_ list: List<Fellow>, _ path: String) -> T where T.PersistedType: AddableType {
    list.sum(ofProperty: path)
}
func genericSort<T: _HasPersistedType>(_ list: List<Fellow>, _ path: KeyPath<Fellow, T>) -> Results<Fellow>
where T.PersistedType: SortableType { list.sorted(by: path, ascending: true) }
func genericOptional<T: OptionalProtocol>(_ value: T) -> T.Wrapped.Type { T.Wrapped.self }
func genericConfined<T: ThreadConfined>(_ value: T) -> ThreadSafeReference<T> { ThreadSafeReference(to: value) }
func genericFetch<T: RealmFetchable>(_ realm: Realm) -> Results<T> { realm.objects(T.self) }
func genericBase<C: RealmCollectionBase>(_ c: C) -> C.ElementType.Type { C.ElementType.self }
func genericSectioned<S: RealmSectionedResult>(_ s: S) -> Bool { s.isFrozen }
func genericEnum<E: PersistableEnum>(_ e: E.Type) -> Int { E.allCases.count }
func genericNumeric<T: _QueryNumeric>(_: T) {}
