import SluiceCore
import SluiceMerge
import Testing

/// One row of the table of conflict rules: steps by two or three writers, and what is to come out in every order that keeps
/// each writer's own.
struct ConflictCase: CustomTestStringConvertible {
    var rule: String
    var situation: String
    var steps: [Step]
    var outcome: [String: Value]?
    var start = ConflictCase.start
    var type = thing

    /// Whether the object was deleted meanwhile, so that what others wrote about the old one is void.
    var losesOthers: Bool {
        steps.contains { if case .client(_, _, _, let change) = $0 { change.kind == .delete } else { false } }
    }

    var testDescription: String { "\(rule): \(situation)" }

    /// A first step that everybody has seen.
    static let start = Step.client(9, at: 1, .create(["name": "first", "count": 10]))

    static let all: [ConflictCase] = [
        ConflictCase(
            rule: "CR-1", situation: "a deletion beats an edit, a later one too",
            steps: [.client(1, at: 10, seen: 1, .delete), .client(2, at: 20, seen: 1, .set(["name": "late"]))], outcome: nil),
        ConflictCase(
            rule: "CR-1", situation: "a deletion beats an addition",
            steps: [.client(1, at: 10, seen: 1, .delete), .client(2, at: 20, seen: 1, .add(5))], outcome: nil),
        ConflictCase(
            rule: "CR-2", situation: "a deletion beats a create that did not know of it",
            steps: [.client(1, at: 10, seen: 1, .delete), .client(2, at: 20, seen: 1, .create(["name": "again"]))], outcome: nil),
        ConflictCase(
            rule: "CR-2", situation: "a create after one's own deletion makes a new object, and others' old edits do not touch it",
            steps: [
                .client(1, at: 10, seen: 1, .delete), .client(1, at: 11, seen: 1, .create(["name": "new"])),
                .client(2, at: 20, seen: 1, .set(["count": 99])),
            ], outcome: ["name": "new"]),
        ConflictCase(
            rule: "CR-3", situation: "an old deletion does not beat a newer delete-and-recreate",
            steps: [
                .client(1, at: 10, seen: 1, .delete), .client(1, at: 11, seen: 1, .create(["name": "new"])),
                .client(2, at: 5, seen: 1, .delete),
            ], outcome: ["name": "new"]),
        ConflictCase(
            rule: "CR-3", situation: "a later deletion does",
            steps: [
                .client(1, at: 10, seen: 1, .delete), .client(1, at: 11, seen: 1, .create(["name": "new"])),
                .client(2, at: 15, seen: 1, .delete),
            ], outcome: nil),
        ConflictCase(
            rule: "CR-4", situation: "two creates of one key are one object, their values merge one by one",
            steps: [
                .client(1, at: 10, seen: 1, .create(["name": "one", "any": true])),
                .client(2, at: 20, seen: 1, .create(["name": "two", "owner": 5])),
            ], outcome: ["name": "two", "any": true, "owner": 5, "count": 10]),
        ConflictCase(
            rule: "CR-5", situation: "the later set of a property wins, whichever arrives first",
            steps: [
                .client(1, at: 20, seen: 1, .set(["name": "late", "count": 1])),
                .client(2, at: 10, seen: 1, .set(["name": "early", "any": 2])),
            ], outcome: ["name": "late", "count": 1, "any": 2]),
        ConflictCase(
            rule: "CR-5", situation: "of equal times the higher client number wins",
            steps: [.client(1, at: 20, seen: 1, .set(["name": "one"])), .client(2, at: 20, seen: 1, .set(["name": "two"]))],
            outcome: ["name": "two", "count": 10]),
        ConflictCase(
            rule: "CR-6", situation: "an explicit value beats a default, also an older one",
            steps: [
                .client(1, at: 5, seen: 1, .create(["any": "explicit"])),
                .client(2, at: 20, seen: 1, .create(["any": "default"], defaults: ["any"])),
            ], outcome: ["name": "first", "count": 10, "any": "explicit"]),
        ConflictCase(
            rule: "CR-6", situation: "of two defaults the later wins",
            steps: [
                .client(1, at: 5, seen: 1, .create(["any": 1], defaults: ["any"])),
                .client(2, at: 20, seen: 1, .create(["any": 2], defaults: ["any"])),
            ], outcome: ["name": "first", "count": 10, "any": 2]),
        ConflictCase(
            rule: "CR-7", situation: "strings are atomic",
            steps: [.client(1, at: 10, seen: 1, .set(["name": "first!"])), .client(2, at: 20, seen: 1, .set(["name": "?first"]))],
            outcome: ["name": "?first", "count": 10]),
        ConflictCase(
            rule: "CR-8", situation: "additions of two sides both count",
            steps: [.client(1, at: 10, seen: 1, .add(3)), .client(2, at: 20, seen: 1, .add(-1)), .client(3, at: 5, seen: 1, .add(100))],
            outcome: ["name": "first", "count": 112]),
        ConflictCase(
            rule: "CR-8", situation: "additions wrap",
            steps: [.client(1, at: 10, seen: 1, .add(.max)), .client(2, at: 20, seen: 1, .add(.max))],
            outcome: ["name": "first", "count": 8]),
        ConflictCase(
            rule: "CR-9", situation: "an addition counts on top of an earlier set",
            steps: [.client(1, at: 10, seen: 1, .set(["count": 50])), .client(2, at: 20, seen: 1, .add(7))],
            outcome: ["name": "first", "count": 57]),
        ConflictCase(
            rule: "CR-9", situation: "an addition is dropped for a later set",
            steps: [.client(1, at: 20, seen: 1, .set(["count": 50])), .client(2, at: 10, seen: 1, .add(7))],
            outcome: ["name": "first", "count": 50]),
        ConflictCase(
            rule: "CR-9", situation: "an addition counts on top of a default, also of a later one",
            steps: [
                .client(1, at: 20, seen: 1, .create(["any": 50], defaults: ["any"])), .client(2, at: 10, seen: 1, .add(7, to: "any")),
            ], outcome: ["name": "first", "count": 10, "any": 57]),
        ConflictCase(
            rule: "CR-10", situation: "an addition to null has no effect",
            steps: [.client(1, at: 10, seen: 1, .set(["count": .null])), .client(2, at: 20, seen: 1, .add(7))],
            outcome: ["name": "first"]),
        ConflictCase(
            rule: "CR-10", situation: "an addition to null counts again when an integer set that is older than it arrives",
            steps: [
                .client(1, at: 10, seen: 1, .set(["count": .null])), .client(2, at: 20, seen: 1, .add(7)),
                .client(3, at: 15, seen: 1, .set(["count": 1])),
            ], outcome: ["name": "first", "count": 8]),
        ConflictCase(
            rule: "CR-10", situation: "an addition to a string has no effect",
            steps: [.client(1, at: 10, seen: 1, .set(["any": "text"])), .client(2, at: 20, seen: 1, .add(7, to: "any"))],
            outcome: ["name": "first", "count": 10, "any": "text"]),
        ConflictCase(
            rule: "CR-32", situation: "SQL writes take part at their time",
            steps: [
                .client(1, at: 10, seen: 1, .set(["name": "one", "any": 1])), .client(2, at: 12, seen: 1, .set(["any": 3])),
                .sql(at: 20, ["name": "sql"]),
            ], outcome: ["name": "sql", "any": 3, "count": 10]),
    ]
}

extension Value: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral {
    public init(integerLiteral value: Int64) { self = .int(value) }
    public init(stringLiteral value: String) { self = .string(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

/// Every interleaving that keeps the order of each writer's steps.
func interleavings(_ steps: [Step]) -> [[Step]] {
    if steps.isEmpty { return [[]] }
    var writers: Set<UInt64> = []
    var all: [[Step]] = []
    for (index, step) in steps.enumerated() where writers.insert(step.writer).inserted {
        var rest = steps
        rest.remove(at: index)
        all += interleavings(rest).map { [step] + $0 }
    }
    return all
}

extension Step {
    var writer: UInt64 { if case .client(let client, _, _, _) = self { client } else { 0 } }
}

@Suite struct ConflictTableTests {
    @Test(arguments: ConflictCase.all + ConflictCase.inside)
    func `every rule of the table holds in every order of arrival, with others who write beside it`(conflict: ConflictCase) throws {
        for order in interleavings(conflict.steps) {
            let world = try World([conflict.start] + order, conflict.type)
            #expect(world.shown == conflict.outcome, "\(order)")
        }
        // A third client and an SQL statement, about other properties of the object.
        var others = [Step.client(7, at: 15, seen: 1, .set(["note": "third"]))]
        if !conflict.losesOthers, !conflict.steps.contains(where: { $0.writer == 0 }) { others.append(.sql(at: 500, ["remark": "sql"])) }
        let outcome = conflict.outcome?.merging(others.count > 1 ? ["note": "third", "remark": "sql"] : ["note": "third"]) { $1 }
        for order in interleavings(conflict.steps + others) {
            // Of an object that was made anew the third client knows nothing.
            let shown = try World([conflict.start] + order, conflict.type).shown
            #expect(shown == outcome || conflict.losesOthers && shown == outcome?.filter { $0.key != "note" }, "\(order)")
        }
    }

    @Test func `a create by somebody who has seen the deletion makes a new object`() throws {
        let world = try World([
            ConflictCase.start, .client(1, at: 10, seen: 1, .delete), .client(2, at: 20, seen: 2, .create(["name": "again"])),
        ])
        #expect(world.shown == ["name": "again"])
        #expect(world.lastEffect == .inserted)
    }

    @Test func `a deletion by somebody who has seen the new object counts although their clock is behind`() throws {
        let world = try World([
            ConflictCase.start, .client(1, at: 10, seen: 1, .delete), .client(1, at: 11, seen: 1, .create()),
            .client(2, at: 3, seen: 3, .delete),
        ])
        #expect(world.row == nil)
        #expect(try world.state(now: 20).clocks.deletion?.stamp.time ?? .zero > HybridTime(milliseconds: 10))
    }

    @Test func `CR-25 a link keeps its target's key, whatever happens to the target`() throws {
        let world = try World([ConflictCase.start, .client(1, at: 10, .set(["owner": 5])), .client(2, at: 20, .set(["name": "x"]))])
        #expect(world.row?["owner"] == 5)
    }

    @Test func `a later set in one transaction replaces the earlier, an addition after it counts`() throws {
        let world = try World([
            ConflictCase.start, .client(1, at: 10, .set(["count": 1])), .client(1, at: 10, .set(["count": 2])),
            .client(1, at: 10, .add(5)), .client(1, at: 10, .add(6)),
        ])
        #expect(world.row?["count"] == 13)
    }

    @Test func `effects say what happened`() throws {
        let cases: [(Step, MergeEffect)] = [
            (.client(1, at: 10, .set(["name": "x", "count": 10])), .updated(["name"])),
            (.client(1, at: 0, .set(["name": "x"])), .unchanged(.superseded)),
            (.client(1, at: 10, .set(["name": "first"])), .unchanged(.same)),
            (.client(1, at: 10, .create()), .unchanged(.same)),
            (.client(1, at: 10, .delete), .deleted),
        ]
        for (step, effect) in cases { #expect(try World([ConflictCase.start, step]).lastEffect == effect) }
        #expect(try World([.client(1, at: 1, .set(["name": "x"]))]).lastEffect == .unchanged(.objectDeleted))
    }

    @Test func `refuses properties that the type lacks and writes to the key, and does nothing`() throws {
        var state = ObjectState()
        let writer = WriteContext(stamp: .zero, base: .zero, now: .zero)
        #expect(throws: SluiceError(.unknownProperty, "Thing has no property 'nmae'. Did you mean 'name'?")) {
            try Merge.apply(.create(["nmae": "x"]), by: writer, to: &state, type: thing)
        }
        #expect(throws: SluiceError(.badChangeset, "A change of Thing writes the primary key '_id', which is fixed.")) {
            try Merge.apply(.add(1, to: "_id"), by: writer, to: &state, type: thing)
        }
        #expect(state == ObjectState())
    }
}
