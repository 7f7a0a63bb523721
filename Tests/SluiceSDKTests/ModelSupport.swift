import Foundation
import SluiceSDK

enum Size: Int, PersistableEnum { case small = 1, large = 2 }
enum Corner: String, PersistableEnum, _MapKey { case north, south }

/// Stored as a number, always readable.
struct Celsius: CustomPersistable, Equatable {
    var degrees: Double
    init(degrees: Double) { self.degrees = degrees }
    init(persistedValue: Double) { degrees = persistedValue }
    var persistableValue: Double { degrees }
}

/// Stored as a text, of which not all are one.
struct Version: FailableCustomPersistable, Equatable {
    var major: Int
    init(major: Int) { self.major = major }
    init?(persistedValue: String) {
        let digits = persistedValue.isEmpty ? "0" : persistedValue.dropFirst()
        guard persistedValue.isEmpty || persistedValue.hasPrefix("v"), let major = Int(digits) else { return nil }
        self.init(major: major)
    }
    var persistableValue: String { "v\(major)" }
}

class PointObject: EmbeddedObject {
    @Persisted var x: Double
    @Persisted var y: Double
}

/// Stored as an embedded object.
struct Point: CustomPersistable, Equatable {
    typealias PersistedType = PointObject
    var x: Double
    var y: Double
    init(x: Double, y: Double) { (self.x, self.y) = (x, y) }
    init(persistedValue: PointObject) { self.init(x: persistedValue.x, y: persistedValue.y) }
    var persistableValue: PointObject { PointObject(value: [x, y]) }
}

/// Collections of every kind of element.
class Crowd: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var optionalInts: List<Int?>
    @Persisted var optionalDates: List<Date?>
    @Persisted var sizes: List<Size>
    @Persisted var optionalSizes: List<Size?>
    @Persisted var intSet: MutableSet<Int>
    @Persisted var stringSet: MutableSet<String>
    @Persisted var optionalSet: MutableSet<String?>
    @Persisted var dataSet: MutableSet<Data>
    @Persisted var decimalSet: MutableSet<Decimal128>
    @Persisted var friendSet: MutableSet<Crowd>
    @Persisted var intMap: Map<String, Int>
    @Persisted var optionalMap: Map<String, Double?>
    @Persisted var cornerMap: Map<Corner, Size>
    @Persisted var friendMap: Map<String, Crowd?>
    @Persisted var friends: List<Crowd>
    @Persisted var friend: Crowd?
    @Persisted(originProperty: "friends") var fans: LinkingObjects<Crowd>
    @Persisted(originProperty: "friend") var lovers: LinkingObjects<Crowd>
    @Persisted(originProperty: "friendSet") var setFans: LinkingObjects<Crowd>
    @Persisted(originProperty: "friendMap") var mapFans: LinkingObjects<Crowd>
}

class Mixed: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var any: AnyRealmValue
    @Persisted var list: List<AnyRealmValue>
    @Persisted var set: MutableSet<AnyRealmValue>
    @Persisted var map: Map<String, AnyRealmValue>
}

class Custom: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted(indexed: true) var version: Version
    @Persisted var optionalVersion: Version?
    @Persisted var celsius = Celsius(degrees: 20)
    @Persisted var optionalCelsius: Celsius?
    @Persisted var point: Point
    @Persisted var optionalPoint: Point?
    @Persisted var versions: List<Version>
    @Persisted var optionalVersions: List<Version?>
    @Persisted var points: List<Point>
    @Persisted var temperatures: Map<String, Celsius>
    @Persisted var versionSet: MutableSet<Version>
}
