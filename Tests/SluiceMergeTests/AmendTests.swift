import SluiceCore
import SluiceMerge
import Testing

/// Client 1 changes something at the time 10, in which the rules set a property that it says nothing of.
@Suite struct `What the server's rules set in a change` {
    /// - Parameter before: what has arrived when the change does.
    private static func amended(_ name: String, to value: Value, before: [Step] = []) throws -> World {
        let start = ObjectChange.create(["name": "first", "count": 10, "map": .dictionary(["a": 1])])
        var world = try World([.client(9, at: 1, start)] + before + [.client(1, at: 10, seen: 1, .set(["name": "new"]))], folder)
        var state = try world.state(now: world.rowTime)
        let property = try #require(folder[name])
        let writer = WriteContext(
            stamp: WriteStamp(time: HybridTime(milliseconds: 10), client: ClientID(rawValue: 1)), base: LSN(rawValue: 1),
            now: LSN(rawValue: world.steps - 1))
        state.values?[name] = value
        state.clocks.properties[property.id] = Merge.amend(property, to: value, by: writer, state.clocks.properties[property.id])
        (world.row, world.clocks) = (state.values, state.clocks.encoded)
        return world
    }

    @Test(arguments: [
        (Int64(5), ObjectChange.set(["count": 7]), Int64(50)), (5, .add(3), 50), (15, .set(["count": 7]), 7), (15, .add(3), 53),
    ])
    func `counts as set at the change's time`(time: Int64, change: ObjectChange, count: Int64) throws {
        var world = try Self.amended("count", to: 50)
        try world.take(.client(2, at: time, seen: 1, change))
        #expect(world.row?["count"] == .int(count) && world.row?["name"] == "new")
    }

    @Test(arguments: [ObjectChange.set(["count": 8]), .add(5)])
    func `stands against what was later and had arrived, and all before that`(known: ObjectChange) throws {
        var world = try Self.amended("count", to: 50, before: [.client(3, at: 30, seen: 1, known)])
        #expect(world.row?["count"] == 50)
        try world.take(.client(2, at: 20, seen: 1, .set(["count": 7])))
        #expect(world.row?["count"] == 50)
        try world.take(.client(2, at: 40, seen: 1, .set(["count": 7])))
        #expect(world.row?["count"] == 7)
    }

    @Test func `voids what is written inside of the old value by who does not know of it`() throws {
        var world = try Self.amended("map", to: .dictionary(["b": 2]))
        let edit = ObjectChange.edit(Edit("map", [.key("c")], .set(3, isDefault: false)))
        try world.take(.client(2, at: 20, seen: 1, edit))
        #expect(world.row?["map"] == .dictionary(["b": 2]))
        try world.take(.client(2, at: 20, seen: 3, edit))
        #expect(world.row?["map"] == .dictionary(["b": 2, "c": 3]))
    }
}
