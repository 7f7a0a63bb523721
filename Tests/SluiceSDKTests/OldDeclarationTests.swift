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

private class Tanker: LeftOut {
    @Persisted(primaryKey: true) var _id: Int
    @Persisted var fuel: String
    var captain = ""
    var _partition = ""
    dynamic var tonnes = 0
    var onDeck: Bool { tonnes > 0 }
    var radio = 0
    lazy var crew = List<String>()

    override class func ignoredProperties() -> [String] { ["radio", "crew"] }
}

private enum Gauge: Int { case narrow, broad }

/// It stores nothing, and has nothing that it could store.
private class Siding: LeftOut {
    var wagons = [String]()
    var gauge: Gauge? = Gauge.narrow
    var points: () -> Void = {}

    override class func ignoredProperties() -> [String] { ["points"] }
}

private class Track: LeftOut {
    @Persisted(primaryKey: true) var _id: Int
    var signals = [String]()
    var gauge = Gauge.broad
}

/// The base of classes that store something.
private class Selectable: LeftOut {
    var isSelected = false
}

private class Ticket: Selectable {
    @Persisted(primaryKey: true) var _id: Int
}

/// Properties that older apps declare without `@Persisted`: none is left out without a word.
@Suite struct OldDeclarationTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// - Returns: the warnings of properties that are not stored, as the program wrote them.
    private func warnings(_ result: ExitTest.Result?) -> [String] {
        message(result).split(separator: "\n").filter { $0.contains("does not store") }.map { String($0) }
    }

    private static let tanker =
        "Realm.SDK warn: Class 'Tanker' does not store captain: String, _partition: String, tonnes: Int. "
        + "Declare each with @Persisted, or name it in ignoredProperties()."

    @Test func `properties without the wrapper are named once for each class, though the log is off`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            for file in ["one", "two"] { _ = try Realm(configuration: folder.configuration([Tanker.self], file: file)) }
        }
        #expect(warnings(result) == [Self.tanker])
    }

    @Test func `a class that stores nothing is warned of by all its fields, another by those of old types`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            _ = (Siding().objectSchema, Track().objectSchema)
        }
        let refusal = "(a type that @Persisted does not accept)"
        let advice = "Declare each with @Persisted, or name it in ignoredProperties()."
        #expect(
            warnings(result) == [
                "Realm.SDK warn: Class 'Siding' does not store wagons: Array<String> \(refusal), gauge: Optional<Gauge> \(refusal). \(advice)",
                "Realm.SDK warn: Class 'Track' does not store gauge: Gauge \(refusal). \(advice)",
            ])
    }

    @Test func `the base of a class that stores something may store nothing, which is said of both`() async {
        let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            let realm = try Realm(configuration: folder.configuration([Selectable.self, Ticket.self]))
            try realm.write { realm.create(Ticket.self, value: ["_id": 1]).isSelected = true }
            #expect(realm.schema.objectSchema.map(\.className) == ["Selectable", "Ticket"])
        }
        let advice = "Declare each with @Persisted, or name it in ignoredProperties()."
        let said = ["Selectable", "Ticket"].map { "Realm.SDK warn: Class '\($0)' does not store isSelected: Bool. \(advice)" }
        #expect(Set(warnings(result)) == Set(said) && warnings(result).count == 2)
    }

    @Test func `the compiler refuses RealmOptional and RealmProperty, and shows the line to write`() throws {
        let file = folder.url.appendingPathComponent("old.swift")
        let source = """
            import RealmSwift
            class Ferry: Object {
                @Persisted(primaryKey: true) var _id: ObjectId
                let seats = RealmOptional<Int>()
                let cargo = RealmProperty<Int?>()
            }
            """
        try source.write(to: file, atomically: true, encoding: .utf8)
        let said = try ConfinementTests.compile(file)
        let errors = said.matches(of: /old\.swift:(\d+):\d+: error: ([^\n]*)/).map { "\($0.1) \($0.2)" }
        #expect(
            Set(errors) == [
                "4 'RealmOptional' is unavailable: Declare '@Persisted var name: Value?' instead of 'let name = RealmOptional<Value>()'.",
                "5 'RealmProperty' is unavailable: Declare '@Persisted var name: Value' instead of 'let name = RealmProperty<Value>()'.",
            ], "\(said.prefix(3_000))")
    }

    private static func openTanker(heardBy level: LogLevel) throws {
        Logger.shared = Logger(level: level) { _, message in FileHandle.standardError.write(Data("heard: \(message)\n".utf8)) }
        let folder = try TemporaryFolder()
        _ = try Realm(configuration: folder.configuration([Tanker.self]))
    }

    @Test func `an app's logger hears of them too, if its level shows warnings`() async {
        let shown = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            try OldDeclarationTests.openTanker(heardBy: .warn)
        }
        let heard = Self.tanker.replacing("Realm.SDK warn: ", with: "heard: ")
        #expect(warnings(shown) == [Self.tanker, heard])
        let hidden = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
            try OldDeclarationTests.openTanker(heardBy: .error)
        }
        #expect(warnings(hidden) == [Self.tanker])
    }

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
