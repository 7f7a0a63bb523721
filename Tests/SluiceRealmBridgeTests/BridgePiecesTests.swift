import SluiceCore
import SluiceRealm
import SluiceValues
import TestSupport
import Testing

@testable import SluiceRealmBridge

@Suite struct `The estimated size of an entry` {
    private static let spot = ObjectType(
        name: "Spot", kind: .embedded, properties: [Property(id: 1, name: "x", type: .int), Property(id: 2, name: "label", type: .string)],
        primaryKey: nil)
    private static let id = Property(id: 1, name: "_id", type: .objectId)
    private static let properties = [
        Property(id: 2, name: "title", type: .string, isOptional: true), Property(id: 3, name: "size", type: .int),
        Property(id: 4, name: "tags", type: .string, collection: .list), Property(id: 5, name: "scores", type: .int, collection: .set),
        Property(id: 6, name: "names", type: .string, collection: .dictionary),
        Property(id: 7, name: "spot", type: .embedded("Spot"), isOptional: true), Property(id: 8, name: "any", type: .mixed),
        Property(id: 9, name: "next", type: .link(to: "Item"), isOptional: true), Property(id: 10, name: "on", type: .bool),
        Property(id: 11, name: "part", type: .double), Property(id: 12, name: "due", type: .timestamp, isOptional: true),
    ]
    private static let item = ObjectType(name: "Item", properties: [Property(id: 1, name: "_id", type: .string)] + properties)
    private static let thing = ObjectType(name: "Thing", properties: [id] + properties)
    private static let schema = Schema([item, thing, spot])

    private static func text(_ random: inout SplitMix64, _ most: Int) -> String { String(repeating: "ü", count: random.below(most)) }

    private static func values(_ random: inout SplitMix64) -> [String: Value] {
        let small: Value = .int(Int64(truncatingIfNeeded: random.next()) >> Int64(random.below(64)))
        var names: [String: Value] = [:]
        for number in 0..<random.below(6) { names["\(text(&random, 100))\(number)"] = .string(text(&random, 9)) }
        return [
            "title": random.chance(20) ? .null : .string(text(&random, 200)), "size": small,
            "tags": .list((0..<random.below(9)).map { _ in .string(text(&random, 20)) }),
            "scores": .list(Set((0..<random.below(9)).map { _ in Int64(random.below(1_000_000)) }).sorted().map { .int($0) }),
            "names": .dictionary(names), "spot": random.chance(30) ? .null : .dictionary(["x": small, "label": .string(text(&random, 9))]),
            "any": random.chance(50) ? .list([small, .string(text(&random, 9))]) : .dictionary(names),
            "next": random.chance(50) ? .null : .string("k\(text(&random, 40))"), "on": .bool(true),
            "part": .double(0.1), "due": .timestamp(Timestamp(seconds: Int64(random.below(1 << 40)), nanoseconds: 5)),
        ]
    }

    /// A client stores at most 16 MB of an entry.
    @Test(arguments: seeds(40)) func `is no less than its bytes`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let writer = RealmObjectWriter(Self.schema)
        let declarations = RealmSchema.instructions(of: Self.schema)
        var (groups, instructions): ([BridgeGroup], [RealmInstruction]) = ([.instructions(declarations)], declarations)
        for number in 0..<200 {
            let type = random.chance(50) ? Self.item : Self.thing
            let name = "\(Self.text(&random, 40))\(number)"
            let key: Value = type == Self.item ? .string(name) : .objectId(ObjectIdentifierBytes(high: random.next(), low: 7))
            let object = ObjectKey(type: type.name, key: key)
            let values = Self.values(&random)
            let entered = try writer.enter(object, values)
            instructions += entered
            let row = Row(type.properties.map { values[$0.name] })
            groups.append(random.chance(50) ? .instructions(entered) : .entering(try writer.enter(object, row)))
        }
        var pieces = BridgePieces(maximum: 50_000)
        for group in groups { try pieces.append(group) }
        let changesets = pieces.take().map(\.changeset)
        let whole = try RealmChangesetWriter.bytes(of: instructions)
        let parts = try changesets.flatMap { try RealmChangesetReader.instructions(of: $0) }
        #expect(try parts == RealmChangesetReader.instructions(of: whole), "seed \(seed)")
        // The names of classes and properties are not counted.
        for changeset in changesets { #expect(changeset.count <= 50_000 + 500, "seed \(seed)") }
        let cost = groups.reduce(0) { $0 + $1.cost }
        #expect(whole.count <= cost + 500 && cost <= 3 * whole.count, "seed \(seed): \(cost) for \(whole.count)")
    }
}
