import SluiceCore
import SluicePostgres
import TestSupport
import Testing

@Suite struct `The order of a changeset's rows` {
    private static let key = ForeignKey(name: "line_product", child: "Line", [1], parent: "Product", [0])
    private static let loop = ForeignKey(name: "node_parent", child: "Node", [1], parent: "Node", [0])

    private static func row(_ key: Int, _ reference: Int? = nil) -> Row {
        Row([.int(Int64(key)), reference.map { .int(Int64($0)) } ?? .null])
    }

    private static func insert(_ type: String, _ key: Int, _ reference: Int? = nil) -> RowImages {
        RowImages(type: type, before: nil, after: row(key, reference))
    }

    @Test func `has parents before children, children before parents that go, and is that of the changeset otherwise`() {
        let inserts = [Self.insert("Line", 1, 7), Self.insert("Line", 2), Self.insert("Product", 8), Self.insert("Product", 7)]
        #expect(WriteOrder(inserts, [Self.key]).indices == [1, 2, 3, 0])
        let deletes = [
            RowImages(type: "Product", before: Self.row(7), after: nil), RowImages(type: "Line", before: Self.row(1, 7), after: nil),
            RowImages(type: "Line", before: Self.row(2, 7), after: Self.row(2, 8)),
        ]
        #expect(WriteOrder(deletes, [Self.key]).indices == [1, 2, 0])
        #expect(WriteOrder(inserts, []).indices == [0, 1, 2, 3])
    }

    @Test func `of a circle is that of the changeset, with deferrable keys deferred`() {
        var keys = [Self.loop]
        let circle = [Self.insert("Node", 1, 2), Self.insert("Node", 2, 1), Self.insert("Node", 4, 3), Self.insert("Node", 3)]
        let stuck = WriteOrder(circle, keys)
        #expect(stuck.isImpossible && stuck.deferred.isEmpty && stuck.indices == [0, 1, 3, 2])
        keys[0].isDeferrable = true
        let deferred = WriteOrder(circle, keys)
        #expect(!deferred.isImpossible && deferred.deferred == keys && Set(deferred.indices) == [0, 1, 2, 3])
        // A row may refer to itself.
        #expect(!WriteOrder([Self.insert("Node", 1, 1)], [Self.loop]).isImpossible)
    }

    @Test(arguments: 1...60 as ClosedRange<UInt64>)
    func `satisfies every foreign key after every row, where one order does`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        // Forests before and after; a reference leads to a lower key, so that there is no circle.
        let count = 24
        func forest(_ generator: inout SplitMix64) -> [Int: Int?] {
            var nodes: [Int: Int?] = [:]
            for key in 0..<count where Bool.random(using: &generator) { nodes[key] = nodes.keys.sorted().randomElement(using: &generator) }
            return nodes
        }
        let (before, after) = (forest(&generator), forest(&generator))
        let keys = Set(before.keys).union(after.keys).shuffled(using: &generator)
        let rows = keys.map { key in
            RowImages(type: "Node", before: before[key].map { Self.row(key, $0) }, after: after[key].map { Self.row(key, $0) })
        }
        let order = WriteOrder(rows, [Self.loop])
        #expect(Set(order.indices) == Set(rows.indices) && order.indices.count == rows.count, "seed \(seed)")
        guard !order.isImpossible else { return }
        var state = before
        for index in order.indices {
            state[keys[index]] = after[keys[index]]
            if after[keys[index]] == nil { state.removeValue(forKey: keys[index]) }
            for (key, reference) in state {
                if let reference { #expect(state[reference] != nil, "seed \(seed): \(key) refers to \(reference), which is not there") }
            }
        }
        #expect(state == after, "seed \(seed)")
    }
}
