import SluiceCore
import SluiceMerge
import TestSupport
import Testing

/// A client who has seen the start and makes changes on top of its own.
private struct Writer {
    var number: UInt64
    var state: ObjectState
    var changes: [ObjectChange] = []
    var tag: UInt64 = 0

    init(_ number: UInt64) throws {
        self.number = number
        state = try Overlay.state(server: World([ConflictCase.full], folder).row, pending: [], type: folder)
    }

    mutating func perform(_ edits: [Edit]) throws { try perform(.edit(edits)) }

    mutating func perform(_ change: ObjectChange) throws {
        try Overlay.add(change, number: changes.count, to: &state, type: folder)
        changes.append(change)
    }

    func values(_ name: String) -> [Value] { if case .list(let values)? = state.values?[name] { values } else { [] } }

    mutating func listEdit(_ generator: inout SplitMix64, _ name: String) -> Edit {
        let values = values(name)
        guard let property = folder[name], let place = ShownPlace(state, property, []) else { return .clearList }
        tag += 1
        let new: Value = name == "list" ? .string("\(number)-\(tag)") : .dictionary(["n": .int(Int64(number * 100 + tag))])
        let after = Int.random(in: -1..<values.count, using: &generator)
        guard let index = values.indices.randomElement(using: &generator), let element = place.element(index) else {
            return Edit(name, .insert(new, after: place.element(after), tag: tag))
        }
        switch Int.random(in: 0..<10, using: &generator) {
        case 0..<4: return Edit(name, .insert(new, after: place.element(after), tag: tag))
        case 4..<6: return Edit(name, [.element(element)], .remove)
        case 6..<8: return Edit(name, [.element(element)], .move(after: after == index ? nil : place.element(after), tag: tag))
        case 8 where name == "children":
            return Edit(name, [.element(element), .key("m")], .set(.int(Int64(tag))))
        default: return Edit(name, [.element(element)], .set(new))
        }
    }

    mutating func edit(_ generator: inout SplitMix64) -> Edit {
        let key = ["k", "l", "m"].randomElement(using: &generator) ?? "k"
        let member = Value.int(Int64.random(in: 1...4, using: &generator))
        switch Int.random(in: 0..<24, using: &generator) {
        case 0..<9: return listEdit(&generator, "list")
        case 9..<12: return listEdit(&generator, "children")
        case 12: return .clearList
        case 13: return Edit("map", .clear(.dictionary))
        case 14: return Edit("set", .clear(.set))
        case 15, 16: return Edit("set", .setInsert(member))
        case 17: return Edit("set", .setErase(member))
        case 18: return Edit("map", [.key(key)], .remove)
        case 19:
            guard case .dictionary(let fields)? = state.values?["map"], case .int? = fields[key] else { return .key(key, member) }
            return Edit("map", [.key(key)], .add(member == 1 ? -5 : 7))
        case 20: return .key(key, member)
        case 21:
            // An app reaches a field only where there is an object.
            if case .dictionary? = state.values?["child"] { return .field(key, member) }
            return Edit("child", .become(.object))
        case 22: return Edit("child", .become(.object))
        default: return Edit("child", .set(.null))
        }
    }
}

extension ObjectChange {
    fileprivate static func edit(_ edits: [Edit]) -> ObjectChange {
        ObjectChange(object: ObjectKey(type: "Thing", key: .int(1)), kind: .set, edits: edits)
    }
}

@Suite struct InsideConvergenceTests {
    private func histories(_ generator: inout SplitMix64, wholes: Bool) throws -> (writers: [Writer], steps: [[Step]]) {
        var writers: [Writer] = []
        for number in 1...3 {
            var writer = try Writer(UInt64(number))
            var time: Int64 = 0
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                time += Int64.random(in: 1...10, using: &generator)
                if wholes, Int.random(in: 0..<8, using: &generator) == 0 {
                    let values: [(String, Value)] = [
                        ("list", ["w", .string("\(number)")]), ("map", .dictionary(["k": .int(Int64(number))])), ("set", .list([1, 9])),
                        ("child", .dictionary(["l": .int(time)])),
                    ]
                    let (name, value) = values[Int.random(in: 0..<values.count, using: &generator)]
                    try writer.perform(.set([name: value]))
                } else {
                    var edits: [Edit] = []
                    for _ in 0..<Int.random(in: 1...3, using: &generator) {
                        let edit = writer.edit(&generator)
                        // One by one, so that each is named in what the ones before made.
                        var next = writer.state
                        try Overlay.add(.edit([edit]), number: writer.changes.count, to: &next, type: folder)
                        writer.state = next
                        edits.append(edit)
                    }
                    writer.changes.append(.edit(edits))
                }
            }
            writers.append(writer)
        }
        let steps = writers.map { writer -> [Step] in
            // Later than what they have all seen, which was written at 1 (CR-30).
            var time: Int64 = 1
            return writer.changes.map { change in
                time += Int64.random(in: 1...10, using: &generator)
                return .client(writer.number, at: time, seen: 1, change)
            }
        }
        return (writers, steps)
    }

    @Test(arguments: seeds(4)) func `CR-11 to CR-23 any order of arrival of edits gives one state`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for round in 0..<30 {
            let (_, steps) = try histories(&generator, wholes: true)
            let first = [ConflictCase.full] + randomOrder(steps, &generator)
            let expected = try World(first, folder).shown
            for _ in 0..<6 {
                let order = [ConflictCase.full] + randomOrder(steps, &generator)
                let shown = try World(order, folder).shown
                let names = Set(folder.properties.map(\.name)).filter { shown?[$0] != expected?[$0] }
                try #require(
                    names.isEmpty,
                    "seed \(seed), round \(round): \(names.map { ($0, shown?[$0], expected?[$0]) })\n\(order.about(names))\n\(first.about(names))"
                )
            }
        }
    }

    @Test(arguments: [11376190969057031027, 12172570430950109622, 16087843202685815222, 6102221097084107107] + seeds(2))
    func `CR-32 edits converge with SQL writes between them`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for round in 0..<25 {
            let (_, early) = try histories(&generator, wholes: false)
            let statement = Step.sql(
                at: 1_000, ["list": ["s", "a", "t"], "map": .dictionary(["k": 77]), "set": .list([5]), "child": .dictionary(["s": 1])])
            let late = try histories(&generator, wholes: false).steps.map { steps in
                steps.prefix(1).map { step -> Step in
                    guard case .client(let client, _, let seen, let change) = step else { return step }
                    var moved = change
                    // Tags are never used twice.
                    moved.edits = change.edits.map { $0.tagged(beyond: 1_000) }
                    return .client(client, at: 2_000 + Int64(client), seen: seen, moved)
                }
            }
            var results: [[String: Value]?] = []
            for _ in 0..<6 {
                let cut = early.map { Int.random(in: 0...$0.count, using: &generator) }
                var order = [ConflictCase.full] + randomOrder(zip(early, cut).map { Array($0.prefix($1)) }, &generator)
                order.append(statement)
                order += randomOrder(zip(zip(early, cut).map { Array($0.dropFirst($1)) }, late).map { $0 + $1 }, &generator)
                results.append(try World(order, folder).shown)
            }
            let names = Set(folder.properties.map(\.name)).filter { name in results.contains { $0?[name] != results[0]?[name] } }
            #expect(
                names.isEmpty,
                "seed \(seed), round \(round): \(results.map { $0?.filter { names.contains($0.key) } })\n\(early.map { $0.about(names) })\n\(late.map { $0.about(names) })"
            )
        }
    }

    @Test(arguments: seeds(3)) func `what a device shows of its edits is what the gateway makes of them when nobody else writes`(
        seed: UInt64
    ) throws {
        var generator = SplitMix64(seed: seed)
        for round in 0..<30 {
            let (writers, steps) = try histories(&generator, wholes: true)
            let world = try World([ConflictCase.full] + steps[0].map(\.later), folder)
            var shown = try World([], folder)
            shown.row = writers[0].state.values
            #expect(shown.shown == world.shown, "seed \(seed), round \(round): \(steps[0])")
        }
    }

    @Test(arguments: [12850909427245299811] + seeds(3))
    func `clocks with contents read back as they were stored, and pruning keeps what is shown`(
        seed: UInt64
    ) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<25 {
            let (_, steps) = try histories(&generator, wholes: true)
            let world = try World([ConflictCase.full] + randomOrder(steps, &generator), folder)
            var state = try world.state(now: world.rowTime)
            #expect(state.clocks.encoded == world.clocks)
            let horizon = LSN(rawValue: UInt64.random(in: 0...world.steps, using: &generator))
            state.clocks.prune(below: horizon)
            let again = try ObjectClocks(encoded: state.clocks.encoded)
            #expect(again == state.clocks, "seed \(seed)")
            // The order of lists is what it was: every element still has its place.
            var pruned = world
            pruned.clocks = state.clocks.encoded
            #expect(try pruned.state(now: world.rowTime).values == world.state(now: world.rowTime).values)
            try checkLists(pruned, "seed \(seed)")
        }
    }

    /// Moves each element to the end, in order: nothing is lost and nothing twice.
    private func checkLists(_ world: World, _ words: String) throws {
        var world = world
        guard case .list(let values)? = world.row?["list"], let property = folder["list"] else { return }
        for index in values.indices {
            let base = Int(world.steps) + 1
            let state = try Overlay.state(server: world.row, pending: [], type: folder)
            guard let place = ShownPlace(state, property, []), let first = place.element(0), let last = place.element(values.count - 1),
                values.count > 1
            else { return }
            try world.take(.client(5, at: 5_000 + Int64(index), seen: base, .edit([.move(first, after: last, tag: UInt64(index))])))
        }
        #expect(world.row?["list"] == .list(values), "\(words)")
    }
}

extension Step {
    fileprivate var later: Step {
        guard case .client(let client, let time, let seen, let change) = self else { return self }
        return .client(client, at: time + 100, seen: seen, change)
    }
}

extension [Step] {
    /// The steps, cut to what concerns these properties.
    fileprivate func about(_ names: Set<String>) -> String {
        map { step -> String in
            guard case .client(let client, let time, _, let change) = step else { return "\(step)" }
            let edits = change.edits.filter { names.contains($0.property) }.map { "\($0.path) \($0.action)" }
            return "client \(client) at \(time): \(change.values.filter { names.contains($0.key) }) \(edits)"
        }.joined(separator: "\n")
    }
}

extension Edit {
    fileprivate func tagged(beyond offset: UInt64) -> Edit {
        var edit = self
        switch action {
        case .insert(let value, let after, let tag): edit.action = .insert(value, after: after?.tagged(beyond: offset), tag: tag + offset)
        case .move(let after, let tag): edit.action = .move(after: after?.tagged(beyond: offset), tag: tag + offset)
        default: break
        }
        edit.path = path.map { step in
            if case .element(let element) = step { .element(element.tagged(beyond: offset)) } else { step }
        }
        return edit
    }
}

extension ElementRef {
    fileprivate func tagged(beyond offset: UInt64) -> ElementRef {
        if case .own(let tag, let index, let hash) = self { .own(tag + offset, index: index, hash) } else { self }
    }
}
