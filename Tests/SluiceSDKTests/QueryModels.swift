import Foundation
import SluiceSDK

class Terrier: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var name: String
    @Persisted var age: Int
    @Persisted var weight: Double?
    @Persisted var size: Size?
    @Persisted var good: Bool
    @Persisted var born: Date?
    @Persisted var chip: Cage?
    @Persisted(originProperty: "hounds") var walkers: LinkingObjects<Walker>
}

class Cage: EmbeddedObject {
    @Persisted var city: String
    @Persisted var beds: Int
}

class GeoPlace: EmbeddedObject {
    @Persisted var type = "Point"
    @Persisted var coordinates: List<Double>
}

class Walker: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var name: String
    @Persisted var nick: String?
    @Persisted var mother: String
    @Persisted var age: Int
    @Persisted var awake: Bool
    @Persisted var favourite: Terrier?
    @Persisted var hounds: List<Terrier>
    @Persisted var pack: MutableSet<Terrier>
    @Persisted var byName: Map<String, Terrier?>
    @Persisted var scores: List<Int>
    @Persisted var words: MutableSet<String>
    @Persisted var points: Map<String, Int>
    @Persisted var kennels: List<Cage>
    @Persisted var home: GeoPlace?
    @Persisted var mixed: AnyRealmValue
    @Persisted var data: Data
    @Persisted var decimal: Decimal128
    @Persisted var temperature: Celsius
    @Persisted var size: Size

    override class func propertiesMapping() -> [String: String] { ["nick": "nickname"] }
}
