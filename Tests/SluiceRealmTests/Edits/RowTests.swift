import SluiceCore
import SluiceRealm
import SluiceValues
import TestSupport
import Testing

@Suite struct `Rows for Realm clients` {
    /// Objects with rows of random classes. Some values are absent, and some do not fit.
    private struct Rows {
        let schema: Schema
        var rows: [(object: ObjectKey, row: Row)] = []

        init(_ random: inout SplitMix64, misfits: Int) {
            let graph = RandomGraph(&random, rowsOfEach: 4)
            schema = graph.schema
            for (name, row) in graph.rows {
                guard let type = schema[name], let index = type.primaryKey, let key = row[index] else { continue }
                var row = row
                // A row may be shorter than its class.
                for property in row.values.indices where property != index {
                    if random.chance(10) { row[property] = nil }
                    if random.chance(misfits) { row[property] = .random(using: &random) }
                }
                rows.append((ObjectKey(type: name, key: random.chance(misfits) ? .random(using: &random) : key), row))
            }
            rows.shuffle(using: &random)
        }

        /// The rows without containers in sets of mixed values, which no client can have.
        func fitting(_ writer: RealmObjectWriter) -> [(object: ObjectKey, row: Row)] {
            rows.filter { (try? writer.enter($0.object, values($0.object, $0.row))) != nil }
        }

        /// Writes a row from its cells.
        static func append(
            _ object: ObjectKey, _ row: Row, _ writer: RealmObjectWriter, to changeset: inout RealmChangesetWriter
        ) throws(SluiceError) -> OutgoingOperation {
            var buffer = RowBuffer()
            let place = buffer.append(row)
            return .enter([try buffer.withView(place) { view throws(SluiceError) in try changeset.append(object, view, writer) }])
        }

        func values(_ object: ObjectKey, _ row: Row) -> [String: Value] {
            var values: [String: Value] = [:]
            for (index, property) in (schema[object.type]?.properties ?? []).enumerated() { values[property.name] = row[index] }
            return values
        }
    }

    @Test(arguments: seeds(60)) func `that enter have the bytes and the cost of their instructions`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var count = 0
        for _ in 0..<rounds(10, soak: 100) {
            let rows = Rows(&random, misfits: 0)
            let writer = RealmObjectWriter(rows.schema)
            var (plain, fast) = (RealmChangesetWriter(), RealmChangesetWriter())
            var cells = RealmChangesetWriter()
            for (object, row) in rows.fitting(writer) {
                count += 1
                let instructions = try writer.enter(object, rows.values(object, row))
                let entering = try writer.enter(object, row)
                #expect(entering.cost == instructions.cost, "seed \(seed): \(object) \(row)")
                for instruction in instructions { try plain.append(instruction) }
                // Both ways share the names of a changeset.
                if random.chance(20) {
                    for instruction in instructions { try fast.append(instruction) }
                } else {
                    try fast.append(entering)
                }
                #expect(try Rows.append(object, row, writer, to: &cells) == OutgoingOperation(entering), "seed \(seed): \(object) \(row)")
                guard fast.bytes == plain.bytes, cells.bytes == plain.bytes, cells.count == plain.bytes.count else {
                    Issue.record("seed \(seed): \(rows.schema.types) \(object) \(row)")
                    return
                }
            }
        }
        #expect(count > 20, "seed \(seed)")
    }

    @Test(arguments: seeds(60)) func `that enter and do not fit are refused as their instructions are`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<rounds(10, soak: 100) {
            let rows = Rows(&random, misfits: 10)
            let writer = RealmObjectWriter(rows.schema)
            for (object, row) in rows.rows {
                let plain = Result { try RealmChangesetWriter.bytes(of: writer.enter(object, rows.values(object, row))) }
                let fast = Result {
                    var changeset = RealmChangesetWriter()
                    try changeset.append(writer.enter(object, row))
                    return changeset.bytes
                }
                let cells = Result {
                    var changeset = RealmChangesetWriter()
                    _ = try Rows.append(object, row, writer, to: &changeset)
                    return changeset.bytes
                }
                switch (plain, fast) {
                case (.success(let plain), .success(let fast)): #expect(plain == fast, "seed \(seed): \(object) \(row)")
                case (.failure(let plain as SluiceError), .failure(let fast as SluiceError)):
                    #expect(plain.code == .internalError && plain.message == fast.message, "seed \(seed): \(object) \(row)")
                default: Issue.record("seed \(seed): \(object) \(row): \(plain), \(fast)")
                }
                // The first of several faults may be another one.
                switch (plain, cells) {
                case (.success(let plain), .success(let cells)): #expect(plain == cells, "seed \(seed): \(object) \(row)")
                case (.failure, .failure(let error as SluiceError)): #expect(error.code == .internalError, "seed \(seed): \(object) \(row)")
                default: Issue.record("seed \(seed): \(object) \(row): \(plain), \(cells)")
                }
            }
        }
    }

    @Test(arguments: seeds(40)) func `that enter leave a model as their instructions do`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<rounds(10, soak: 100) {
            let rows = Rows(&random, misfits: 0)
            let writer = RealmObjectWriter(rows.schema)
            var plain = ClientModel(maximumObjects: random.pick([5, 1_000]))
            var fast = plain
            // Some objects enter again.
            let fitting = rows.fitting(writer)
            for (object, row) in fitting + fitting.prefix(3) {
                let instructions = try writer.enter(object, rows.values(object, row))
                try plain.send(try instructions.map { try OutgoingOperation($0) })
                try fast.send([try OutgoingOperation(writer.enter(object, row))])
                #expect(plain == fast, "seed \(seed): \(object) \(row)")
            }
        }
    }

    @Test(arguments: seeds(60)) func `change a client as their instructions do`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<rounds(10, soak: 100) {
            let rows = Rows(&random, misfits: 0)
            let writer = RealmObjectWriter(rows.schema)
            var (plain, fast) = (RealmChangesetWriter(), RealmChangesetWriter())
            for (object, row) in rows.fitting(writer) {
                let properties = rows.schema[object.type]?.properties ?? []
                var values = rows.values(object, row)
                let names = random.chance(50) ? nil : Set(properties.map(\.name).filter { _ in random.chance(40) })
                if let names {
                    values = values.filter { names.contains($0.key) }
                } else {
                    values.merge(properties.map { ($0.name, $0.emptyValue) }) { value, _ in value }
                }
                let instructions = try writer.replace(object, values, number: seed)
                let changed = try writer.replace(object, row, names, number: seed)
                #expect(changed.cost >= instructions.cost && changed.isEmpty == instructions.isEmpty, "seed \(seed): \(object) \(row)")
                #expect(try OutgoingOperation.operations(changed) == instructions.map { try OutgoingOperation($0) }, "seed \(seed)")
                for instruction in instructions { try plain.append(instruction) }
                try fast.append(changed)
                guard fast.bytes == plain.bytes else {
                    Issue.record("seed \(seed): \(rows.schema.types) \(object) \(row) \(names ?? [])")
                    return
                }
            }
        }
    }

    @Test func `that enter have an operation with the lengths of their lists`() throws {
        let writer = RealmObjectWriter(RandomObject.schema)
        var row = Row(Array(repeating: nil, count: RandomObject.task.properties.count))
        (row[0], row[4], row[5]) = (.int(1), .list([.string("x"), .string("y")]), .list([.int(3)]))
        (row[8], row[10], row[12]) = (.list([]), .list([.null]), .list([.int(1), .int(2), .int(3)]))
        let object = try OutgoingOperation.Object(RandomObject.key)
        let lists = [("tags", 2), ("any", 1), ("friends", 3)].map { OutgoingOperation.List(property: $0.0, count: $0.1) }
        #expect(try OutgoingOperation(writer.enter(RandomObject.key, row)) == .enter([.init(object, lists)]))
    }

    @Test func `of two schemas have their own names in a changeset`() throws {
        let writers = [[RandomObject.person], [RandomObject.task], [RandomObject.person]].map { RealmObjectWriter(Schema($0)) }
        let objects = ["Person", "Task", "Person"].map { ObjectKey(type: $0, key: .int(2)) }
        let row = Row([.int(2), .string("t")])
        var (plain, fast) = (RealmChangesetWriter(), RealmChangesetWriter())
        for (writer, object) in zip(writers, objects) {
            for instruction in try writer.enter(object, ["title": .string("t")]) { try plain.append(instruction) }
            try fast.append(writer.enter(object, row))
        }
        #expect(fast.bytes == plain.bytes)
    }

    @Test func `of a class that the app lacks are refused`() {
        let writer = RealmObjectWriter(RandomObject.schema)
        let error = #expect(throws: SluiceError.self) { try writer.enter(ObjectKey(type: "Other", key: .int(1)), Row([.int(1)])) }
        #expect(error?.code == .internalError)
    }
}
