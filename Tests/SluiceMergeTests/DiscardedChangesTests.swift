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
    ///   - now: The end of the log before the commit.
    ///   - discarded: The number of the last changeset whose edits are not in the client's list.
    ///   - created: The number of the changeset that created the object.
    mutating func commit(
        _ number: UInt64, base: UInt64, now: UInt64, discarded: UInt64? = nil, created: UInt64? = nil, _ edits: Edit...
    ) throws {
        var writer = WriteContext(
            stamp: WriteStamp(time: HybridTime(milliseconds: Int64(number)), client: Self.client), base: LSN(rawValue: base),
            now: LSN(rawValue: now))
        writer.changeset = number
        var change = ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, edits: edits)
        change.discarded["list"] = discarded.map { DiscardedChanges(changeset: $0, nextTag: ($0 + 1) * 100) }
        if let created { change.discarded["list"] = DiscardedChanges(creation: created, firstTag: created * 100) }
        try Merge.apply(change, by: writer, to: &state, type: folder)
    }

    /// Appends an element as another client that knows everything.
    mutating func append(_ value: Value, now: UInt64) throws {
        guard case .list(let elements)? = shown else { return }
        try edit(now: now, Edit("list", .insert(value, after: elements.isEmpty ? nil : .seen(elements.count - 1), tag: now)))
    }

    /// Merges an edit of another client that knows everything.
    mutating func edit(now: UInt64, _ edit: Edit) throws {
        let writer = WriteContext(
            stamp: WriteStamp(time: HybridTime(milliseconds: 1), client: ClientID(rawValue: 2)), base: LSN(rawValue: now + 1),
            now: LSN(rawValue: now))
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

    @Test func `loses its edits of an empty list that another client has cleared, also once its base includes the Clear`() throws {
        var client = DiscardingClient([])
        try client.edit(now: 5, Edit("list", .clear(.list)))
        try client.commit(1, base: 4, now: 10, insert("x", at: 0, of: 0, 100))
        #expect(client.shown == [])
        // No entry has shown the Clear: the client's list still has "x".
        try client.commit(2, base: 8, now: 20, insert("y", at: 1, of: 1, 200), remove(0, of: 2))
        #expect(client.shown == [])
        // It has received the empty list.
        try client.commit(3, base: 30, now: 30, insert("z", at: 0, of: 0, 300))
        #expect(client.shown == ["z"])
    }

    @Test func `sees its own elements alone in an object that it created and others have already`() throws {
        var client = DiscardingClient(["p", "q"])
        // An earlier copy of the object, which has left the client's view.
        try client.commit(1, base: 5, now: 6, insert("old", at: 2, of: 2, 100))
        var plain = client
        #expect(throws: SluiceError.self) { try plain.commit(3, base: 8, now: 10, insert("x", at: 0, of: 0, 300)) }
        try client.commit(3, base: 8, now: 10, created: 3, insert("x", at: 0, of: 0, 300), insert("y", at: 1, of: 1, 301))
        #expect(client.shown == ["p", "q", "old", "x", "y"])
        try client.append("theirs", now: 12)
        try client.store()
        // The base includes everything, but the client has not received the row.
        try client.commit(
            4, base: 20, now: 20, created: 3, Edit("list", [.element(.seen(1))], .move(after: nil, tag: 400), priorSize: 2),
            insert("z", at: 2, of: 2, 401), remove(1, of: 3))
        #expect(client.shown == ["p", "q", "old", "y", "z", "theirs"])
        try client.store()
        plain = client
        #expect(throws: SluiceError.self) { try plain.commit(5, base: 22, now: 30, created: 3, remove(0, of: 6)) }
        try client.commit(5, base: 22, now: 30, created: 3, Edit("list", [.element(.seen(0))], .set("Y"), priorSize: 2))
        // It has received the row.
        try client.commit(6, base: 40, now: 40, remove(0, of: 6), remove(0, of: 5))
        #expect(client.shown == ["old", "Y", "z", "theirs"])
    }

    @Test func `keeps its elements after a Clear in an object that it created`() throws {
        var client = DiscardingClient(["p"])
        try client.commit(1, base: 5, now: 6, Edit("list", .clear(.list)))
        try client.append("theirs", now: 8)
        try client.commit(3, base: 5, now: 10, created: 3, insert("x", at: 0, of: 0, 300))
        try client.commit(4, base: 5, now: 20, created: 3, remove(0, of: 1), Edit("list", .clear(.list)), insert("y", at: 0, of: 0, 400))
        #expect(client.shown == ["y"])
        try client.commit(5, base: 5, now: 30, created: 3, insert("z", at: 1, of: 1, 500))
        #expect(client.shown == ["y", "z"])
    }
}
