import Foundation
import SluiceSDK
import Synchronization
import Testing

/// The classes of one app at several times: each namespace is a version of it.
enum AppOne {
    class Friend: EmbeddedObject {
        override class func _realmObjectName() -> String? { "Friend" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
        @Persisted var nick: String
    }

    class Person: Object {
        override class func _realmObjectName() -> String? { "Person" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var first: String
        @Persisted var last: String
        @Persisted var age: Int
        @Persisted var born: Date?
        @Persisted var scores: List<Int>
        @Persisted var boss: Person?
        @Persisted var team: List<Person>
        @Persisted var friend: Friend?
    }

    class Gone: Object {
        override class func _realmObjectName() -> String? { "Gone" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var text: String
    }

    static let types: [ObjectBase.Type] = [Person.self, Gone.self]
}

enum AppTwo {
    class Friend: EmbeddedObject {
        override class func _realmObjectName() -> String? { "Friend" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
        @Persisted var nick: String
    }

    class Person: Object {
        override class func _realmObjectName() -> String? { "Person" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var name: String
        @Persisted var age: String
        @Persisted var born: Date
        @Persisted(indexed: true) var level = 7
        @Persisted var scores: List<Int>
        @Persisted var chief: Person?
        @Persisted(originProperty: "chief") var reports: LinkingObjects<Person>
        @Persisted var team: List<Person>
        @Persisted var friend: Friend?
    }

    class New: Object {
        override class func _realmObjectName() -> String? { "New" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
        @Persisted(primaryKey: true) var _id: Int
    }

    static let types: [ObjectBase.Type] = [Person.self]
}

enum AppThree {
    class Person: Object {
        override class func _realmObjectName() -> String? { "Person" }
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
        @Persisted(primaryKey: true) var key: Int
        @Persisted var name: String
        @Persisted(originProperty: "team") var teams: LinkingObjects<Person>
        @Persisted var team: List<Person>
    }

    static let types: [ObjectBase.Type] = [Person.self]
}

@Suite struct MigrationTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        let realm = try Realm(configuration: configuration(1, AppOne.types))
        try realm.write {
            for id in 0..<3 {
                _ = realm.create(
                    AppOne.Person.self,
                    value: [
                        "_id": id, "first": "F\(id)", "last": "L\(id)", "age": 30 + id, "scores": [id, id + 1],
                        "friend": ["nick": "N\(id)"],
                    ] as [String: Any])
            }
            let people = realm.objects(AppOne.Person.self)
            people[1].boss = people[0]
            people[0].team.append(objectsIn: [people[1], people[2]])
            _ = realm.create(AppOne.Gone.self, value: ["_id": 1, "text": "old"])
        }
    }

    private func configuration(
        _ version: UInt64, _ types: [ObjectBase.Type], _ block: MigrationBlock? = nil
    ) -> Realm.Configuration {
        Realm.Configuration(
            fileURL: folder.url.appendingPathComponent("local.realm"), schemaVersion: version, migrationBlock: block, objectTypes: types)
    }

    private func message(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "nothing was thrown"
        } catch let error as Realm.Error {
            return "\(error.code): \(error.message)"
        } catch {
            return "\(error)"
        }
    }

    @Test func `a lower version, and other classes with the same one, are errors that name every difference`() throws {
        #expect(
            message { _ = try Realm(configuration: configuration(0, AppOne.types)) }
                == "schemaMismatch: Provided schema version 0 is less than last set version 1.")
        #expect(
            message { _ = try Realm(configuration: configuration(1, AppTwo.types)) } == """
                schemaMismatch: Migration is required due to the following errors:
                - Property 'Person.first' has been removed.
                - Property 'Person.last' has been removed.
                - Property 'Person.boss' has been removed.
                - Property 'Person.name' has been added.
                - Property 'Person.age' has been changed from 'int' to 'string'.
                - Property 'Person.born' has been made required.
                - Property 'Person.level' has been added.
                - Property 'Person.chief' has been added.
                """)
        #expect(
            message { _ = try Realm(configuration: configuration(1, AppThree.types)) }
                .contains("Primary Key for class 'Person' has changed from '_id' to 'key'."))
        #expect(try schemaVersionAtURL(configuration(1, []).fileURL ?? folder.url) == 1)
        // Nothing has happened to the file.
        #expect(try Realm(configuration: configuration(1, AppOne.types)).objects(AppOne.Person.self).map(\.first) == ["F0", "F1", "F2"])
    }

    @Test func `a class that is new needs no migration, and one that is not named stays`() throws {
        #expect(try Realm(configuration: configuration(1, [AppOne.Person.self, Horse.self])).objects(Horse.self).isEmpty)
        #expect(try Realm(configuration: configuration(1, AppOne.types)).objects(AppOne.Gone.self).map(\.text) == ["old"])
    }

    @Test func `a migration sees what was and makes what is to be`() throws {
        let seen = Mutex<[String]>([])
        let realm = try Realm(
            configuration: configuration(2, AppTwo.types + [AppTwo.New.self]) { migration, version in
                seen.withLock { $0.append("from \(version)") }
                #expect(migration.oldSchema["Person"]?["first"]?.type == .string && migration.newSchema["Person"]?["first"] == nil)
                migration.renameProperty(onType: "Person", from: "boss", to: "chief")
                migration.enumerateObjects(ofType: "Person") { old, new in
                    guard let old, let new, let first = old["first"] as? String, let last = old["last"] as? String else { return }
                    new["name"] = "\(first) \(last)"
                    new["age"] = "\(old["age"] ?? "")"
                    let nick = (old["friend"] as? [String: Any])?["nick"] ?? "none"
                    let team = (old["team"] as? List<DynamicObject>)?.map { "\($0["_id"] ?? "")" }.joined(separator: ",") ?? "none"
                    seen.withLock { $0.append("\(first) \(nick) [\(team)] \((old["boss"] as? DynamicObject)?["first"] ?? "nobody")") }
                    if first == "F2" { migration.delete(new) }
                }
                migration.create("Person", value: ["_id": 9, "name": "made"])
                migration.create("New", value: ["_id": 1])
                migration.enumerateObjects(ofType: "New") { old, new in
                    seen.withLock { $0.append("new \(old == nil) \(new?["_id"] ?? "")") }
                }
                migration.enumerateObjects(ofType: "Gone") { old, new in
                    seen.withLock { $0.append("gone \(old?["text"] ?? "") \(new == nil)") }
                }
                #expect(migration.deleteData(forType: "Gone") && !migration.deleteData(forType: "Never"))
            })
        #expect(
            seen.withLock { $0 } == [
                "from 1", "F0 N0 [1,2] nobody", "F1 N1 [] F0", "F2 N2 [] nobody", "new true 1", "gone old true",
            ])
        let people = realm.objects(AppTwo.Person.self)
        #expect(people.map(\.name) == ["F0 L0", "F1 L1", "made"] && people.map(\.age) == ["30", "31", ""])
        #expect(people[1].chief == people[0] && Array(people[1].scores) == [1, 2] && people[1].friend?.nick == "N1")
        #expect(people[0].team.map(\._id) == [1] && people[0].level == 0 && people[0].reports.map(\._id) == [1])
        #expect(realm.objects(AppTwo.New.self).count == 1)
        #expect(try schemaVersionAtURL(configuration(2, []).fileURL ?? folder.url) == 2)
    }

    @Test func `what was removed by a migration does not come back`() throws {
        _ = try Realm(configuration: configuration(2, AppTwo.types))
        let realm = try Realm(configuration: configuration(3, AppOne.types))
        #expect(realm.objects(AppOne.Person.self).map(\.first) == ["", "", ""])
        #expect(realm.objects(AppOne.Gone.self).map(\.text) == ["old"])
    }

    @Test func `a primary key can be renamed, and its links and inverses with it`() throws {
        let realm = try Realm(
            configuration: configuration(2, AppThree.types) { migration, _ in
                migration.renameProperty(onType: "Person", from: "_id", to: "key")
                migration.enumerateObjects(ofType: "Person") { old, new in new?["name"] = old?["first"] }
            })
        let people = realm.objects(AppThree.Person.self)
        #expect(people.map(\.key) == [0, 1, 2] && people.map(\.name) == ["F0", "F1", "F2"])
        #expect(people[0].team.map(\.key) == [1, 2] && people[2].teams.map(\.key) == [0])
    }

    @Test func `a migration that ends the program leaves the file as it was`() async throws {
        let path = folder.url.path
        await #expect(processExitsWith: .failure) { [path = path as String] in
            let file = URL(fileURLWithPath: path).appendingPathComponent("local.realm")
            _ = try Realm(
                configuration: Realm.Configuration(
                    fileURL: file, schemaVersion: 2,
                    migrationBlock: { migration, _ in
                        migration.enumerateObjects(ofType: "Person") { _, new in new?["name"] = "half" }
                        migration.deleteData(forType: "Gone")
                        fatalError("in the middle")
                    }, objectTypes: AppTwo.types))
        }
        try expectOld()
    }

    private func expectOld() throws {
        let realm = try Realm(configuration: configuration(1, AppOne.types))
        #expect(realm.objects(AppOne.Person.self).map(\.first) == ["F0", "F1", "F2"])
        #expect(realm.objects(AppOne.Gone.self).map(\.text) == ["old"])
    }

    @Test func `a file can be deleted instead`() throws {
        var configuration = configuration(1, AppTwo.types)
        configuration.deleteRealmIfMigrationNeeded = true
        do {
            let realm = try Realm(configuration: configuration)
            #expect(realm.isEmpty)
            try realm.write { _ = realm.create(AppTwo.Person.self, value: ["_id": 1]) }
        }
        #expect(try Realm(configuration: configuration).objects(AppTwo.Person.self).count == 1)
    }

    @Test func `performMigration migrates without opening`() throws {
        try Realm.performMigration(for: configuration(2, AppTwo.types))
        #expect(try schemaVersionAtURL(configuration(2, []).fileURL ?? folder.url) == 2)
        #expect(throws: Realm.Error.self) { try Realm(configuration: configuration(1, AppOne.types)) }
    }

    @Test func `misuse ends the program`() async {
        let source = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try MigrationTests().rename("naem", to: "name")
        }
        #expect(SluiceSDKTests.message(source).contains("Cannot rename property 'Person.naem' because it does not exist."))
        let still = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try MigrationTests().rename("scores", to: "name")
        }
        #expect(SluiceSDKTests.message(still).contains("because the source property still exists."))
        let kind = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try MigrationTests().rename("first", to: "level")
        }
        #expect(SluiceSDKTests.message(kind).contains("because it would change from type 'string' to 'int'."))
    }

    private func rename(_ old: String, to new: String) throws {
        _ = try Realm(
            configuration: configuration(2, AppTwo.types) { migration, _ in
                migration.renameProperty(onType: "Person", from: old, to: new)
            })
    }
}
