import SluiceCore
import SluicePorts
import Testing
import TestSupport

@testable import SluicePipeline

/// A user could ask for keys by writing to them.
@Suite struct `A write by a user who may not create` {
    private static let type = ObjectType(
        name: "Order",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "store", type: .string, isOptional: true),
            Property(id: 3, name: "size", type: .int), Property(id: 4, name: "tags", type: .string, collection: .list),
        ])
    private static let object = ObjectKey(type: "Order", key: .string("k"))
    private static let reader = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", insert: false, role: "reader")

    /// What the client learns.
    private struct Answer: Equatable, CustomStringConvertible {
        var error: ErrorCode?
        var causes: [RejectionCause?] = []
        var messages: [String] = []
        var values: [[String: Value]] = []
        var description: String { "\(error.map { "\($0)" } ?? "") \(messages) \(values)" }
    }

    private static func answer(_ changes: [ObjectChange], _ row: Row?, seen: ClientViewHistory) async -> Answer {
        let commit = OneCommit(type: type, plan: reader, view: "store == 'north'", stored: row)
        do {
            let (rejected, written) = try await commit(changes, seen: seen)
            #expect(written.isEmpty)
            return Answer(causes: rejected.map(\.cause), messages: rejected.map(\.reason), values: rejected.map(\.values))
        } catch {
            return Answer(error: (error as? SluiceError)?.code)
        }
    }

    private static func change(_ random: inout SplitMix64) -> ObjectChange {
        let kind = random.pick([ObjectChange.Kind.create, .set, .set, .delete])
        guard kind != .delete else { return ObjectChange(object: object, kind: .delete) }
        var change = ObjectChange(object: object, kind: kind)
        if random.chance(60) { change.values["store"] = random.pick([.string("north"), .string("south"), .null]) }
        if random.chance(30) { change.values["size"] = .int(Int64(random.below(3))) }
        if random.chance(30) { change.counters["size"] = Int64(random.below(3)) }
        if random.chance(30) { change.values["tags"] = .list([.string("a"), .string("b")]) }
        if random.chance(40) {
            change.edits.append(
                random.pick([
                    Edit("tags", .insert(.string("mine"), after: nil, tag: 1)), Edit("tags", [.element(.seen(1))], .set(.string("mine"))),
                    Edit("tags", [.element(.seen(1_000_000))], .set(.string("mine"))),
                    Edit("tags", .insert(.string("mine"), after: nil, tag: 1), priorSize: 1),
                ]))
        }
        return change
    }

    @Test(arguments: seeds(400, soak: 20_000)) func `has the same answer whether the key is free or an object outside of the view has it`(
        seed: UInt64
    ) async {
        var random = SplitMix64(seed: seed)
        let changes = (0..<random.below(4) + 1).map { _ in Self.change(&random) }
        var seen = ClientViewHistory()
        // A client that says that it had seen the whole table, and one that says nothing.
        if random.chance(50) { seen.add(SnapshotPoint(cluster: "c", transaction: 95), at: LSN(rawValue: UInt64(random.pick([10, 60])))) }
        let hidden = Row([.string("k"), random.pick([.string("south"), .null]), .int(7), .list([.string("secret")])])
        let (free, taken) = (await Self.answer(changes, nil, seen: seen), await Self.answer(changes, hidden, seen: seen))
        #expect(free == taken, "seed \(seed): \(changes)")
        #expect(free.error == nil && free.causes.count == 1, "seed \(seed): \(free)")
    }
}
