import SluiceSDK
import Testing

/// It is part of no schema by itself.
class Template: Object {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var text: String
    override class func _realmIgnoreClass() -> Bool { true }
}

/// A class that says again what its superclass took back.
class Letter: Template {
    @Persisted var address: String
    override class func _realmIgnoreClass() -> Bool { false }
}

/// It inherits that it is none.
class Draft: Template {}

class Shelf<Content>: Object {
    @Persisted(primaryKey: true) var _id: Int
}

class Cased: Template {
    @Persisted var name: String
    @Persisted var Name: String
}

class Twin: Template {
    @Persisted var other: Int
    override class func _realmObjectName() -> String? { "Letter" }
}

class Reserved: Template {
    override class func _realmObjectName() -> String? { "sqlite_things" }
}

/// Which classes a Realm has whose configuration names none.
@Suite struct ClassDiscoveryTests {
    private func names(_ types: [ObjectBase.Type]?) throws -> Set<String> {
        var configuration = try TemporaryFolder().configuration([])
        configuration.objectTypes = types
        return Set(try Realm(configuration: configuration).schema.objectSchema.map(\.className))
    }

    @Test func `a class that is to be ignored is in no schema by itself, and in one that names it`() throws {
        #expect(!Template.shouldIncludeInDefaultSchema() && Letter.shouldIncludeInDefaultSchema())
        let all = try names(nil)
        #expect(all.contains("Letter") && all.isDisjoint(with: ["Template", "Draft"]))
        #expect(try names([Template.self, Draft.self]) == ["Template", "Draft"])
    }

    @Test func `generic classes and those that are only sent are left out`() throws {
        #expect(try names(nil).isDisjoint(with: ["Shelf", "Shelf<Int>", "Reading"]))
        #expect(try names([Shelf<Int>.self]) == ["Shelf<Int>"])
    }

    /// A program has classes of several modules.
    @Test func `two classes of one name are refused with both`() throws {
        let error = #expect(throws: Realm.Error.self) { try names([Letter.self, Twin.self]) }
        #expect(
            error?.message.hasPrefix("Two classes have the name Letter: SluiceSDKTests.Letter and SluiceSDKTests.Twin.") == true,
            "\(String(describing: error))")
    }

    @Test func `names in the file that SQLite cannot tell apart are refused`() throws {
        func refusal(_ type: ObjectBase.Type) -> String? {
            #expect(throws: Realm.Error.self) { try Realm(configuration: TemporaryFolder().configuration([type])) }?.message
        }
        #expect(refusal(Cased.self)?.contains("Two properties of Cased differ in case only.") == true)
        #expect(refusal(Reserved.self)?.contains("The class name sqlite_things is reserved.") == true)
    }

    @Test func `what the named classes lead to comes along`() throws {
        // By a list, a map, an embedded object that links back, an inverse link.
        #expect(try names([Stable.self]) == ["Stable", "Horse"])
        #expect(try names([Resident.self]) == ["Resident", "Address", "Country"])
        #expect(try names([Terrier.self]) == ["Terrier", "Walker", "Cage", "GeoPlace"])
    }
}
