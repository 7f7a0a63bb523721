import Foundation
import SluiceSDK
import Testing

/// Not of the classes of a Realm that names none.
private class LeftOut: Object {
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class Crate: EmbeddedObject {
    @Persisted var label: String
    @Persisted var isOpen: Bool
    var weight = 0

    override class func ignoredProperties() -> [String] { ["isOpen", "weight"] }
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class Lorry: LeftOut {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var crate: Crate?
}

/// Properties that older apps declare without `@Persisted`: none is left out without a word.
@Suite struct OldDeclarationTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `an embedded object has ignored properties, which are its own`() throws {
        let realm = try Realm(configuration: folder.configuration([Lorry.self]))
        let crate = Crate(value: ["label": "eggs"])
        (crate.isOpen, crate.weight) = (true, 3)
        let lorry = Lorry(value: ["_id": 1])
        lorry.crate = crate
        try realm.write { realm.add(lorry) }
        #expect(crate.objectSchema.properties.map(\.name) == ["label"] && Crate.ignoredProperties() == ["isOpen", "weight"])
        let accessor = try #require(realm.object(ofType: Lorry.self, forPrimaryKey: 1)?.crate)
        #expect(crate.isOpen && crate.weight == 3)
        #expect(accessor.label == "eggs" && !accessor.isOpen && accessor.weight == 0)
    }
}
