import SluiceCore
import SluiceRealm
import Testing

@Suite struct `Classes that Realm clients declare` {
    private static let known = Schema([
        ObjectType(
            name: "Person", properties: [Property(id: 4, name: "_id", type: .int), Property(id: 5, name: "name", type: .string)]),
        ObjectType(name: "Spot", kind: .embedded, properties: [Property(id: 1, name: "x", type: .double)], primaryKey: nil),
    ])

    private func types(_ instructions: RealmInstruction...) throws(SluiceError) -> [ObjectType] {
        try RealmDeclarations.types(in: instructions, known: Self.known)
    }

    @Test func `a changeset's declarations become classes, with embedded objects for links to embedded classes`() throws {
        let found = try types(
            .addTable(RealmTable("Task", key: RealmTable.Key("_id", .string, isNullable: true))),
            .addTable(RealmTable("Place", .embedded, key: nil)), .addColumn(RealmColumn("Place", "y", .float, isNullable: true)),
            .addColumn(RealmColumn("Task", "place", .link(to: "Place"), isNullable: true)),
            .addColumn(RealmColumn("Task", "spots", .link(to: "Spot"), isNullable: true, .dictionary)),
            .addColumn(RealmColumn("Task", "owner", .link(to: "Person"), isNullable: true)),
            .addColumn(RealmColumn("Task", "any", .mixed, isNullable: true)),
            .addColumn(RealmColumn("Task", "anys", .mixed, isNullable: true, .list)),
            .addColumn(RealmColumn("Task", "notes", .string, isNullable: true, .list)), .createObject(ObjectKey(type: "Task", key: .null)))
        #expect(
            found == [
                ObjectType(
                    name: "Task",
                    properties: [
                        Property(id: 0, name: "_id", type: .string, isOptional: true),
                        Property(id: 0, name: "place", type: .embedded("Place"), isOptional: true),
                        Property(id: 0, name: "spots", type: .embedded("Spot"), collection: .dictionary),
                        Property(id: 0, name: "owner", type: .link(to: "Person"), isOptional: true),
                        Property(id: 0, name: "any", type: .mixed, isOptional: true),
                        Property(id: 0, name: "anys", type: .mixed, collection: .list),
                        Property(id: 0, name: "notes", type: .string, collection: .list, isOptional: true),
                    ]),
                ObjectType(
                    name: "Place", kind: .embedded, properties: [Property(id: 0, name: "y", type: .float, isOptional: true)],
                    primaryKey: nil),
            ])
    }

    @Test func `a known class gets properties`() throws {
        #expect(
            try types(.addColumn(RealmColumn("Person", "age", .int))) == [
                ObjectType(
                    name: "Person", properties: [Property(id: 0, name: "_id", type: .int), Property(id: 0, name: "age", type: .int)])
            ])
    }

    @Test func `declarations that the gateway sends read back as the app's classes`() throws {
        let instructions = RealmSchema.instructions(of: RandomObject.schema)
        let found = try RealmDeclarations.types(in: instructions, known: Schema([]))
        #expect(RealmSchema.instructions(of: Schema(found)) == instructions)
        let check = RealmSchemaCheck(Schema(found))
        for instruction in instructions { try check.check(instruction) }
    }

    @Test(
        arguments: [
            ([.addColumn(RealmColumn("Task", "a", .int))], "a property of the unknown class 'Task'"),
            (
                [.addColumn(RealmColumn("Person", "boss", .link(to: "Boss"), isNullable: true))],
                "'Person.boss' links to the unknown class 'Boss'"
            ),
            ([.addColumn(RealmColumn("Person", "a", .int)), .addColumn(RealmColumn("Person", "a", .bool))], "'Person.a' in two ways"),
            (
                [.addTable(RealmTable("Place", .embedded, key: nil)), .addTable(RealmTable("Place", key: RealmTable.Key("_id", .int)))],
                "class 'Place' in two ways"
            ),
            ([.eraseTable("Person")], "cannot delete class 'Person'"),
        ] as [([RealmInstruction], String)])
    func `a contradiction is refused`(instructions: [RealmInstruction], words: String) {
        let error = #expect(throws: SluiceError.self) { try RealmDeclarations.types(in: instructions, known: Self.known) }
        #expect(error?.code == .invalidSchemaChange)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test func `a repeated declaration is one`() throws {
        let column = RealmInstruction.addColumn(RealmColumn("Person", "age", .int))
        #expect(try types(column, column)[0].properties.count == 2)
    }
}
