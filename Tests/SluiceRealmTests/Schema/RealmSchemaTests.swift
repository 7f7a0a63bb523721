import SluiceCore
import SluiceRealm
import SluiceValues
import TestSupport
import Testing

@Suite struct `Realm schemas` {
    private static let schema = Schema([
        ObjectType(
            name: "Task",
            properties: [
                Property(id: 1, name: "_id", type: .objectId), Property(id: 2, name: "title", type: .string),
                Property(id: 3, name: "owner", type: .link(to: "Person"), isOptional: true),
                Property(id: 4, name: "helpers", type: .link(to: "Person"), collection: .list),
                Property(id: 5, name: "byRole", type: .link(to: "Person"), collection: .dictionary, isOptional: true),
                Property(id: 6, name: "place", type: .embedded("Place"), isOptional: true),
                Property(id: 7, name: "stops", type: .embedded("Place"), collection: .list),
                Property(id: 8, name: "extra", type: .mixed), Property(id: 9, name: "due", type: .timestamp, isOptional: true),
                Property(id: 10, name: "scores", type: .int, collection: .set, isOptional: true),
            ]),
        ObjectType(
            name: "Person",
            properties: [Property(id: 1, name: "name", type: .string), Property(id: 2, name: "_id", type: .string, isOptional: true)]),
        ObjectType(name: "Place", kind: .embedded, properties: [Property(id: 1, name: "x", type: .double)], primaryKey: nil),
        ObjectType(name: "Log", kind: .asymmetric, properties: [Property(id: 1, name: "_id", type: .uuid)]),
    ])

    private static let instructions: [RealmInstruction] = [
        .addTable(RealmTable("Log", .asymmetric, key: RealmTable.Key("_id", .uuid))),
        .addTable(RealmTable("Person", key: RealmTable.Key("_id", .string, isNullable: true))),
        .addTable(RealmTable("Place", .embedded, key: nil)), .addTable(RealmTable("Task", key: RealmTable.Key("_id", .objectId))),
        .addColumn(RealmColumn("Person", "name", .string)), .addColumn(RealmColumn("Place", "x", .double)),
        .addColumn(RealmColumn("Task", "byRole", .link(to: "Person"), isNullable: true, .dictionary)),
        .addColumn(RealmColumn("Task", "due", .timestamp, isNullable: true)),
        .addColumn(RealmColumn("Task", "extra", .mixed, isNullable: true)),
        .addColumn(RealmColumn("Task", "helpers", .link(to: "Person"), .list)),
        .addColumn(RealmColumn("Task", "owner", .link(to: "Person"), isNullable: true)),
        .addColumn(RealmColumn("Task", "place", .link(to: "Place"), isNullable: true)),
        .addColumn(RealmColumn("Task", "scores", .int, isNullable: true, .set)),
        .addColumn(RealmColumn("Task", "stops", .link(to: "Place"), .list)), .addColumn(RealmColumn("Task", "title", .string)),
    ]

    @Test func `classes come before properties, both in the order of their names`() {
        #expect(RealmSchema.instructions(of: Self.schema) == Self.instructions)
    }

    @Test func `the order of the app's declarations makes no difference`() {
        let reversed = Schema(
            Self.schema.types.reversed().map { type in
                let key = type.primaryKey.map { type.properties[$0].name }
                return ObjectType(name: type.name, kind: type.kind, properties: type.properties.reversed(), primaryKey: key)
            })
        #expect(RealmSchema.instructions(of: reversed) == Self.instructions)
    }

    @Test func `what the gateway declares, a client may declare`() throws {
        let bytes = try RealmChangesetWriter.bytes(of: Self.instructions)
        let check = RealmSchemaCheck(Self.schema)
        for instruction in try RealmChangesetReader.instructions(of: bytes) { try check.check(instruction) }
    }

    @Test(arguments: [
        RealmInstruction.createObject(ObjectKey(type: "Other", key: .null)),
        .addColumn(RealmColumn("Task", "owner", .link(to: "Person"), isNullable: false)), .addColumn(RealmColumn("Task", "extra", .mixed)),
    ])
    func `objects, and flags without a choice, are not checked`(instruction: RealmInstruction) throws {
        try RealmSchemaCheck(Self.schema).check(instruction)
    }

    @Test(
        arguments: [
            (.addTable(RealmTable("Tusk", key: RealmTable.Key("_id", .objectId))), "The app has no class 'Tusk'. Did you mean 'Task'?"),
            (
                .addTable(RealmTable("Task", .asymmetric, key: RealmTable.Key("_id", .objectId))),
                "asymmetric on the client and top_level in"
            ),
            (.addTable(RealmTable("Task", .embedded, key: nil)), "embedded on the client and top_level in the app"),
            (
                .addTable(RealmTable("Task", key: RealmTable.Key("_id", .string))),
                "the primary key '_id' of type string on the client and '_id' of type objectId in the app"
            ),
            (
                .addTable(RealmTable("Person", key: RealmTable.Key("id", .string))),
                "the primary key 'id' of type string on the client and '_id' of type string or null in the app"
            ),
            (.addColumn(RealmColumn("Tusk", "title", .string)), "The app has no class 'Tusk'"),
            (
                .addColumn(RealmColumn("Task", "titel", .int, .list)),
                "no property 'titel', which is list of int on the client. Did you mean 'title'?"
            ),
            (.addColumn(RealmColumn("Task", "title", .int)), "Property 'Task.title' is int on the client and string in the app."),
            (.addColumn(RealmColumn("Task", "title", .string, isNullable: true)), "is string or null on the client and string in the app"),
            (.addColumn(RealmColumn("Task", "due", .timestamp)), "is date on the client and date or null in the app"),
            (
                .addColumn(RealmColumn("Task", "scores", .int, isNullable: true, .list)),
                "is list of int on the client and set of int in the app"
            ),
            (
                .addColumn(RealmColumn("Task", "owner", .link(to: "Place"), isNullable: true)),
                "is link to Place on the client and link to Person or null in the app"
            ),
            (.eraseTable("Task"), "A client cannot delete class 'Task'."),
            (.eraseColumn(table: "Task", name: "title"), "A client cannot delete property 'Task.title'."),
        ] as [(RealmInstruction, String)])
    func `another declaration is refused with both types`(instruction: RealmInstruction, words: String) {
        let error = #expect(throws: SluiceError.self) { try RealmSchemaCheck(Self.schema).check(instruction) }
        #expect(error?.code == .invalidSchemaChange)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test func `no deletion is ever declared`() {
        for instruction in RealmSchema.instructions(of: Samples.schema) {
            switch instruction {
            case .addTable, .addColumn: break
            default: Issue.record("\(instruction)")
            }
        }
    }
}
