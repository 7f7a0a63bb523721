import SluiceCore
import SluicePorts
import TestSupport
import Testing

@Suite struct `A session's permissions` {
    private static let type = ObjectType(
        name: "T",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "\u{E9}", type: .int, isOptional: true),
            Property(id: 3, name: "b", type: .string, isOptional: true),
        ])

    @Test func `are none for a class without rules`() {
        let plan = SessionPlan(types: ["T": .open])
        #expect(plan["T"].read == "TRUEPREDICATE" && plan["T"].insert)
        #expect(plan["U"] == .denied && !plan["U"].insert && !plan["U"].delete && plan["U"].read == "FALSEPREDICATE")
    }

    @Test func `hide what is not readable by its bytes, and never the key`() {
        var plan = TypePlan.open
        #expect(plan.hidden(of: Self.type).isEmpty)
        plan.fields.readable = ["b"]
        #expect(plan.hidden(of: Self.type) == [1])
        plan.fields.readable = ["e\u{301}", "b"]
        #expect(plan.hidden(of: Self.type) == [1], "equal letters of other bytes are another field")
        plan.fields.readable = []
        #expect(plan.hidden(of: Self.type) == [1, 2])
    }

    @Test func `differ by the bytes of their predicates, and by each other part`() {
        let plan = TypePlan(read: "name == '\u{E9}'", write: "TRUEPREDICATE", role: "r")
        var others = [TypePlan](repeating: plan, count: 8)
        others[0].read = "name == 'e\u{301}'"
        others[1].write = "FALSEPREDICATE"
        others[2].insert = false
        others[3].delete = false
        others[4].fields.readable = ["b"]
        others[5].role = "s"
        others[6].checkWrite = true
        others[7].grants = false
        for (index, other) in others.enumerated() { #expect(plan != other, "\(index)") }
        #expect(plan == plan)
    }
}

@Suite struct `Rows for rules` {
    private static let type = ObjectType(
        name: "T", properties: (0..<6).map { Property(id: UInt32($0 + 1), name: "p\($0)", type: .int, isOptional: true) })

    @Test(arguments: seeds(5)) func `have each object's values by name, and no absent ones`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let objects: [[String: Value]] = (0..<20).map { _ in
            var values: [String: Value] = [:]
            for property in Self.type.properties where random.chance(60) {
                values[property.name] = random.chance(20) ? .null : .int(Int64(random.below(9)))
            }
            return values
        }
        let rows = ObjectRows(type: Self.type, values: objects)
        for (index, values) in objects.enumerated() { #expect(rows.values(index) == values, "seed \(seed)") }
        let write = ProposedWrite(type: Self.type, operation: .update, before: objects[0], after: nil)
        #expect(write.after == nil && write.before == Row(objects[0], of: Self.type))
    }
}
