import SluiceCore
import SluiceMerge
import TestSupport
import Testing

/// A class with embedded objects in each place where they can be, which have them in turn. They must have `y`, which the writer's model
/// lacks (SCH-10).
private let places = [
    Property(id: 2, name: "one", type: .embedded("Part"), isOptional: true),
    Property(id: 3, name: "list", type: .embedded("Part"), collection: .list),
    Property(id: 4, name: "map", type: .embedded("Part"), collection: .dictionary),
]
private let whole = ObjectType(name: "Thing", properties: [Property(id: 1, name: "_id", type: .int)] + places)
private let part = ObjectType(
    name: "Part", kind: .embedded,
    properties: places + [Property(id: 5, name: "x", type: .int), Property(id: 6, name: "y", type: .int)], primaryKey: nil)

/// The gateway's object, and the device's that made it: all its changesets have the base of the first.
private struct Making {
    static let base = LSN(rawValue: 3)

    private(set) var gateway = ObjectState()
    private(set) var device = ObjectState()
    private var count = 0

    init(_ values: [String: Value]) throws { try perform(.create(values)) }

    mutating func perform(_ change: ObjectChange) throws {
        try Overlay.add(change, number: count, to: &device, type: whole)
        count += 1
        try take(change, by: 1, at: Int64(count), base: Self.base)
    }

    /// Merges a change as the gateway does, with stored clocks.
    mutating func take(_ change: ObjectChange, by client: UInt64, at time: Int64, base: LSN) throws {
        let now = LSN(rawValue: Self.base.rawValue + UInt64(time))
        let writer = WriteContext(
            stamp: WriteStamp(time: HybridTime(milliseconds: time), client: ClientID(rawValue: client)), base: base, now: now)
        try Merge.apply(change, by: writer, to: &gateway, type: whole)
        gateway.fill(Set(places.map(\.name)), of: whole, in: Schema([whole, part]), now: now)
        gateway.clocks.prune(below: Self.base)
        let clocks = try ObjectClocks(encoded: gateway.clocks.encoded)
        gateway = ObjectState(row: gateway.values, clocks: clocks, type: whole, rowTime: time)
    }

    func place(_ name: String, _ steps: [ShownStep]) throws -> ShownPlace {
        let property = try #require(whole[name])
        return try #require(ShownPlace(device, property, steps))
    }

    /// What the device shows, as it is when the gateway makes it at once.
    func expected() throws -> [String: Value]? { try Making(device.values ?? [:]).gateway.values }
}

@Suite struct `What is filled into embedded objects` {
    private static let given = Value.dictionary(["x": 1])

    @Test func `leaves an element of a list findable for who gave the list`() throws {
        let (first, second) = (Value.dictionary(["x": 1, "y": 0]), Value.dictionary(["x": 2, "y": 0]))
        let other = Value.dictionary(["x": 2])
        let changes: [(Edit.Action, [EditStep], [Value])] = [
            (.set(9), [.key("x")], [.dictionary(["x": 9, "y": 0]), second]), (.remove, [], [second]),
            (.move(after: .listed(1, ValueHash(other)), tag: 1), [], [second, first]),
        ]
        for (action, rest, expected) in changes {
            var making = try Making(["list": .list([Self.given, other])])
            try making.perform(.edit(Edit("list", [.element(.listed(0, ValueHash(Self.given)))] + rest, action)))
            #expect(making.gateway.values?["list"] == .list(expected), "\(action)")
        }
    }

    @Test func `is beaten by everything, in elements too, and found by its new value by who has seen it`() throws {
        var making = try Making(["list": .list([Self.given])])
        let filled = Value.dictionary(["x": 1, "y": 0])
        let edit = Edit("list", [.element(.listed(0, ValueHash(filled))), .key("y")], .set(5, isDefault: true))
        try making.take(.edit(edit), by: 2, at: 1, base: LSN(rawValue: 9))
        #expect(making.gateway.values?["list"] == .list([.dictionary(["x": 1, "y": 5])]))
    }

    // MARK: Whatever the object is

    private static func part(_ depth: Int, _ generator: inout SplitMix64) -> Value {
        var fields: [String: Value] = ["x": .int(Int64(generator.below(1_000)))]
        guard depth > 0 else { return .dictionary(fields) }
        for (name, value) in parts(depth - 1, &generator) where generator.chance(60) { fields[name] = value }
        return .dictionary(fields)
    }

    private static func parts(_ depth: Int, _ generator: inout SplitMix64) -> [String: Value] {
        let list = (0..<generator.below(4)).map { _ in part(depth, &generator) }
        let map = (0..<generator.below(3)).map { ("k\($0)", part(depth, &generator)) }
        return ["one": part(depth, &generator), "list": .list(list), "map": .dictionary(Dictionary(uniqueKeysWithValues: map))]
    }

    /// The ways to all values in one.
    private static func ways(_ value: Value) -> [[ShownStep]] {
        let inside: [(ShownStep, Value)] =
            switch value {
            case .dictionary(let fields): fields.sorted { $0.key < $1.key }.map { (.key($0.key), $0.value) }
            case .list(let elements): elements.enumerated().map { (.index($0.offset), $0.element) }
            default: []
            }
        return [[]] + inside.flatMap { step, value in ways(value).map { [step] + $0 } }
    }

    /// Something that an app does in an object that it sees.
    private static func edit(_ making: Making, tag: UInt64, _ generator: inout SplitMix64) throws -> Edit? {
        let name = generator.pick(places.map(\.name))
        let way = generator.pick(ways(making.device.values?[name] ?? .null))
        let place = try making.place(name, way)
        switch (place.value, way.last) {
        case (.int, _): return Edit(name, place.path, .set(.int(Int64(tag))))
        case (.list(let elements), _):
            let after = place.element(generator.below(elements.count + 1) - 1)
            return Edit(name, place.path, .insert(part(1, &generator), after: after, tag: tag))
        case (.dictionary, .index(let index)?):
            if generator.chance(30) { return Edit(name, place.path, .remove) }
            let list = try making.place(name, Array(way.dropLast()))
            return Edit(name, place.path, .move(after: index == 0 ? nil : list.element(0), tag: tag))
        default: return nil
        }
    }

    @Test(arguments: seeds(60))
    func `does not keep edits of who made the object from what they are of`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<10 {
            var making = try Making(Self.parts(2, &generator))
            let filled = try making.expected()
            #expect(making.gateway.values == filled)
            for tag: UInt64 in 1...6 {
                guard let edit = try Self.edit(making, tag: tag, &generator) else { continue }
                try making.perform(.edit(edit))
                let filled = try making.expected()
                #expect(making.gateway.values == filled, "\(edit)")
            }
        }
    }
}
