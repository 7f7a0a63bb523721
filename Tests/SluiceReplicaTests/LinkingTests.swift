import SluiceCore
import SluiceQuery
import SluiceReplica
import TestSupport
import Testing

/// Links followed backwards, whatever holds them.
@Suite struct LinkingTests {
    private static let schema = Schema([
        ObjectType(
            name: "Node",
            properties: [
                Property(id: 1, name: "_id", type: .string),
                Property(id: 2, name: "one", type: .link(to: "Node"), isOptional: true),
                Property(id: 3, name: "many", type: .link(to: "Node"), collection: .list),
                Property(id: 4, name: "named", type: .link(to: "Leaf"), collection: .dictionary, isOptional: true),
                Property(id: 5, name: "any", type: .mixed, isOptional: true),
                Property(id: 6, name: "inner", type: .embedded("Inner"), isOptional: true),
                Property(id: 7, name: "text", type: .string),
            ]),
        ObjectType(name: "Leaf", properties: [Property(id: 1, name: "_id", type: .int)]),
        ObjectType(
            name: "Inner", kind: .embedded,
            properties: [Property(id: 1, name: "leaf", type: .link(to: "Leaf"), isOptional: true)], primaryKey: nil),
    ])

    @Test(arguments: seeds(2)) func `the objects that link to some are found by every kind of property`(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let folder = try TemporaryFolder()
        let replica = try Replica(path: folder.file, schema: LinkingTests.schema, isSynced: false)
        func node() -> Value { .string("n\(random.below(40))") }
        func leaf() -> Value { .int(Int64(random.below(40))) }
        try replica.write { transaction in
            for id in 0..<40 { try transaction.create(type: 1, key: .int(Int64(id)), values: [:]) }
            for id in 0..<40 {
                var values: [String: Value] = ["text": .string("n\(random.below(40))")]
                switch random.below(7) {
                case 0: values["one"] = node()
                case 1: values["many"] = .list([node(), node()])
                case 2: values["named"] = .dictionary(["a": leaf(), "b": .null])
                case 3: values["any"] = .link(type: "Leaf", key: leaf())
                case 4: values["any"] = .list([.int(Int64(random.below(40))), .dictionary(["x": .link(type: "Node", key: node())])])
                case 5: values["inner"] = .dictionary(["leaf": leaf()])
                default: break
                }
                try transaction.create(type: 0, key: .string("n\(id)"), values: values)
            }
        }
        let store = try replica.makeReader().store
        let walk = LinkWalk(schema: LinkingTests.schema)
        for round in 0..<60 {
            let (nodes, leaves) = (random.below(20), random.below(20))
            let targets: [Int: Set<Value>] = [
                0: Set((0..<nodes).map { _ in node() }), 1: Set((0..<leaves).map { _ in leaf() }),
            ]
            var expected: Set<Value> = []
            try store.scan(type: 0) { row in
                let row = Row(row)
                walk.visit((0..<7).map { row[$0] ?? .null }, of: LinkingTests.schema.types[0]) { name, key, _ in
                    if targets[name == "Node" ? 0 : 1]?.contains(key) == true { expected.insert(row[0] ?? .null) }
                }
            }
            let found = try #require(try store.linking(0, to: targets))
            #expect(found == expected, "seed \(seed), round \(round)")
            #expect(try store.linking(1, to: targets)?.isEmpty == true)
            #expect(try store.linking(0, to: targets, limit: max(0, expected.count - 1)) == (expected.isEmpty ? [] : nil))
        }
    }
}
