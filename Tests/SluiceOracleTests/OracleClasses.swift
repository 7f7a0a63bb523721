import Foundation
import SluiceSDK

// The classes of the plays in which one device is an app with objects. In the others classes are made up.

final class Alpha: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var zone: String
    @Persisted var number: Int?
    @Persisted var name: String?
    @Persisted var at: Date?
    @Persisted var tags: List<String>
    @Persisted var scores: MutableSet<Int>
    @Persisted var extra: Map<String, String>
    @Persisted var blend: AnyRealmValue
    @Persisted var peer: Beta?
    @Persisted var place: Place?
}

final class Beta: Object {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted var zone: String
    @Persisted var other: Int?
    @Persisted var price: Decimal128?
    @Persisted var data: Data?
    @Persisted var owner: UUID?
    @Persisted var weights: List<Double?>
    @Persisted var peer: Alpha?
    @Persisted var place: Place?
}

final class Place: EmbeddedObject {
    @Persisted var x: Int?
    @Persisted var label: String?
    @Persisted var marks: List<Int>
}
