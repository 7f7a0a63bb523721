import RealmTestSupport
import SluiceCore
import SluiceRealm
import TestSupport
import Testing

@Suite struct `Lists and dictionaries in mixed values of a client's file` {
    static let note = ObjectType(
        name: "Note",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "any", type: .mixed, isOptional: true),
            Property(id: 3, name: "other", type: .mixed, isOptional: true),
        ])
    static let schema = Schema([note])
    static func key(_ number: Int) -> ObjectKey { ObjectKey(type: "Note", key: .int(Int64(number))) }
    private static func list(_ number: Int, _ name: String = "any") -> RealmInstruction {
        .update(RealmPath(key(number), name), .container(.list))
    }

    // MARK: The model

    @Test func `end the process when an object is created or erased behind the last of them`() throws {
        var file = RealmModel(Self.schema)
        try file.apply([.createObject(Self.key(1)), .createObject(Self.key(2)), Self.list(1)])
        for instruction in [RealmInstruction.createObject(Self.key(3)), .eraseObject(Self.key(2))] {
            var copy = file
            #expect(throws: RealmModel.Fault.self) { try copy.apply(instruction) }
        }
        try file.apply([.eraseObject(Self.key(1))])
    }

    @Test func `are safe once the last object of the block had one`() throws {
        var file = RealmModel(Self.schema)
        try file.apply([.createObject(Self.key(1)), .createObject(Self.key(2)), Self.list(2), Self.list(1)])
        try file.apply([.createObject(Self.key(3)), .eraseObject(Self.key(2)), .eraseObject(Self.key(1)), .createObject(Self.key(4))])
        // The other property and the next block have keys of their own.
        for number in 5..<300 { try file.apply(.createObject(Self.key(number))) }
        var copy = file
        try copy.apply(Self.list(3, "other"))
        #expect(throws: RealmModel.Fault.self) { try copy.apply(.eraseObject(Self.key(4))) }
        try file.apply(Self.list(290))
        #expect(throws: RealmModel.Fault.self) { try file.apply(.createObject(Self.key(300))) }
    }

    // MARK: The gateway's instructions

    @Test func `reach an object that has had a scalar, and objects follow`() throws {
        let writer = RealmObjectWriter(Self.schema)
        var file = RealmModel(Self.schema)
        for number in 1...3 { try file.apply(try writer.enter(Self.key(number), ["any": .int(1)])) }
        try file.apply(try writer.replace(Self.key(1), ["any": .list([.int(1)])], number: 9))
        try file.apply(try writer.enter(Self.key(4), ["any": .null]))
        try file.apply(writer.leave(Self.key(3)))
        #expect(file.objects.count == 3)
        #expect(file.objects[Self.key(1)]?["any"] == .list([.int(1)]))
    }

    // MARK: Properties

    @Test(arguments: seeds(20)) func `are safe in random writes of the gateway and the app`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let writer = RealmObjectWriter(Self.schema)
        var file = RealmModel(Self.schema)
        #expect(throws: Never.self, "seed \(seed)") {
            try file.apply(writer.prepareContainers(in: Self.note, seed))
            for round in 0..<rounds(300, soak: 5_000) {
                let object = Self.key(random.below(40))
                let isHeld = file.objects[object] != nil
                switch random.below(7) {
                case 0: try file.apply(try writer.enter(object, Self.values(&random)))
                case 1: try file.apply(writer.leave(object))
                case 2 where isHeld: try file.apply(try writer.replace(object, Self.values(&random), number: UInt64(round)))
                // The app.
                case 3 where isHeld: try file.apply(.eraseObject(object))
                case 4 where isHeld: try file.apply(.update(RealmPath(object, random.pick(["any", "other"])), .container(.list)))
                default: try file.apply([.createObject(object), .update(RealmPath(object, "any"), .value(.int(1)))])
                }
            }
        }
    }

    @Test(arguments: seeds(10)) func `are safe in many blocks that the gateway has filled`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let writer = RealmObjectWriter(Self.schema)
        var file = RealmModel(Self.schema)
        #expect(throws: Never.self, "seed \(seed)") {
            for number in 0..<700 { try file.apply(try writer.enter(Self.key(number), ["any": .int(1)])) }
            for round in 0..<rounds(200, soak: 2_000) {
                let object = Self.key(random.below(800))
                switch random.below(4) {
                case 0: try file.apply(writer.leave(object))
                case 1 where file.objects[object] != nil:
                    try file.apply(try writer.replace(object, Self.values(&random), number: UInt64(round)))
                default: try file.apply(try writer.enter(object, Self.values(&random)))
                }
            }
        }
    }

    private static func values(_ random: inout SplitMix64) -> [String: Value] {
        let values: [Value] = [.null, .int(7), .string("w"), .list([.int(1)]), .dictionary(["in": .string("w")])]
        return random.chance(20) ? ["any": random.pick(values)] : ["any": random.pick(values), "other": random.pick(values)]
    }
}
