import SluiceCore
import SluicePluginHost
import SluicePorts
import Testing

/// U+212A (Kelvin sign) equals "K" for Swift's `String`, and not for PostgreSQL.
@Suite struct `Texts of plans` {
    @Test func `two filters that differ by an equivalent text are both kept`() {
        let left = TypePlan(read: "team == \"K\"", write: "FALSEPREDICATE", role: "a")
        let right = TypePlan(read: "team == \"\u{212A}\"", write: "FALSEPREDICATE", role: "a")
        let both = left.intersected(with: right) { _ in true }
        #expect(Array(both.read.utf8) == Array("(team == \"K\") AND (team == \"\u{212A}\")".utf8))
        #expect(left != right && SessionPlan(types: ["T": left]) != SessionPlan(types: ["T": right]))
    }

    @Test func `a readable field shows no field of an equivalent name`() {
        let type = ObjectType(
            name: "T",
            properties: ["_id", "K", "\u{212A}"].enumerated().map { Property(id: UInt32($0 + 1), name: $1, type: .string) })
        let plan = TypePlan(read: "TRUEPREDICATE", write: "FALSEPREDICATE", fields: FieldRights(readable: ["_id", "K"]), role: "a")
        #expect(plan.hidden(of: type) == [2])
    }
}
