import Foundation
import SluiceSDK

// The classes of the calls in this folder.

enum Temper: String, PersistableEnum { case calm, glad }
enum Grade: Int, PersistableEnum { case low, high }
struct Hue: CustomPersistable, Equatable {
    typealias PersistedType = String
    var hex: String
    init(persistedValue: String) { hex = persistedValue }
    init(hex: String) { self.hex = hex }
    var persistableValue: String { hex }
}

struct EvenNumber: FailableCustomPersistable, Equatable {
    typealias PersistedType = Int
    var n: Int
    init?(persistedValue: Int) { guard persistedValue % 2 == 0 else { return nil }; n = persistedValue }
    var persistableValue: Int { n }
}

class Lodging: EmbeddedObject {
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
    @Persisted var street: String = ""
    @Persisted var zip: Int?
    @Persisted(originProperty: "home") var residents: LinkingObjects<Fellow>
}

class Fellow: Object, ObjectKeyIdentifiable {
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted(indexed: true) var name: String
    @Persisted var age: Int = 3
    @Persisted var nick: String?
    @Persisted var height: Double?
    @Persisted var weight: Float
    @Persisted var born: Date
    @Persisted var photo: Data
    @Persisted var price: Decimal128
    @Persisted var token: UUID
    @Persisted var any: AnyRealmValue
    @Persisted var mood: Temper
    @Persisted var moodOpt: Temper?
    @Persisted var tint: Hue
    @Persisted var home: Lodging?
    @Persisted var homes: List<Lodging>
    @Persisted var friend: Fellow?
    @Persisted var friends: List<Fellow>
    @Persisted var friendSet: MutableSet<Fellow>
    @Persisted var friendMap: Map<String, Fellow?>
    @Persisted var homeMap: Map<String, Lodging?>
    @Persisted var nums: List<Int>
    @Persisted var optNums: List<Int?>
    @Persisted var numSet: MutableSet<Int>
    @Persisted var numMap: Map<String, Int>
    @Persisted var optNumMap: Map<String, Int?>
    @Persisted var names: List<String>
    @Persisted var nameMap: Map<String, String>
    @Persisted var dates: List<Date>
    @Persisted var moods: List<Temper>
    @Persisted var anys: List<AnyRealmValue>
    @Persisted var tints: List<Hue>
    @Persisted(originProperty: "friend") var befriended: LinkingObjects<Fellow>
    @Persisted(originProperty: "friends") var befriendedList: LinkingObjects<Fellow>
}

class Ping: AsymmetricObject {
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var text: String
}

class FellowView: Projection<Fellow> {
    @Projected(\Fellow.name) var name
    @Projected(\Fellow.home?.street) var street
    @Projected(\Fellow.friends.projectTo.name) var friendNames: ProjectedCollection<String>
    @Projected(\Fellow.friendSet.projectTo.name) var setNames
}

@globalActor actor Elsewhere: GlobalActor { static let shared = Elsewhere() }

class Recolumned: Object {
    @Persisted(primaryKey: true) var id = UUID()
    @Persisted(wrappedValue: 3) var count: Int
    @Persisted(wrappedValue: "x", indexed: true) var label: String
    @Persisted(wrappedValue: "k", primaryKey: false) var other: String
    @Persisted var optionalList: List<String?>
    @Persisted var i8: Int8
    @Persisted var i16: Int16
    @Persisted var i32: Int32?
    @Persisted var i64: Int64
    @Persisted var even: List<Int>
    @Persisted var levels: Map<String, Grade>
    override class func propertiesMapping() -> [String: String] { ["count": "cnt"] }
    override static func primaryKey() -> String? { "id" }
    override static func indexedProperties() -> [String] { ["label"] }
    override static func ignoredProperties() -> [String] { [] }
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
    override class func _realmObjectName() -> String? { "R" }
    required init() { super.init() }
    convenience init(name: String) {
        self.init()
        label = name
    }
}

struct Envelope: Codable {
    var list: List<Int>; var set: MutableSet<String>; var map: Map<String, Double>; var id: ObjectId; var d: Decimal128
}
