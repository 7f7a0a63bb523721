import SluiceCore
import SluiceRealm
import SluiceValues
import TestSupport
import Testing

@Suite struct `Operations of instructions` {
    private static let task = ObjectKey(type: "Task", key: .int(5))
    private static let object = OutgoingOperation.Object(table: "Task", key: [1, 5])

    private static func path(_ steps: RealmStep...) -> RealmPath { RealmPath(task, "f", steps) }

    private static func place(_ elements: OutgoingOperation.Path.Element...) -> OutgoingOperation.Path {
        OutgoingOperation.Path(object: object, property: "f", elements: elements)
    }

    private static let pairs: [(RealmInstruction, OutgoingOperation)] = [
        (.addTable(RealmTable("Task", key: RealmTable.Key("_id", .int))), .addTable("Task")),
        (.addTable(RealmTable("Place", .embedded, key: nil)), .addTable("Place")), (.eraseTable("Task"), .eraseTable("Task")),
        (.addColumn(RealmColumn("Task", "title", .string)), .addColumn(table: "Task", name: "title")),
        (.eraseColumn(table: "Task", name: "title"), .eraseColumn(table: "Task", name: "title")),
        (.createObject(task), .create(object)), (.eraseObject(task), .erase(object)),
        (.update(path(), .value(.int(1))), .update(place(), .value)),
        (.update(path(.key("a")), .value(.null), isDefault: true), .update(place(.key("a")), .value)),
        (.update(path(.index(3), .key("a")), .erased), .update(place(.index(3), .key("a")), .value)),
        (.update(path(), .container(.list)), .update(place(), .list)),
        (.update(path(), .container(.dictionary)), .update(place(), .value)),
        (.update(path(), .container(.set)), .update(place(), .value)), (.update(path(), .container(.object)), .update(place(), .value)),
        (.addInteger(path(), 4), .update(place(), .value)), (.addInteger(path(.key("a")), 4), .update(place(.key("a")), .value)),
        (.addInteger(path(.index(7)), 4), .set(place(), index: 7)),
        (.addInteger(path(.key("a"), .index(2), .index(7)), 4), .set(place(.key("a"), .index(2)), index: 7)),
        (.arrayUpdate(path(.key("a")), at: 3, .value(.int(1)), priorSize: 70), .set(place(.key("a")), index: 3)),
        (.arrayUpdate(path(), at: 3, .container(.list), priorSize: 70), .set(place(), index: 3)),
        (.arrayInsert(path(), at: 2, .value(.int(1)), priorSize: 9), .insert(place(), index: 2, size: 9)),
        (.arrayMove(path(), from: 4, to: 1, priorSize: 9), .move(place(), from: 4, to: 1, size: 9)),
        (.arrayErase(path(.index(0)), at: 1, priorSize: 9), .remove(place(.index(0)), index: 1, size: 9)),
        (.clear(path(), .list), .clear(place())), (.clear(path(.key("a")), .none), .clear(place(.key("a")))),
        (.setInsert(path(), .value(.int(1))), .update(place(), .list)), (.setErase(path(), .value(.int(1))), .update(place(), .list)),
    ]

    @Test func `every instruction has its operation`() throws {
        for (instruction, operation) in Self.pairs { #expect(try OutgoingOperation(instruction) == operation, "\(instruction)") }
    }

    @Test(
        arguments: [
            (.null, [0]), (.int(123_456), [1, 0xC0, 0xC4, 0x07]), (.string("text"), [3, 4, 0x74, 0x65, 0x78, 0x74]), (.string(""), [3, 0]),
            (
                .objectId(ChangesetVector.objectId),
                [10, 0x65, 0xBB, 0, 0, 0, 0, 0, 0, 0, 0, 0x0A, 0xBC]
            ),
            (
                .uuid(ChangesetVector.uuid),
                [11, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF]
            ),
        ] as [(Value, [UInt8])])
    func `a key has its bytes, a string with its length`(key: Value, bytes: [UInt8]) throws {
        let object = OutgoingOperation.Object(table: "Task", key: bytes)
        #expect(try OutgoingOperation(.eraseObject(ObjectKey(type: "Task", key: key))) == .erase(object))
    }

    @Test func `a key or an index that cannot be is an error`() {
        let instructions: [RealmInstruction] = [
            .createObject(ObjectKey(type: "Task", key: .bool(true))), .createObject(ObjectKey(type: "Task", key: .list([]))),
            .arrayErase(Self.path(), at: -1, priorSize: 2), .arrayErase(Self.path(), at: 0, priorSize: Int(UInt32.max) + 1),
            .update(Self.path(.index(-1), .key("a")), .value(.null)), .addInteger(Self.path(.index(-1)), 1),
        ]
        for instruction in instructions {
            #expect(throws: SluiceError.self, "\(instruction)") { try OutgoingOperation(instruction) }
        }
    }

    // MARK: Changesets

    @Test(arguments: ChangesetVector.all) func `each vector has the operation of its instruction`(vector: ChangesetVector) throws {
        let bytes = try #require(Hex.decode(vector.hex))
        #expect(try OutgoingOperation.operations(of: bytes) == [OutgoingOperation(vector.instruction)])
    }

    @Test func `a recorded bootstrap has its operations, which a client accepts`() throws {
        let bytes = try #require(Hex.decode(RecordedChangesets.bootstrapHex))
        let operations = try OutgoingOperation.operations(of: bytes)
        let key: [UInt8] = [10, 0x65, 0xBB, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        let object = OutgoingOperation.Object(table: "Task", key: key)
        func place(_ property: String) -> OutgoingOperation.Path { OutgoingOperation.Path(object: object, property: property) }
        #expect(
            operations == [
                .erase(object), .create(object), .update(place("title"), .value), .update(place("done"), .value),
                .update(place("priority"), .value), .insert(place("tags"), index: 0, size: 0), .insert(place("tags"), index: 1, size: 1),
            ])
        var model = ClientModel()
        try model.send(operations)
        #expect(model.holds(object))
    }

    @Test func `a malformed changeset is an error, and an empty one has no operations`() throws {
        #expect(try OutgoingOperation.operations(of: []).isEmpty)
        #expect(throws: SluiceError.self) { try OutgoingOperation.operations(of: [0x3E]) }
    }

    @Test(arguments: seeds(20)) func `a random changeset has one operation for each instruction, in order`(seed: UInt64) throws {
        var random = RandomInstruction(seed: seed)
        let instructions = random.changeset()
        let bytes = try RealmChangesetWriter.bytes(of: instructions)
        #expect(try OutgoingOperation.operations(of: bytes) == instructions.map { try OutgoingOperation($0) }, "seed \(seed)")
    }
}
