import Foundation
import RealmSwift
import Testing

/// Classes without a primary key, as local Realms may have them.
@Suite struct KeylessTests {
    class Note: Object {
        @Persisted var text: String
        @Persisted var next: Note?
        @Persisted var related: List<Note>
        @Persisted(originProperty: "next") var before: LinkingObjects<Note>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }

        convenience init(_ text: String) {
            self.init()
            self.text = text
        }
    }

    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Realm { try Realm(configuration: folder.configuration([Note.self])) }

    @Test func `objects without a primary key are told apart, linked and found`() throws {
        do {
            let realm = try open()
            let (a, b) = (Note("a"), Note("b"))
            try realm.write {
                realm.add([a, b])
                realm.create(Note.self, value: ["text": "b", "next": a])
                a.next = b
                a.related.append(objectsIn: [b, a, Note("c")])
            }
            #expect(realm.objects(Note.self).map(\.text) == ["a", "b", "b", "c"])
            #expect(a != b && a.isSameObject(as: realm.objects(Note.self)[0]))
            // Two accessors of one row are equal, as they are of a class with a key; what is in no Realm is itself alone.
            #expect(
                a == realm.objects(Note.self)[0] && a !== realm.objects(Note.self)[0]
                    && a.hashValue == realm.objects(Note.self)[0].hashValue)
            #expect(b != realm.objects(Note.self)[2] && Note("a") != Note("a"))
            #expect(b.before.map(\.text) == ["a"] && a.before.count == 1)
        }
        let realm = try open()
        let notes = realm.objects(Note.self)
        #expect(notes[0].related.map(\.text) == ["b", "a", "c"])
        #expect(notes.where { $0.next.text == "b" }.map(\.text) == ["a"])
        #expect(notes.filter("next == %@", notes[0]).count == 1)
        #expect(notes.filter("ANY related == %@", notes[1]).map(\.text) == ["a"])
        #expect(notes[0].objectSchema.primaryKeyProperty == nil && notes[0].objectSchema.properties.count == 4)
    }

    @Test func `the key of a deleted object, or of one that was never committed, comes to no other`() throws {
        let realm = try open()
        let (first, undone) = (Note("first"), Note("undone"))
        try realm.write { realm.add(first) }
        try realm.write { realm.delete(first) }
        realm.beginWrite()
        realm.add(undone)
        realm.cancelWrite()
        try realm.write { for text in ["x", "y"] { realm.add(Note(text)) } }
        #expect(first.isInvalidated && undone.isInvalidated)
        #expect(realm.objects(Note.self).map(\.text) == ["x", "y"])
    }

    @Test func `such objects cannot be updated by their key`() async {
        let update = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let folder = try TemporaryFolder()
            let realm = try Realm(configuration: folder.configuration([Note.self]))
            try realm.write { realm.add(Note("a"), update: .modified) }
        }
        #expect(message(update).contains("'Note' does not have a primary key and can not be updated"))
    }

    @Test func `such objects cannot be looked up by a key`() async {
        func ends(_ result: ExitTest.Result?) { #expect(message(result).contains("'Note' does not have a primary key")) }
        ends(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let folder = try TemporaryFolder()
                let realm = try Realm(configuration: folder.configuration([Note.self]))
                _ = realm.object(ofType: Note.self, forPrimaryKey: 1)
            })
        ends(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let folder = try TemporaryFolder()
                _ = Note.object(in: try Realm(configuration: folder.configuration([Note.self])), forPrimaryKey: nil)
            })
        ends(
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                let folder = try TemporaryFolder()
                _ = try Realm(configuration: folder.configuration([Note.self])).dynamicObject(ofType: "Note", forPrimaryKey: 1)
            })
    }

    class WiderNote: Object {
        @Persisted var text: String
        @Persisted var next: WiderNote?
        @Persisted var related: List<WiderNote>
        @Persisted var stars: Int
        override class func _realmObjectName() -> String? { "Note" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    @Test func `a migration keeps such objects and their links`() throws {
        do {
            let realm = try open()
            try realm.write { realm.create(Note.self, value: ["text": "b", "next": realm.create(Note.self, value: ["text": "a"])]) }
        }
        var configuration = folder.configuration([WiderNote.self])
        #expect(throws: Realm.Error.self) { try Realm(configuration: configuration) }
        configuration.schemaVersion = 1
        configuration.migrationBlock = { migration, _ in
            migration.enumerateObjects(ofType: "Note") { old, new in
                new?["stars"] = (old?["text"] as? String) == "b" ? 5 : 1
            }
        }
        let realm = try Realm(configuration: configuration)
        let notes = realm.objects(WiderNote.self)
        #expect(notes.map(\.text) == ["a", "b"] && notes.map(\.stars) == [1, 5])
        #expect(notes[1].next == notes[0])
    }
}
