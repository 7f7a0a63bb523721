import ReplicaTestSupport
import SluiceCore
import SluiceMerge
import SluiceReplica
import TestSupport
import Testing

/// Lists, sets and maps that a transaction edits in place.
@Suite struct EditedCollectionTests {
    let folder: TemporaryFolder

    private static let schema = Schema([
        ObjectType(
            name: "Person",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "tags", type: .string, collection: .list),
                Property(id: 3, name: "friends", type: .link(to: "Person"), collection: .list),
                Property(id: 4, name: "marks", type: .int, collection: .set),
                Property(id: 5, name: "scores", type: .int, collection: .dictionary), Property(id: 6, name: "age", type: .int),
            ])
    ])

    init() throws { folder = try TemporaryFolder() }

    private func open(isSynced: Bool) throws -> Replica {
        let file = isSynced ? "\(folder.path)/synced.sqlite" : folder.file
        let replica = try Replica(path: file, schema: Self.schema, isSynced: isSynced, environment: TestEnvironment())
        if isSynced, try replica.currentSubscriptionSet().version == 0 {
            _ = try replica.addSubscriptionSet([subscription("Person", "TRUEPREDICATE")])
        }
        return replica
    }

    // MARK: Cost

    private struct Work {
        var instructions: Int
        var bytes: Int
    }

    #if DEBUG
        /// One transaction that makes an object, appends to one of its lists and sets each element.
        private func work(_ count: Int, on property: Int, isSynced: Bool) throws -> Work {
            let replica = try open(isSynced: isSynced)
            let key = Value.int(Int64(count))
            let transaction = try replica.beginWrite()
            let before = Work(instructions: transaction.instructions, bytes: transaction.boundBytes)
            try transaction.create(type: 0, key: key, values: ["tags": .list([]), "friends": .list([])])
            for round in 0..<2 {
                for index in 0..<count {
                    let list = try #require(try transaction.editedCollection(type: 0, key: key, property: property))
                    let range = round == 0 ? index..<index : index..<index + 1
                    try list.replace(range, with: [property == 1 ? .string("element") : .int(Int64(1 + round))])
                }
            }
            try transaction.commit()
            #expect(try replica.makeReader().store.row(type: 0, key: key)?[property]?.elements?.count == count)
            return Work(instructions: transaction.instructions - before.instructions, bytes: transaction.boundBytes - before.bytes)
        }

        @Test(arguments: [1, 2], [false, true])
        func `twice the edits of a list bind twice the bytes, by as many statements`(property: Int, isSynced: Bool) throws {
            let (one, two) = (
                try work(1_000, on: property, isSynced: isSynced), try work(2_000, on: property, isSynced: isSynced)
            )
            #expect(two.bytes * 10 <= one.bytes * 21 && one.bytes < 100_000, "\(one.bytes) and \(two.bytes) bytes")
            #expect(two.instructions <= one.instructions + 500, "\(one.instructions) and \(two.instructions) instructions")
        }

        @Test func `one object's list is written once while others change`() throws {
            let replica = try open(isSynced: false)
            try replica.write { transaction in
                try transaction.create(type: 0, key: .int(1), values: [:])
                let before = transaction.boundBytes
                for index in 0..<1_000 {
                    let list = try #require(try transaction.editedCollection(type: 0, key: .int(1), property: 2))
                    try list.replace(index..<index, with: [.int(1)])
                    try transaction.create(type: 0, key: .int(Int64(10 + index)), values: [:])
                    try transaction.set(type: 0, key: .int(1), property: 5, .int(Int64(index)))
                    #expect(try transaction.store.rowWithoutEdits(type: 0, key: .int(1))?[5] == .int(Int64(index)))
                    try transaction.add(type: 0, key: .int(1), property: 5, amount: 1)
                }
                let spent = transaction.boundBytes - before
                #expect(spent < 100_000, "\(spent) bytes")
                #expect(try transaction.store.origins(of: .int(1), type: 0, property: 2).count == 1_000)
            }
        }
    #endif

    // MARK: Outcome

    /// A person as the test has it.
    private struct Person: Equatable {
        var tags: [Value] = []
        var friends: [Value] = []
        var marks: Set<Value> = []
        var scores: [String: Value] = [:]
        var age: Int64 = 0

        init() {}

        init(_ row: Row) {
            tags = row[1]?.elements ?? []
            friends = row[2]?.elements ?? []
            marks = Set(row[3]?.elements ?? [])
            if case .dictionary(let entries)? = row[4] { scores = entries }
            if case .int(let number)? = row[5] { age = number }
        }
    }

    @Test func `an object that is deleted in the transaction that made it leaves no change`() async throws {
        let replica = try open(isSynced: true)
        try replica.write { transaction in
            try transaction.create(type: 0, key: .int(1), values: ["age": .int(1)])
            try transaction.set(type: 0, key: .int(1), property: 1, .list([.int(1)]), by: ShownEdit([.insert(.string("a"), at: 0)]))
            // Goes not together with an edit: a change of its own.
            try transaction.set(type: 0, key: .int(1), property: 5, .int(2))
            try transaction.delete(type: 0, key: .int(1))
        }
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: .max).flatMap(\.changes) == [])
    }

    @Test(arguments: seeds(4), [false, true])
    func `edits in place come to what edits one by one come to`(seed: UInt64, isSynced: Bool) async throws {
        var random = SplitMix64(seed: seed)
        let replica = try open(isSynced: isSynced)
        var people: [Int64: Person] = [:]
        for _ in 0..<30 {
            var now = people
            let transaction = try replica.beginWrite()
            for _ in 0..<12 {
                try change(&now, in: transaction, &random)
                if random.chance(20) { try check(now, transaction.store) }
            }
            if random.chance(20) {
                transaction.cancel()
            } else {
                try transaction.commit()
                people = now
            }
            try check(people, replica.makeReader().store)
            guard isSynced else { continue }
            let pending = try await replica.pendingChangesets(after: 0, maximumBytes: .max).flatMap(\.changes)
            for (key, person) in people {
                let own = pending.filter { $0.object.key == .int(key) }
                let played = try Overlay.apply(server: nil, pending: own, type: Self.schema.types[0])
                let values = Self.schema.types[0].properties.map { $0.name == "_id" ? .int(key) : played?[$0.name] }
                #expect(Person(Row(values)) == person, "seed \(seed)")
            }
        }
    }

    private func check(_ people: [Int64: Person], _ store: RowStore) throws {
        var found: [Int64: Person] = [:]
        try store.scan(type: 0) { row in if case .int(let key)? = row.value(0) { found[key] = Person(Row(row)) } }
        #expect(found == people)
        for (key, person) in people { #expect(try store.row(type: 0, key: .int(key)).map { Person($0) } == person) }
        for target in Int64(0)..<4 {
            let fans = people.sorted { $0.key < $1.key }.flatMap { key, person in
                person.friends.filter { $0 == .int(target) }.map { _ in Value.int(key) }
            }
            #expect(try store.origins(of: .int(target), type: 0, property: 2) == fans)
        }
    }

    private func change(_ people: inout [Int64: Person], in transaction: WriteTransaction, _ random: inout SplitMix64) throws {
        let id = Int64(random.below(4))
        let key = Value.int(id)
        guard var person = people[id] else {
            try transaction.create(type: 0, key: key, values: ["age": .int(0)])
            people[id] = Person()
            return
        }
        switch random.below(12) {
        case 0:
            try transaction.delete(type: 0, key: key)
            people[id] = nil
            return
        case 1:
            person.age = Int64(random.below(9))
            try transaction.set(type: 0, key: key, property: 5, .int(person.age))
        case 2:
            person.age += 2
            try transaction.add(type: 0, key: key, property: 5, amount: 2)
        case 3:
            person.tags = [.string("merged")]
            try transaction.create(type: 0, key: key, values: ["tags": .list(person.tags)])
        case 4:
            person.friends = [.int(1)]
            try transaction.set(type: 0, key: key, property: 2, .list(person.friends))
        case 5, 6: try insert(&person.marks, of: key, in: transaction, &random)
        case 7, 8: try set(&person.scores, of: key, in: transaction, &random)
        case 9: try replace(&person.friends, 2, of: key, in: transaction, .int(Int64(random.below(4))), &random)
        default: try replace(&person.tags, 1, of: key, in: transaction, .string("t\(random.below(5))"), &random)
        }
        people[id] = person
    }

    private func replace(
        _ elements: inout [Value], _ property: Int, of key: Value, in transaction: WriteTransaction, _ new: Value,
        _ random: inout SplitMix64
    ) throws {
        let low = random.below(elements.count + 1)
        let isRemoval = random.chance(30) && low < elements.count
        let isSetting = !isRemoval && random.chance(40) && low < elements.count
        let range = low..<(isRemoval || isSetting ? low + 1 : low)
        elements.replaceSubrange(range, with: isRemoval ? [] : [new])
        if let list = try transaction.editedCollection(type: 0, key: key, property: property) {
            return try list.replace(range, with: isRemoval ? [] : [new])
        }
        let change: ShownEdit.Change = isRemoval ? .removeElement(low) : isSetting ? .setElement(low, new) : .insert(new, at: low)
        try transaction.set(type: 0, key: key, property: property, .list(elements), by: ShownEdit([change]))
    }

    private func insert(
        _ marks: inout Set<Value>, of key: Value, in transaction: WriteTransaction, _ random: inout SplitMix64
    ) throws {
        let new = Value.int(Int64(random.below(9)))
        marks.insert(new)
        if let set = try transaction.editedCollection(type: 0, key: key, property: 3) { return try set.insert(member: new) }
        try transaction.set(type: 0, key: key, property: 3, .set(Array(marks)), by: ShownEdit([.setInsert(new)]))
    }

    private func set(
        _ scores: inout [String: Value], of key: Value, in transaction: WriteTransaction, _ random: inout SplitMix64
    ) throws {
        let (name, new) = ("k\(random.below(4))", random.chance(70) ? Value.int(Int64(random.below(9))) : nil)
        scores[name] = new
        if let map = try transaction.editedCollection(type: 0, key: key, property: 4) { return try map.set(new, forKey: name) }
        let change: ShownEdit.Change = new.map { .setKey(name, $0) } ?? .removeKey(name)
        try transaction.set(type: 0, key: key, property: 4, .dictionary(scores), by: ShownEdit([change]))
    }
}

extension Value {
    fileprivate var elements: [Value]? { if case .list(let elements) = self { elements } else { nil } }
}
