import SluiceCore
import SluiceMerge
import Testing

/// One list of a client that took the server's list while it had pending edits.
private struct DiscardingClient {
    private static let client = ClientID(rawValue: 7)
    private(set) var state: ObjectState

    init(_ elements: [Value]) {
        state = ObjectState(values: ["list": .list(elements)], clocks: ObjectClocks())
        state.clocks.properties[8] = PropertyClock(stamp: WriteStamp(time: .zero, client: .server))
    }

    var shown: Value? { state.values?["list"] }

    /// Merges a changeset of the client. Its tags are its number times 100, and the numbers behind.
    /// - Parameters:
    ///   - discarded: The number of the last changeset whose edits are not in the client's list.
    ///   - now: The end of the log before the commit.
    mutating func commit(_ number: UInt64, base: UInt64, now: UInt64, discarded: UInt64? = nil, _ edits: Edit...) throws {
        var writer = WriteContext(
            stamp: WriteStamp(time: HybridTime(milliseconds: Int64(number)), client: Self.client), base: LSN(rawValue: base),
            now: LSN(rawValue: now))
        writer.changeset = number
        var change = ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, edits: edits)
        change.discarded["list"] = discarded.map { DiscardedChanges(changeset: $0, nextTag: ($0 + 1) * 100) }
        try Merge.apply(change, by: writer, to: &state, type: folder)
    }

    /// Appends an element as another client that knows everything.
    mutating func append(_ value: Value, now: UInt64) throws {
        let writer = WriteContext(
            stamp: WriteStamp(time: HybridTime(milliseconds: 1), client: ClientID(rawValue: 2)), base: LSN(rawValue: now + 1),
            now: LSN(rawValue: now))
        guard case .list(let elements)? = shown else { return }
        let edit = Edit("list", .insert(value, after: elements.isEmpty ? nil : .seen(elements.count - 1), tag: now))
        let change = ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, edits: [edit])
        try Merge.apply(change, by: writer, to: &state, type: folder)
    }

    /// Merges the stored form of the clocks from here on.
    mutating func store() throws { state.clocks = try ObjectClocks(encoded: state.clocks.encoded) }
}

@Suite struct `A writer that discarded its pending edits of a list` {
    private func insert(_ value: Value, at index: Int, of size: Int, _ tag: UInt64) -> Edit {
        Edit("list", .insert(value, after: index == 0 ? nil : .seen(index - 1), tag: tag), priorSize: size)
    }
    private func remove(_ index: Int, of size: Int) -> Edit { Edit("list", [.element(.seen(index))], .remove, priorSize: size) }

    @Test func `does not see its insertions until its base includes them`() throws {
        var client = DiscardingClient(["a", "b"])
        // The client receives "y" as a whole list at 8. The pending insertion of "x" commits behind it.
        try client.append("y", now: 5)
        try client.commit(1, base: 0, now: 10, insert("x", at: 0, of: 2, 100))
        #expect(client.shown == ["x", "a", "b", "y"])
        var plain = client
        #expect(throws: SluiceError.self) { try plain.commit(2, base: 8, now: 20, insert("z", at: 3, of: 3, 200)) }
        try client.store()
        try client.commit(2, base: 8, now: 20, discarded: 1, insert("z", at: 3, of: 3, 200))
        #expect(client.shown == ["x", "a", "b", "y", "z"])
        // Its later changes are in its list, and the insertion is too once it received it.
        try client.commit(3, base: 8, now: 30, discarded: 1, remove(0, of: 4))
        #expect(client.shown == ["x", "b", "y", "z"])
        try client.commit(4, base: 40, now: 40, discarded: 1, remove(0, of: 4))
        #expect(client.shown == ["b", "y", "z"])
    }

    @Test func `sees the elements that it removed and moved where they were`() throws {
        var client = DiscardingClient(["a", "b", "c"])
        try client.append("y", now: 5)
        try client.commit(
            1, base: 0, now: 10, remove(0, of: 3), Edit("list", [.element(.seen(1))], .move(after: nil, tag: 100), priorSize: 2))
        #expect(client.shown == ["c", "b", "y"])
        try client.store()
        // In its list "c" is the third of four again.
        try client.commit(2, base: 8, now: 20, discarded: 1, insert("z", at: 3, of: 4, 200), remove(0, of: 5), remove(0, of: 4))
        #expect(client.shown == ["c", "z", "y"])
        // The second changeset removed "b" in the client's list, which now is "c", "z", "y".
        try client.store()
        try client.commit(3, base: 8, now: 30, discarded: 1, remove(2, of: 3))
        #expect(client.shown == ["c", "z"])
    }

    @Test func `loses its edits of a list that it emptied meanwhile`() throws {
        var client = DiscardingClient(["a", "b"])
        try client.append("y", now: 5)
        try client.commit(1, base: 0, now: 10, Edit("list", .clear(.list)), insert("x", at: 0, of: 0, 100))
        #expect(client.shown == ["x"])
        try client.commit(2, base: 8, now: 20, discarded: 1, insert("z", at: 3, of: 3, 200))
        #expect(client.shown == ["x"])
        // A clear of the list that it received counts, with what follows in the changeset.
        try client.commit(
            3, base: 8, now: 30, discarded: 1, remove(0, of: 3), Edit("list", .clear(.list)), insert("n", at: 0, of: 0, 300),
            insert("m", at: 1, of: 1, 301))
        #expect(client.shown == ["n", "m"])
    }
}
