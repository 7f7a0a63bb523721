import SluiceSDK
import Testing

@Suite struct CustomTypeTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Realm { try Realm(configuration: folder.configuration([Custom.self])) }

    private func fill(_ custom: Custom) {
        custom.version = Version(major: 3)
        custom.optionalVersion = Version(major: 4)
        custom.celsius = Celsius(degrees: 36.6)
        custom.optionalCelsius = Celsius(degrees: -1)
        custom.point = Point(x: 1, y: 2)
        custom.optionalPoint = Point(x: 3, y: 4)
        custom.versions.append(objectsIn: [Version(major: 1), Version(major: 2)])
        custom.optionalVersions.append(objectsIn: [nil, Version(major: 9)])
        custom.points.append(Point(x: 5, y: 6))
        custom.temperatures["a"] = Celsius(degrees: 1)
        custom.versionSet.insert(objectsIn: [Version(major: 1), Version(major: 1)])
    }

    private func expectFilled(_ custom: Custom) {
        #expect(custom.version.major == 3 && custom.optionalVersion?.major == 4 && custom.celsius.degrees == 36.6)
        #expect(custom.optionalCelsius?.degrees == -1 && custom.point == Point(x: 1, y: 2) && custom.optionalPoint == Point(x: 3, y: 4))
        #expect(custom.versions.map(\.major) == [1, 2] && custom.optionalVersions.map { $0?.major } == [nil, 9])
        #expect(Array(custom.points) == [Point(x: 5, y: 6)] && custom.temperatures["a"]?.degrees == 1)
        #expect(Array(custom.versionSet) == [Version(major: 1)])
    }

    @Test func `own types are stored as others`() throws {
        let custom = Custom(value: ["_id": 1])
        #expect(custom.version.major == 0 && custom.optionalVersion == nil && custom.celsius.degrees == 20)
        #expect(custom.point == Point(x: 0, y: 0) && custom.optionalPoint == nil)
        fill(custom)
        expectFilled(custom)
        do {
            let realm = try open()
            try realm.write { realm.add(custom) }
            expectFilled(custom)
            try realm.write { fill(realm.create(Custom.self, value: ["_id": 2])) }
        }
        let realm = try open()
        for custom in realm.objects(Custom.self) { expectFilled(custom) }
        try realm.write {
            first(realm).optionalVersion = nil
            first(realm).optionalPoint = nil
        }
        #expect(first(realm).optionalVersion == nil && first(realm).optionalPoint == nil)
        #expect(first(realm)["version"] as? String == "v3")
    }

    private func first(_ realm: Realm) -> Custom { realm.object(ofType: Custom.self, forPrimaryKey: 1) ?? Custom() }

    @Test func `what cannot be read back is nil where it may be`() throws {
        let realm = try open()
        try realm.write { _ = realm.create(Custom.self, value: ["_id": 1]) }
        try realm.write { realm.dynamicObject(ofType: "Custom", forPrimaryKey: 1)?["optionalCelsius"] = 4.0 }
        #expect(first(realm).optionalCelsius?.degrees == 4)
    }

    class Painted: Object {
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var colour: String
        @Persisted var optionalColour: String?
        @Persisted var sizes: List<Int>
        override class func _realmObjectName() -> String? { "Coloured" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    class Coloured: Object {
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var colour: Colour
        @Persisted var optionalColour: Colour?
        @Persisted var sizes: List<Size>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    @Test func `a raw value that no case has reads as nil, or as the first case`() throws {
        do {
            let realm = try Realm(configuration: folder.configuration([Painted.self]))
            let values: [[String: Any]] = [
                ["_id": 1, "colour": "green", "optionalColour": "red", "sizes": [2, 1]],
                ["_id": 2, "colour": "mauve", "optionalColour": "mauve", "sizes": [2, 77]],
            ]
            try realm.write { for value in values { realm.create(Painted.self, value: value) } }
        }
        let realm = try Realm(configuration: folder.configuration([Coloured.self]))
        let (known, unknown) = (realm.objects(Coloured.self)[0], realm.objects(Coloured.self)[1])
        #expect(known.colour == .green && known.optionalColour == .red && Array(known.sizes) == [.large, .small])
        #expect(unknown.colour == .red && unknown.optionalColour == nil && Array(unknown.sizes) == [.large, .small])
        #expect(unknown["colour"] as? String == "red" || unknown["colour"] as? String == "mauve")
    }

    class Raw: Object {
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var version: String
        override class func _realmObjectName() -> String? { "Readable" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    class Parsed: Object {
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var version: Version
        override class func _realmObjectName() -> String? { "Readable" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    @Test func `what cannot be read back ends the program where it must not be nil`() async {
        let end0 = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            do {
                let realm = try Realm(configuration: folder.configuration([Raw.self]))
                try realm.write { _ = realm.create(Raw.self, value: ["_id": 1, "version": "nonsense"]) }
            }
            let realm = try Realm(configuration: folder.configuration([Parsed.self]))
            _ = realm.objects(Parsed.self).first?.version
        }
        #expect(message(end0).contains("Failed to convert persisted value 'nonsense' to type 'Version' in a non-optional context."))
    }
}
