import Foundation
import SluiceSDK
import Testing

/// Collections of one type and of its optional.
class OfElements<Element: RealmCollectionValue & _OptionalPersistable>: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var value: Element
    @Persisted var optional: Element?
    @Persisted var list: List<Element>
    @Persisted var optionalList: List<Element?>
    @Persisted var set: MutableSet<Element>
    @Persisted var optionalSet: MutableSet<Element?>
    @Persisted var map: Map<String, Element>
    @Persisted var optionalMap: Map<String, Element?>
}

/// Every type of value as a property, an optional one, and the element of every collection: alone, in a Realm, and in the file.
@Suite struct CollectionElementTests {
    private func fill<Element>(_ object: OfElements<Element>, _ values: [Element]) {
        object.value = values[0]
        object.optional = values[1]
        object.list.append(objectsIn: values + values)
        object.optionalList.append(objectsIn: [values[0], nil, values[1]])
        object.set.insert(objectsIn: values + values)
        object.optionalSet.insert(objectsIn: [values[0], nil, nil])
        for (index, value) in values.enumerated() { object.map["\(index)"] = value }
        object.optionalMap["none"] = .some(nil)
        object.optionalMap["some"] = .some(values[1])
    }

    private func expect<Element>(_ object: OfElements<Element>, _ values: [Element], _ place: SourceLocation) {
        #expect(object.value == values[0] && object.optional == values[1], sourceLocation: place)
        #expect(Array(object.list) == values + values && Array(object.optionalList) == [values[0], nil, values[1]], sourceLocation: place)
        #expect(Set(object.set) == Set(values) && object.set.count == Set(values).count, sourceLocation: place)
        #expect(Set(object.optionalSet) == [values[0], nil] && object.optionalSet.count == 2, sourceLocation: place)
        #expect(object.map.values == values && object.map["0"] == values[0] && object.map["x"] == nil, sourceLocation: place)
        #expect(object.optionalMap["none"] == .some(nil) && object.optionalMap["some"] == .some(values[1]), sourceLocation: place)
        #expect(object.set.contains(values[1]) && object.optionalSet.contains(nil), sourceLocation: place)
        #expect(object.list.index(of: values[1]) == 1 && object.optionalList.index(of: nil) == 1, sourceLocation: place)
    }

    private func check<Element: RealmCollectionValue & _OptionalPersistable>(
        _ values: [Element], at place: SourceLocation = #_sourceLocation
    ) throws {
        let folder = try TemporaryFolder()
        let configuration = folder.configuration([OfElements<Element>.self])
        do {
            let realm = try Realm(configuration: configuration)
            let added = OfElements<Element>(value: ["_id": 1])
            fill(added, values)
            expect(added, values, place)
            try realm.write {
                realm.add(added)
                fill(realm.create(OfElements<Element>.self, value: ["_id": 2]), values)
                realm.create(OfElements<Element>.self, value: ["_id": 3, "list": added.list, "map": added.map, "set": added.set])
            }
            expect(added, values, place)
        }
        let realm = try Realm(configuration: configuration)
        for id in [1, 2] {
            let object = try #require(realm.object(ofType: OfElements<Element>.self, forPrimaryKey: id), sourceLocation: place)
            expect(object, values, place)
        }
        let copy = try #require(realm.object(ofType: OfElements<Element>.self, forPrimaryKey: 3), sourceLocation: place)
        #expect(Array(copy.list) == values + values && copy.map.values == values && Set(copy.set) == Set(values), sourceLocation: place)
    }

    @Test func `numbers`() throws {
        try check([true, false])
        try check([Int.min, .max, 0])
        try check([Int8.min, .max])
        try check([Int16.min, .max])
        try check([Int32.min, .max])
        try check([Int64.min, .max])
        try check([Float.infinity, -0.5, .leastNonzeroMagnitude])
        try check([Double.pi, -.infinity, .greatestFiniteMagnitude])
        try check([Decimal128(1.5), Decimal128.max, Decimal128("-1E-6000")])
    }

    @Test func `texts, bytes, times and ids`() throws {
        try check(["é\u{0}\n", "", "日本"])
        try check([Data([0, 255]), Data()])
        try check([Date(timeIntervalSince1970: -1.25), .distantFuture, Date(timeIntervalSinceReferenceDate: 712_345_678.123_456_7)])
        try check([ObjectId("0123456789abcdef01234567"), .generate()])
        try check([UUID(), UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))])
    }

    @Test func `enumerations and custom types`() throws {
        try check([Size.large, .small])
        try check([Colour.green, .red])
        try check([Celsius(degrees: 4.5), Celsius(degrees: -1)])
        try check([Version(major: 3), Version(major: 1)])
    }
}
