import SluiceCore
import SluiceMerge
import TestSupport
import Testing

/// A device with writes that the gateway does not have, which is told of every other write with its times.
private struct Device {
    static let client: UInt64 = 2

    var server: ServerObject
    var pending: [PendingChange] = []
    /// The latest time that it has seen.
    var seen: Int64 = 0

    init(_ world: World) { server = ServerObject(row: world.row) }

    mutating func write(_ change: ObjectChange, after steps: UInt64, at time: Int64) {
        var change = change
        if change.kind != .delete, let row = server.row {
            for name in Array(change.values.keys) + Array(change.counters.keys) + change.edits.map(\.property) {
                change.seen[name] = ValueHash(row[name] ?? .null)
            }
        }
        seen = max(seen + 1, time)
        pending.append(PendingChange(change, time: HybridTime(milliseconds: seen), base: LSN(rawValue: steps)))
    }

    /// Takes note of what a step has made of the row, by what would be sent of it.
    mutating func take(_ step: Step, _ before: World, _ after: World) throws {
        if pending.isEmpty { return server = ServerObject(row: after.row) }
        var times: WriteTimes?
        if case .client = step {
            let old = try before.clocks.map { try ObjectClocks(encoded: $0) }
            let new = try after.clocks.map { try ObjectClocks(encoded: $0) }
            times = try WriteTimes(encoded: WriteTimes(new ?? ObjectClocks(), since: old).encoded)
        }
        server.replace(with: after.row, times: times, rowTime: after.rowTime, type: after.type)
    }

    func shown(_ type: ObjectType) throws -> [String: Value]? { try state(type).values }

    /// What it shows, with the names of the places.
    func state(_ type: ObjectType) throws -> ObjectState {
        try Overlay.state(server: server, pending: pending, client: ClientID(rawValue: Self.client), type: type)
    }

    /// What the gateway would make of it now.
    func merged(_ world: World) throws -> [String: Value]? {
        var world = world
        for change in pending {
            try world.take(
                .client(Self.client, at: change.time.milliseconds, seen: Int(change.base.rawValue), change.change))
        }
        return world.row
    }
}

@Suite struct WriteTimesTests {
    private static let start = Step.client(
        1, at: 1,
        .create(["name": "start", "count": 3, "map": .dictionary(["a": 1]), "set": .set([1, 2]), "list": .list(["a", "b", "c"])]))

    private func change(_ random: inout SplitMix64) -> ObjectChange {
        func pick(_ values: Value...) -> Value { values.randomElement(using: &random) ?? .null }
        let key = ["a", "b", "c"].randomElement(using: &random) ?? "a"
        switch random.below(13) {
        // A null that a device saw before it wrote may be one that nobody wrote: a default of its own counts then.
        case 0, 1: return .set(["name": pick("x", "y", "z", .null), "count": pick(5, 6)])
        case 2: return .set(["note": pick("n", .null)])
        case 3: return .set(["any": pick(1, "a", .null)])
        case 4, 5: return .add(Int64(random.below(19)) - 9)
        case 6: return .edit(Edit("map", [.key(key)], .set(pick(7, 8))))
        case 7: return .edit(Edit("map", [.key(key)], .remove))
        case 8: return .edit(Edit("set", random.chance(50) ? .setInsert(pick(2, 3, 4)) : .setErase(pick(1, 2, 3))))
        case 9: return .edit(Edit("child", .become(.object)), Edit("child", [.key("name")], .set(pick("k", "l"))))
        case 10: return .set(["map": pick(.dictionary(["z": 1]), .dictionary([:]))])
        case 11: return random.chance(30) ? .delete : .set(["child": .null])
        default:
            let defaults: Set<String> = random.chance(50) ? ["count"] : []
            return .create(["name": pick("made", "again"), "count": 1], defaults: defaults)
        }
    }

    /// A set of an element of the list, which `name` gives a name, or of the whole list. The list keeps its length: the order of
    /// insertions is not sent.
    private func listChange(
        _ count: Int, _ random: inout SplitMix64, _ name: (Int) -> ElementRef?
    ) -> ObjectChange {
        let text = Value.string(["a", "b", "x", "y"].randomElement(using: &random) ?? "a")
        guard count > 0, random.chance(85), let element = name(random.below(count)) else { return .set(["list": .list([text, "b", "c"])]) }
        return .edit(Edit("list", [.element(element)], .set(text)))
    }

    private func listChange(of device: Device, _ random: inout SplitMix64) throws -> ObjectChange {
        guard let property = folder["list"], let place = ShownPlace(try device.state(folder), property, []),
            case .list(let elements) = place.value
        else { return .set(["list": .list(["a", "b", "c"])]) }
        return listChange(elements.count, &random) { place.element($0) }
    }

    /// Of a client that has seen everything.
    private func listChange(in world: World, _ random: inout SplitMix64) -> ObjectChange {
        var elements: [Value] = []
        if case .list(let known)? = world.row?["list"] { elements = known }
        return listChange(elements.count, &random) { ElementRef.listed($0, ValueHash(elements[$0])) }
    }

    /// A step of others; SQL writes at the time of its transaction.
    private func step(_ world: World, _ random: inout SplitMix64, at times: inout [Int64]) -> Step {
        // A row that comes may have been there before, out of the view: that SQL has made it is not known.
        if random.below(5) == 0, world.row != nil {
            let names = ["name", "note", "remark"].filter { _ in random.chance(50) }
            let values = Dictionary(uniqueKeysWithValues: names.map { ($0, Value.string("sql \(random.below(100))")) })
            return .sql(at: world.rowTime + 1 + Int64(random.below(20)), random.below(12) == 0 ? nil : values)
        }
        let client = random.chance(50) ? 0 : 1
        times[client] = max(times[client] + 1, world.rowTime - 60 + Int64(random.below(120)))
        if random.chance(15) {
            let change = listChange(in: world, &random)
            return .client(UInt64([1, 3][client]), at: times[client], seen: Int(world.steps), change)
        }
        return .client(UInt64([1, 3][client]), at: times[client], seen: max(Int(world.steps) - random.below(3), 0), change(&random))
    }

    @Test(arguments: seeds(8)) func `what a device shows is what the gateway would make of its writes now`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for round in 0..<150 {
            var world = try World([Self.start], folder)
            var device = Device(world)
            var times: [Int64] = [1, 1]
            var story = ""
            for _ in 0..<random.below(6) + 3 {
                if random.chance(35) {
                    let own = try random.chance(20) ? listChange(of: device, &random) : change(&random)
                    device.write(own, after: world.steps, at: max(world.rowTime, 1) + Int64(random.below(40)))
                    story += "\nown \(own.kind) \(own.values) \(own.counters) \(own.edits) at \(device.seen)"
                } else {
                    let (next, before) = (step(world, &random, at: &times), world)
                    try world.take(next)
                    // Nothing is sent of what leaves the row as it is.
                    if world.row == before.row { world = before }
                    if world.row != before.row { try device.take(next, before, world) }
                    if world.row != before.row { story += "\n\(next) → \(String(describing: world.shown))" }
                    device.seen = max(device.seen, world.rowTime, times.max() ?? 0)
                }
                let (shown, merged) = (try device.shown(folder), try device.merged(world))
                #expect(shown?.present == merged?.present, "SLUICE_SEED=\(seed), round \(round):\(story)")
                if shown?.present != merged?.present { return }
            }
        }
    }

    @Test func `times of a property take few bytes`() throws {
        var world = try World([Self.start], folder)
        let before = try world.clocks.map { try ObjectClocks(encoded: $0) }
        try world.take(.client(900, at: 1_700_000_000_000, seen: 1, .set(["name": "new"])))
        let after = try ObjectClocks(encoded: try #require(world.clocks))
        #expect(WriteTimes(after, since: before).encoded.count <= 18)
    }

    @Test func `a set of a counter drops exactly the additions before it, among many`() throws {
        var world = try World([Self.start], folder)
        var device = Device(world)
        device.write(.set(["count": 5]), after: world.steps, at: 5)
        for time in 2...11 {
            let (step, before) = (Step.client(1, at: Int64(time), seen: Int(world.steps), .add(1)), world)
            try world.take(step)
            try device.take(step, before, world)
        }
        #expect(try device.shown(folder)?["count"] == .int(11))
        #expect(try device.merged(world)?["count"] == .int(11))
    }

    @Test func `many additions inside of a value are cut, and what is left is exact for what is later`() throws {
        var world = try World([Self.start], folder)
        for time in 2...20 {
            let add = Edit.Action.add(Int64(time))
            try world.take(.client(1, at: Int64(time), seen: Int(world.steps), .edit(Edit("map", [.key("a")], add))))
            try world.take(.client(1, at: Int64(time), seen: Int(world.steps), .add(Int64(time))))
        }
        let clocks = try ObjectClocks(encoded: try #require(world.clocks))
        let times = try WriteTimes(encoded: WriteTimes(clocks).encoded)
        func additions(_ clock: PropertyClock?) -> [PropertyClock.Addition] {
            guard case .keyed(let entries)? = clock?.contents else { return [] }
            return entries["a"]?.clock.additions ?? []
        }
        let (whole, sent) = (additions(clocks.properties[10]), additions(times.properties[10]))
        #expect(sent.count == 4 && sent.reduce(0) { $0 + $1.amount } == (2...20).reduce(0, +))
        #expect(whole.count == 19 && sent.last == whole.last)
        // Of a property all are sent.
        let count = clocks.properties[3]?.additions
        #expect(count?.count == 19 && times.properties[3]?.additions == count)
    }

    @Test func `times of an object that was deleted and made anew have the deletion, also with those that follow`() throws {
        var world = try World([Self.start, .client(1, at: 5, seen: 1, .delete)], folder)
        let gone = try ObjectClocks(encoded: try #require(world.clocks))
        #expect(WriteTimes(gone).isDeleted)
        try world.take(.client(1, at: 6, seen: 2, .create(["name": "anew"])))
        let anew = try ObjectClocks(encoded: try #require(world.clocks))
        let times = try WriteTimes(encoded: WriteTimes(anew, since: gone).encoded)
        #expect(times.deletion?.stamp.time == HybridTime(milliseconds: 5) && !times.isDeleted)
        #expect(WriteTimes(gone).followed(by: times) == times)
        try world.take(.client(1, at: 7, seen: 3, .set(["note": "n"])))
        let later = WriteTimes(try ObjectClocks(encoded: try #require(world.clocks)), since: anew)
        #expect(later.properties.count == 1 && later.deletion == times.deletion)
        let both = times.followed(by: later)
        #expect(both.properties.count == times.properties.count && both.deletion == times.deletion)
        #expect(both.followed(by: WriteTimes(gone)) == WriteTimes(gone))
    }

    @Test func `damaged times are refused`() throws {
        let world = try World([Self.start], folder)
        let bytes = WriteTimes(try ObjectClocks(encoded: try #require(world.clocks))).encoded
        for count in 0..<bytes.count {
            #expect(throws: SluiceError.self) { try WriteTimes(encoded: Array(bytes.prefix(count))) }
        }
        // A deletion that is announced and does not follow.
        #expect(throws: SluiceError.self) { try WriteTimes(encoded: [bytes[0], 2] + bytes[2...]) }
    }

    @Test func `only what a session may read is left of times`() {
        let clock = PropertyClock(stamp: WriteStamp(time: HybridTime(rawValue: 9), client: ClientID(rawValue: 1)))
        let times = WriteTimes(ObjectClocks(properties: [2: clock, 3: clock]))
        #expect(times.visible { $0 == 3 }.properties.keys.sorted() == [3])
        #expect(times.visible { _ in false }.isEmpty)
    }
}

extension [String: Value] {
    /// The values that are not null or empty; the set in one order.
    fileprivate var present: [String: Value] {
        var values = filter { !$0.value.isNull && $0.value != .list([]) && $0.value != .dictionary([:]) }
        if case .list(let members)? = values["set"] { values["set"] = .list(members.sorted { "\($0)" < "\($1)" }) }
        return values
    }
}
