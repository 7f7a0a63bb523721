import ReplicaTestSupport
import SluiceCore
import SluiceMerge
import SluiceReplica
import TestSupport
import Testing

/// Edits inside of values, over many transactions while the gateway is away.
@Suite struct PendingEditTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: seeds(4)) func `what is shown is what the pending changes make of the server's row`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let replica = try await Replica.make(folder)
        var server: [String: Value]?
        try replica.create(1, "mine")
        for round in 0..<60 {
            if random.chance(10) {
                let row = Row([.int(1), .string("theirs"), .int(0), .null, .list((0..<random.below(4)).map { .string("s\($0)") })])
                try await replica.apply(batch(UInt64(10 + round), put: [row]))
                server = ["title": row[1]!, "priority": row[2]!, "note": row[3]!, "tags": row[4]!]
            }
            let transaction = try replica.beginWrite()
            var tags = try tags(transaction.store)
            for _ in 0...random.below(4) { try edit(&tags, in: transaction, &random) }
            #expect(try self.tags(transaction.store) == tags)
            if random.chance(15) { transaction.cancel() } else { try transaction.commit() }
            let pending = try await replica.pendingChangesets(after: 0, maximumBytes: .max).flatMap(\.changes)
            let played = try Overlay.apply(server: server, pending: pending, type: todoType)
            #expect(try self.tags(replica.makeReader().store) == played?["tags"].flatMap { $0.elements } ?? [])
            if random.chance(10) { try await restore(replica, behind: UInt64(1_000 * (round + 1))) }
        }
    }

    @Test func `edits continue from those that another process has committed`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [Row([.int(1), .string("theirs"), .int(0), .null, .list([.string("a")])])]))
        // A second connection is to the first as another process is.
        let other = try Replica(path: folder.file, schema: testSchema, environment: TestEnvironment())
        for (place, tag) in [(replica, "one"), (other, "two"), (replica, "three")] {
            let transaction = try place.beginWrite()
            let before = try tags(transaction.store)
            let edit = ShownEdit([.insert(.string(tag), at: before.count)])
            try transaction.set(type: 0, key: .int(1), property: 4, .list(before + [.string(tag)]), by: edit)
            try transaction.commit()
            let shown = try tags(place.makeReader().store)
            #expect(shown == before + [.string(tag)])
        }
        let shown = try tags(replica.makeReader().store)
        #expect(shown == ["a", "one", "two", "three"].map { .string($0) })
    }

    /// As if the file had come from a backup: what waits in it, and what is written from here on, is not taken for what the gateway has.
    private func restore(_ replica: Replica, behind last: UInt64) async throws {
        let before = try tags(replica.makeReader().store)
        try await replica.renumberPending(after: last, time: .zero)
        #expect(try tags(replica.makeReader().store) == before)
        let transaction = try replica.beginWrite()
        if try transaction.store.row(type: 0, key: .int(1)) != nil {
            let tags = [Value.string("new")] + (try tags(transaction.store))
            try transaction.set(type: 0, key: .int(1), property: 4, .list(tags), by: ShownEdit([.insert(.string("new"), at: 0)]))
        }
        try transaction.commit()
        let pending = try await replica.pendingChangesets(after: 0, maximumBytes: .max)
        #expect(pending.allSatisfy { $0.number > last })
        let given = pending.flatMap(\.changes).flatMap(\.edits).compactMap { edit -> UInt64? in
            switch edit.action {
            case .insert(_, _, let tag), .move(_, let tag): tag
            default: nil
            }
        }
        #expect(Set(given).count == given.count && given.allSatisfy { $0 >> 32 == last }, "\(given)")
    }

    private func tags(_ store: RowStore) throws -> [Value] { try store.row(type: 0, key: .int(1))?[4]?.elements ?? [] }

    private func edit(_ tags: inout [Value], in transaction: WriteTransaction, _ random: inout SplitMix64) throws {
        let change: ShownEdit.Change
        let (index, new) = (random.below(tags.count + 1), Value.string("t\(random.below(5))"))
        switch random.below(10) {
        case 0:
            try transaction.set(type: 0, key: .int(1), property: 1, new)
            return
        case 1 where tags.count > 6:
            tags = [new]
            try transaction.set(type: 0, key: .int(1), property: 4, .list(tags))
            return
        case 2 where index < tags.count:
            tags.remove(at: index)
            change = .removeElement(index)
        case 3 where index < tags.count:
            tags[index] = new
            change = .setElement(index, new)
        case 4 where index < tags.count:
            let moved = tags.remove(at: index)
            let target = random.below(tags.count + 1)
            tags.insert(moved, at: target)
            change = .move(from: index, to: target)
        default:
            tags.insert(new, at: index)
            change = .insert(new, at: index)
        }
        try transaction.set(type: 0, key: .int(1), property: 4, .list(tags), by: ShownEdit(path: [], [change]))
    }
}

extension Value {
    fileprivate var elements: [Value]? { if case .list(let elements) = self { elements } else { nil } }
}
