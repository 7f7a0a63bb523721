import SluiceCore
import SluiceRealm
import TestSupport
import Testing

@Suite struct `The model of a client` {
    private static let task = OutgoingOperation.Object(table: "Task", key: [1, 5])
    private static let other = OutgoingOperation.Object(table: "Task", key: [1, 6])
    private static let tags = OutgoingOperation.Path(object: task, property: "tags")
    private static let title = OutgoingOperation.Path(object: task, property: "title")
    private static let deep = OutgoingOperation.Path(object: task, property: "rows", elements: [.index(0), .key("cells")])

    private static func isRefused(_ operation: OutgoingOperation, after earlier: [OutgoingOperation]) throws -> Bool {
        var model = ClientModel()
        try model.send(earlier)
        do { try model.send([operation]) } catch {
            #expect(error.code == .internalError)
            return true
        }
        return false
    }

    /// An object with a list of two elements.
    private static let filled: [OutgoingOperation] = [
        .create(task), .insert(tags, index: 0, size: 0), .insert(tags, index: 1, size: 1),
    ]

    private static let refused: [(String, OutgoingOperation)] = [
        ("a removed class", .eraseTable("Task")), ("a removed property", .eraseColumn(table: "Task", name: "title")),
        ("an update of an object that is missing", .update(.init(object: other, property: "title"), .value)),
        ("an insert into an object that is missing", .insert(.init(object: other, property: "tags"), index: 0, size: 0)),
        ("a clear in an object that is missing", .clear(.init(object: other, property: "tags"))),
        ("an object of another class", .update(.init(object: .init(table: "Person", key: [1, 5]), property: "title"), .value)),
        ("an insert behind the end", .insert(tags, index: 3, size: 2)), ("an insert with a wrong size", .insert(tags, index: 1, size: 1)),
        ("a set at the end", .set(tags, index: 2)), ("a removal at the end", .remove(tags, index: 2, size: 2)),
        ("a removal with a wrong size", .remove(tags, index: 0, size: 3)), ("a move from the end", .move(tags, from: 2, to: 0, size: 2)),
        ("a move to the end", .move(tags, from: 0, to: 2, size: 2)), ("a move to its own place", .move(tags, from: 1, to: 1, size: 2)),
        ("a set in an empty list", .set(.init(object: task, property: "notes"), index: 0)),
        ("an index beyond the size in the message", .remove(deep, index: 4, size: 4)),
        ("an element updated as a value", .update(.init(object: task, property: "tags", elements: [.index(0)]), .value)),
    ]

    private static let accepted: [(String, OutgoingOperation)] = [
        ("a new class", .addTable("Person")), ("a new property", .addColumn(table: "Task", name: "due")),
        ("an object again", .create(task)),
        ("a new object", .create(other)), ("the end of an object", .erase(task)), ("the end of a missing object", .erase(other)),
        ("a value", .update(title, .value)),
        ("a dictionary's value", .update(.init(object: task, property: "d", elements: [.key("a")]), .value)),
        ("an insert at the end", .insert(tags, index: 2, size: 2)), ("a set", .set(tags, index: 1)),
        ("a removal", .remove(tags, index: 1, size: 2)),
        ("a move", .move(tags, from: 1, to: 0, size: 2)), ("a clear", .clear(tags)), ("a deep set", .set(deep, index: 70)),
        ("a deep insert", .insert(deep, index: 4, size: 4)),
    ]

    @Test func `refuses what would stop the client`() throws {
        for (name, operation) in Self.refused { #expect(try Self.isRefused(operation, after: Self.filled), "\(name)") }
    }

    @Test func `accepts what the client accepts`() throws {
        for (name, operation) in Self.accepted { #expect(try !Self.isRefused(operation, after: Self.filled), "\(name)") }
    }

    @Test func `forgets the lists of an object that is erased or whose property is replaced`() throws {
        let again = Self.filled + [.erase(Self.task), .create(Self.task)]
        #expect(try Self.isRefused(.set(Self.tags, index: 0), after: again))
        #expect(try !Self.isRefused(.insert(Self.tags, index: 0, size: 0), after: again))
        #expect(try Self.isRefused(.set(Self.tags, index: 0), after: Self.filled + [.update(Self.tags, .value)]))
        #expect(try !Self.isRefused(.set(Self.tags, index: 0), after: Self.filled + [.update(Self.tags, .list)]))
    }

    @Test func `checks the lists of a restored object once it knows them`() throws {
        var model = ClientModel()
        model.restore(Self.task)
        #expect(model.holds(Self.task) && !model.holds(Self.other))
        try model.send([.set(Self.tags, index: 70), .update(Self.title, .value)])
        // A size in a message tells the length.
        try model.send([.insert(Self.tags, index: 4, size: 4)])
        #expect(throws: SluiceError.self) { try model.send([.set(Self.tags, index: 5)]) }
        var cleared = ClientModel()
        cleared.restore(Self.task)
        try cleared.send([.clear(Self.tags)])
        #expect(throws: SluiceError.self) { try cleared.send([.set(Self.tags, index: 0)]) }
    }

    @Test func `takes the client's own changes without a check`() throws {
        var model = ClientModel()
        model.received([.create(Self.other), .eraseTable("Task"), .set(Self.tags, index: 3), .remove(Self.tags, index: 9, size: 1)])
        #expect(model.holds(Self.other) && !model.holds(Self.task))
        model.received([.insert(.init(object: Self.other, property: "tags"), index: 0, size: 0)])
        try model.send([.set(.init(object: Self.other, property: "tags"), index: 0)])
        model.received([.erase(Self.other)])
        #expect(throws: SluiceError.self) { try model.send([.clear(.init(object: Self.other, property: "tags"))]) }
    }

    @Test func `forgets all objects beyond its bound and then checks the schema alone`() throws {
        var model = ClientModel(maximumObjects: 3)
        for number in UInt8(0)..<4 { try model.send([.create(.init(table: "Task", key: [1, number]))]) }
        #expect(model.isSaturated && model.count == 0)
        try model.send([.update(Self.title, .value), .set(Self.tags, index: 9), .erase(Self.task), .create(Self.task)])
        model.restore(Self.task)
        #expect(model.count == 0 && model.holds(Self.task))
        #expect(throws: SluiceError.self) { try model.send([.eraseTable("Task")]) }
    }

    /// Random edits of exact objects, beside a plain model of their lists.
    @Test(arguments: seeds(20)) func `accepts each valid edit and refuses each invalid one`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var model = ClientModel()
        var lists: [OutgoingOperation.Object: [String: UInt32]] = [:]
        for step in 0..<400 {
            let object = OutgoingOperation.Object(table: random.pick(["A", "B"]), key: [UInt8(random.below(3))])
            let path = OutgoingOperation.Path(object: object, property: random.pick(["p", "q"]))
            let size = lists[object]?[path.property] ?? 0
            let index = UInt32(random.below(Int(size) + 3))
            let (operation, isValid, next) = Self.edit(random.below(8), path, index, size)
            let holds = lists[object] != nil
            var copy = model
            let isAccepted = (try? copy.send([operation])) != nil
            switch operation {
            case .create, .erase: #expect(isAccepted, "seed \(seed), step \(step)")
            default: #expect(isAccepted == (holds && isValid), "seed \(seed), step \(step), \(operation), size \(size)")
            }
            guard isAccepted else { continue }
            model = copy
            switch operation {
            case .create: lists[object] = lists[object] ?? [:]
            case .erase: lists[object] = nil
            default: lists[object]?[path.property] = next
            }
        }
    }

    /// Returns an operation, `true` if a list of this size permits it, and the size after it.
    private static func edit(
        _ kind: Int, _ path: OutgoingOperation.Path, _ index: UInt32, _ size: UInt32
    ) -> (OutgoingOperation, Bool, UInt32) {
        switch kind {
        case 0: (.create(path.object), true, size)
        case 1: (.erase(path.object), true, 0)
        case 2: (.clear(path), true, 0)
        case 3: (.set(path, index: index), index < size, size)
        case 4: (.remove(path, index: index, size: size), index < size, size > 0 ? size - 1 : 0)
        case 5: (.move(path, from: index, to: 0, size: size), index > 0 && index < size, size)
        case 6: (.update(path, .value), true, 0)
        default: (.insert(path, index: index, size: size), index <= size, size + 1)
        }
    }
}
