import ReplicaTestSupport
import SluiceCore
import SluiceMerge
import SluiceReplica
import TestSupport
import Testing

/// Edits of collections that the server has: they are recorded one by one, and the collection is written once.
@Suite struct RecordedEditTests {
    let folder: TemporaryFolder

    private static let type = ObjectType(
        name: "Note",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "lines", type: .string, collection: .list),
            Property(id: 3, name: "marks", type: .int, collection: .set),
            Property(id: 4, name: "scores", type: .int, collection: .dictionary),
            Property(id: 5, name: "parts", type: .embedded("Part"), collection: .dictionary),
            Property(id: 6, name: "links", type: .link(to: "Note"), collection: .list), Property(id: 7, name: "size", type: .int),
        ])
    private static let part = ObjectType(
        name: "Part", kind: .embedded,
        properties: [Property(id: 1, name: "x", type: .int), Property(id: 2, name: "y", type: .int, isOptional: true)])

    init() throws { folder = try TemporaryFolder() }

    /// A file that has a note of the server's.
    private func open(_ name: String, _ row: Row) async throws -> Replica {
        let replica = try Replica(
            path: "\(folder.path)/\(name).sqlite", schema: Schema([Self.type, Self.part]), environment: TestEnvironment())
        let version = try replica.addSubscriptionSet([subscription("Note", "TRUEPREDICATE")])
        try await replica.setSubscriptionState(version: version, .complete)
        try await replica.apply(batch(10, put: [row]))
        return replica
    }

    private static func row(lines: [Value] = [], marks: [Value] = [], scores: [String: Value] = [:]) -> Row {
        Row([
            .int(1), .list(lines), .list(marks), .dictionary(scores), .dictionary(["p": .dictionary(["x": .int(1), "y": .int(2)])]),
            .list([]), .int(0),
        ])
    }

    // MARK: Cost

    #if DEBUG
        private struct Work {
            var instructions: Int
            var bytes: Int
        }

        /// One transaction with as many edits of a note that has as many lines, marks and scores.
        private func work(
            _ count: Int, _ name: String, _ edit: (WriteTransaction, Int) throws -> Void
        ) async throws -> Work {
            let numbers = (0..<count).map { Value.int(Int64($0)) }
            let scores = Dictionary(uniqueKeysWithValues: (0..<count).map { ("k\($0)", Value.int(1)) })
            let lines = (0..<count).map { Value.string("line \($0)") }
            let replica = try await open("\(name) \(count)", Self.row(lines: lines, marks: numbers, scores: scores))
            let transaction = try replica.beginWrite()
            let before = Work(instructions: transaction.instructions, bytes: transaction.boundBytes)
            for index in 0..<count { try edit(transaction, index) }
            try transaction.commit()
            return Work(instructions: transaction.instructions - before.instructions, bytes: transaction.boundBytes - before.bytes)
        }

        private func collection(_ transaction: WriteTransaction, _ property: Int) throws -> EditedCollection {
            try #require(try transaction.editedCollection(type: 0, key: .int(1), property: property))
        }

        @Test(arguments: ["appends", "insertions and removals", "sets", "moves", "members", "entries"])
        func `twice the edits of a collection that the server has bind twice the bytes, by as many statements`(name: String) async throws {
            let edit: (WriteTransaction, Int) throws -> Void = { transaction, index in
                switch name {
                case "appends":
                    let list = try collection(transaction, 1)
                    try list.replace(list.count..<list.count, with: [.string("new")])
                case "insertions and removals":
                    let list = try collection(transaction, 1)
                    let middle = list.count / 2
                    try list.replace(middle..<middle + index % 2, with: index % 2 == 0 ? [.string("new")] : [])
                case "sets": try collection(transaction, 1).replace(index..<index + 1, with: [.string("new")])
                case "moves":
                    let list = try collection(transaction, 1)
                    try list.move(from: index, to: list.count - 1 - index)
                case "members":
                    let set = try collection(transaction, 2)
                    if index % 2 == 0 { try set.remove(member: .int(Int64(index))) } else { try set.insert(member: .int(Int64(-index))) }
                default: try collection(transaction, 3).set(index % 2 == 0 ? .int(2) : nil, forKey: "k\(index)")
                }
            }
            let (one, two) = (try await work(1_000, name, edit), try await work(2_000, name, edit))
            #expect(two.bytes * 10 <= one.bytes * 22 && one.bytes < 400_000, "\(one.bytes) and \(two.bytes) bytes")
            #expect(two.instructions <= one.instructions + 500, "\(one.instructions) and \(two.instructions) instructions")
        }

        @Test func `edits beside one that is recorded leave it in memory`() async throws {
            let replica = try await open("beside", Self.row(lines: (0..<1_000).map { .string("line \($0)") }))
            let transaction = try replica.beginWrite()
            let before = transaction.boundBytes
            for index in 0..<1_000 {
                try collection(transaction, 1).replace(index..<index, with: [.string("new")])
                try collection(transaction, 2).insert(member: .int(Int64(index)))
                try transaction.set(type: 0, key: .int(1), property: 6, .int(Int64(index)))
            }
            let spent = transaction.boundBytes - before
            #expect(spent < 100_000, "\(spent) bytes")
            transaction.cancel()
        }
    #endif

    // MARK: Outcome

    /// What an app does to the note, either in place or by values that it sets.
    private enum Action {
        case replace(Int, Range<Int>, [Value])
        case move(Int, Int)
        case swap(Int, Int)
        case insert(Value)
        case remove(Value)
        case score(String, Value?)
        case part(String, Value?)
        case partField(String, Value)
        case size(Int64)
        case add(Int64)
        case clear(Int)
    }

    private struct Note: Equatable {
        var (lines, marks, links): ([Value], [Value], [Value])
        var (scores, parts): ([String: Value], [String: Value])

        init(_ store: RowStore) throws {
            let row = try #require(try store.row(type: 0, key: .int(1)))
            func elements(_ property: Int) -> [Value] { if case .list(let elements)? = row[property] { elements } else { [] } }
            func entries(_ property: Int) -> [String: Value] { if case .dictionary(let entries)? = row[property] { entries } else { [:] } }
            (lines, marks, links) = (elements(1), elements(2), elements(5))
            (scores, parts) = (entries(3), entries(4))
        }
    }

    private static func action(_ note: Note, _ random: inout SplitMix64) -> Action {
        let property = random.chance(75) ? 1 : 5
        let list = property == 1 ? note.lines : note.links
        func new() -> Value { property == 1 ? .string("n\(random.below(6))") : .int(Int64(random.below(3))) }
        let low = random.below(list.count + 1)
        let number = Value.int(Int64(random.below(8)))
        switch random.below(20) {
        case 0..<5: return .replace(property, low..<low, (0..<1 + random.below(3)).map { _ in new() })
        case 5..<8 where low < list.count: return .replace(property, low..<low + 1, [new()])
        case 8, 9:
            let high = low + random.below(list.count - low + 1)
            return .replace(property, low..<high, random.chance(50) ? [] : [new()])
        case 10 where note.lines.count > 1: return .move(random.below(note.lines.count), random.below(note.lines.count))
        case 11 where note.lines.count > 1: return .swap(random.below(note.lines.count), random.below(note.lines.count))
        case 13: return .insert(number)
        case 14: return .remove(number)
        case 15: return .score("k\(random.below(4))", random.chance(70) ? number : nil)
        case 16: return .part(random.pick(["p", "q"]), random.chance(60) ? .dictionary(["x": number]) : nil)
        case 17 where note.parts["p"] != nil: return .partField("p", number)
        case 18: return random.chance(50) ? .size(Int64(random.below(9))) : .add(2)
        case 19 where random.chance(30): return .clear(property)
        default: return .replace(property, list.count..<list.count, [new()])
        }
    }

    private func inPlace(_ action: Action, _ transaction: WriteTransaction) throws {
        func collection(_ property: Int) throws -> EditedCollection {
            try #require(try transaction.editedCollection(type: 0, key: .int(1), property: property))
        }
        switch action {
        case .replace(let property, let range, let new): try collection(property).replace(range, with: new)
        case .move(let from, let to): try collection(1).move(from: from, to: to)
        case .swap(let one, let other): try collection(1).swap(one, other)
        case .insert(let member): try collection(2).insert(member: member)
        case .remove(let member): try collection(2).remove(member: member)
        case .score(let key, let value): try collection(3).set(value, forKey: key)
        case .part(let key, let value): try collection(4).set(value, forKey: key)
        case .partField(let key, let value):
            let edit = ShownEdit(path: [.key(key), .key("y")], [.set(value)])
            try collection(4).put(.null, at: .key(key), by: edit)
        case .size, .add, .clear: try oneByOne(action, transaction)
        }
    }

    /// As an app did it whose collections were set: each edit is merged and written by itself.
    private func oneByOne(_ action: Action, _ transaction: WriteTransaction) throws {
        let note = try Note(transaction.store)
        func set(_ property: Int, _ changes: [ShownEdit.Change]) throws {
            if changes.isEmpty { return }
            // The value itself follows from the edits.
            #expect(try transaction.set(type: 0, key: .int(1), property: property, .null, by: ShownEdit(changes)))
        }
        switch action {
        case .replace(let property, let range, let new):
            let all = property == 1 ? note.lines : note.links
            try set(property, ListEdits.replacing(range, with: new, isAll: range == all.indices))
        case .move(let from, let to):
            var order = Array(note.lines.indices)
            order.insert(order.remove(at: from), at: to)
            try set(1, ListEdits.moves(to: order))
        case .swap(let one, let other):
            var order = Array(note.lines.indices)
            order.swapAt(one, other)
            try set(1, ListEdits.moves(to: order))
        case .insert(let member): try set(2, [.setInsert(member)])
        case .remove(let member): try set(2, note.marks.contains(member) ? [.setErase(member)] : [])
        case .score(let key, let value): try set(3, [value.map { .setKey(key, $0) } ?? .removeKey(key)])
        case .part(let key, let value): try set(4, [value.map { .setKey(key, $0) } ?? .removeKey(key)])
        case .partField(let key, let value):
            let edit = ShownEdit(path: [.key(key), .key("y")], [.set(value)])
            try transaction.set(type: 0, key: .int(1), property: 4, .null, by: edit)
        case .size(let size): try transaction.set(type: 0, key: .int(1), property: 6, .int(size))
        case .add(let amount): try transaction.add(type: 0, key: .int(1), property: 6, amount: amount)
        case .clear(let property): try set(property, [.clear(.list)])
        }
    }

    @Test(arguments: seeds(4)) func `edits in place are recorded as those that are set one by one`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let row = Self.row(lines: (0..<4).map { .string("s\($0)") }, marks: [.int(1), .int(3)], scores: ["k1": .int(1)])
        let (one, other) = (try await open("one", row), try await open("other", row))
        for round in 0..<25 {
            let words: Comment = "seed \(seed), round \(round)"
            let (ours, theirs) = (try one.beginWrite(), try other.beginWrite())
            for _ in 0..<12 {
                let action = Self.action(try Note(theirs.store), &random)
                // Both ways within one transaction, too.
                if random.chance(15) { try oneByOne(action, ours) } else { try inPlace(action, ours) }
                try oneByOne(action, theirs)
                if random.chance(30) { try #require(try Note(ours.store) == Note(theirs.store), "\(words) \(action)") }
            }
            if random.chance(15) {
                ours.cancel()
                theirs.cancel()
            } else {
                try ours.commit()
                try theirs.commit()
            }
            try #require(try Note(one.makeReader().store) == Note(other.makeReader().store), words)
            if random.chance(20) {
                let batch = batch(UInt64(20 + round), put: [Self.row(lines: (0..<random.below(5)).map { .string("r\($0)") })])
                try await one.apply(batch)
                try await other.apply(batch)
                try #require(try Note(one.makeReader().store) == Note(other.makeReader().store), words)
            }
        }
        let (ours, theirs) = (
            try await one.pendingChangesets(after: 0, maximumBytes: .max), try await other.pendingChangesets(after: 0, maximumBytes: .max)
        )
        #expect(ours == theirs, "seed \(seed)")
        try check(ours, row, &random)
    }

    @Test func `a list that is uploaded as a whole beside edits is known as it is to the next transaction`() async throws {
        let row = Self.row(lines: [.string("s")])
        let replica = try await open("whole", row)
        func edit(_ transaction: WriteTransaction, _ property: Int) throws -> EditedCollection {
            try #require(try transaction.editedCollection(type: 0, key: .int(1), property: property))
        }
        try replica.write { transaction in
            try transaction.set(type: 0, key: .int(1), property: 1, .list([.string("a")]))
            try edit(transaction, 1).replace(1..<1, with: [.string("b")])
            // The object's names are made here, and for this property.
            try edit(transaction, 2).insert(member: .int(5))
            try edit(transaction, 1).replace(0..<1, with: [.string("x")])
            try edit(transaction, 1).replace(2..<2, with: [.string("c")])
        }
        try replica.write { transaction in
            try edit(transaction, 1).replace(1..<2, with: [])
            try transaction.set(type: 0, key: .int(1), property: 3, .dictionary(["k": .int(1)]), by: ShownEdit([.setKey("k", .int(1))]))
            try edit(transaction, 1).replace(0..<0, with: [.string("y")])
        }
        var state = Self.start(row)
        for changeset in try await replica.pendingChangesets(after: 0, maximumBytes: .max) {
            let writer = WriteContext(
                stamp: WriteStamp(time: changeset.time, client: ClientID(rawValue: 1)), base: changeset.base,
                now: LSN(rawValue: 100 + changeset.number))
            for change in changeset.changes { try Merge.apply(change, by: writer, to: &state, type: Self.type) }
        }
        let lines = Value.list(["y", "x", "c"].map { .string($0) })
        let shown = try Note(replica.makeReader().store).lines
        #expect(state.values?["lines"] == lines)
        #expect(Value.list(shown) == lines)
        #expect(state.values?["marks"] == .list([.int(5)]) && state.values?["scores"] == .dictionary(["k": .int(1)]))
    }

    /// The server's object.
    private static func start(_ row: Row) -> ObjectState {
        let names = type.properties.map(\.name)
        let values = Dictionary(uniqueKeysWithValues: names.indices.dropFirst().map { (names[$0], row[$0] ?? .null) })
        return ObjectState(row: values, clocks: nil, type: type, rowTime: 0, now: .zero)
    }

    /// The gateway makes one state of them, whatever another writer does meanwhile, in one change or edit by edit.
    private func check(_ changesets: [Changeset], _ row: Row, _ random: inout SplitMix64) throws {
        let (object, start) = (ObjectKey(type: "Note", key: .int(1)), Self.start(row))
        var (together, apart) = (start, start)
        for (number, changeset) in changesets.enumerated() {
            let now = LSN(rawValue: UInt64(100 + 2 * number))
            let stamp = WriteStamp(time: changeset.time, client: ClientID(rawValue: 1))
            let writer = WriteContext(stamp: stamp, base: LSN(rawValue: 10), now: now)
            for change in changeset.changes {
                try Merge.apply(change, by: writer, to: &together, type: Self.type)
                var rest = change
                rest.edits = []
                try Merge.apply(rest, by: writer, to: &apart, type: Self.type)
                for edit in change.edits {
                    let single = ObjectChange(object: change.object, kind: .set, edits: [edit], seen: change.seen)
                    try Merge.apply(single, by: writer, to: &apart, type: Self.type)
                }
            }
            let another = WriteContext(
                stamp: WriteStamp(time: changeset.time, client: ClientID(rawValue: 2)), base: LSN(rawValue: 10),
                now: LSN(rawValue: now.rawValue + 1))
            let edits = [
                Edit("lines", .insert(.string("x"), after: .listed(random.below(4), ValueHash(.string("s1"))), tag: UInt64(number + 1))),
                Edit(
                    "lines", [.element(.listed(random.below(4), ValueHash(.string("s2"))))],
                    random.chance(50) ? .remove : .set(.string("y"))),
                Edit("marks", .setErase(.int(Int64(random.below(8))))),
            ]
            let change = ObjectChange(object: object, kind: .set, edits: edits)
            try Merge.apply(change, by: another, to: &together, type: Self.type)
            try Merge.apply(change, by: another, to: &apart, type: Self.type)
            try #require(together.values == apart.values, "changeset \(number)")
            try #require(together.clocks == apart.clocks, "changeset \(number)")
        }
    }

    @Test func `moving or exchanging elements takes the moves that their new order takes`() {
        for count in 1..<9 {
            for one in 0..<count {
                for other in 0..<count {
                    var order = Array(0..<count)
                    order.insert(order.remove(at: one), at: other)
                    #expect(ListEdits.move(from: one, to: other) == ListEdits.moves(to: order), "\(one) to \(other) of \(count)")
                    order = Array(0..<count)
                    order.swapAt(one, other)
                    #expect(ListEdits.swap(one, other) == ListEdits.moves(to: order), "\(one) and \(other) of \(count)")
                }
            }
        }
    }
}
