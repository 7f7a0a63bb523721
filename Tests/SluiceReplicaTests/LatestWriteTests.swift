import ReplicaTestSupport
import SluiceCore
import SluiceMerge
import SluiceReplica
import Synchronization
import Testing

/// Of its own writes and those of others a device shows the later, by the times and numbers of their writers.
@Suite struct LatestWriteTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let other = ClientID(rawValue: 7)

    /// The times of a row whose properties another device wrote, milliseconds by number.
    private func times(_ written: [UInt32: Int64]) -> WriteTimes {
        WriteTimes(
            properties: written.mapValues {
                PropertyClock(stamp: WriteStamp(time: HybridTime(milliseconds: $0), client: Self.other))
            })
    }

    /// A commit at a second that makes this of a row.
    private func commit(
        _ lsn: UInt64, _ row: Row, written: [UInt32: Int64] = [:], event: ReplicaRowChange.Event = .updated
    ) -> ReplicaBatch {
        var batch = batch(lsn, put: [row])
        batch.commits[0].time = Int64(lsn) * 1_000_000
        batch.changes[0].event = event
        add(written.isEmpty ? WriteTimes() : times(written), to: &batch)
        return batch
    }

    private func add(_ times: WriteTimes, to batch: inout ReplicaBatch) {
        guard !times.isEmpty else { return }
        let start = UInt32(batch.rows.arena.count)
        batch.rows.arena += times.encoded
        batch.changes[0].times = start..<UInt32(batch.rows.arena.count)
    }

    /// A file that has seen everything up to second 10, and has an own write of second 20 that the server does not have.
    private func make(_ environment: TestEnvironment = TestEnvironment(), schema: Schema = testSchema) async throws -> Replica {
        let replica = try Replica(path: folder.file, schema: schema, environment: environment)
        let version = try replica.addSubscriptionSet([subscription("Todo", "TRUEPREDICATE")])
        try await replica.setSubscriptionState(version: version, .complete)
        try await replica.setIdentity(ReplicaIdentity(client: ClientID(rawValue: 5), secret: [1]))
        environment.now.store(10_000, ordering: .relaxed)
        try await replica.apply(commit(10, todo(1, "seen")))
        environment.now.store(20_000, ordering: .relaxed)
        try replica.rename(1, "mine")
        return replica
    }

    @Test func `another's later write is shown at once, and an earlier one is not`() async throws {
        let replica = try await make()
        try await replica.apply(commit(30, todo(1, "earlier"), written: [2: 15_000]))
        #expect(try replica.titles() == [1: "mine"])
        try await replica.apply(commit(31, todo(1, "later"), written: [2: 25_000]))
        #expect(try replica.titles() == [1: "later"])
        // What the acknowledgement brings is what is shown already.
        try await replica.acknowledgeUpload(upTo: 1, lsn: LSN(rawValue: 40))
        try await replica.apply(batch(40))
        #expect(try replica.titles() == [1: "later"])
    }

    @Test func `the classes of an app have no property numbers, and an earlier write stays hidden`() async throws {
        let replica = try await make(schema: testSchema.numbered { _, _ in 0 })
        var earlier = commit(30, todo(1, "earlier", priority: 3), written: [20: 15_000, 30: 15_000])
        earlier.numbers = [[10, 20, 30, 40, 50]]
        try await replica.apply(earlier)
        let row = try replica.makeReader().store.row(type: 0, key: .int(1))
        #expect(row?[1] == .string("mine") && row?[2] == .int(3))
    }

    @Test func `a write of another property takes nothing from the device's own`() async throws {
        let replica = try await make()
        try await replica.apply(commit(30, todo(1, "seen", priority: 9), written: [3: 25_000]))
        let row = try replica.makeReader().store.row(type: 0, key: .int(1))
        #expect(row?[1] == .string("mine") && row?[2] == .int(9))
    }

    @Test func `of equal times the higher client number is shown`() async throws {
        let replica = try await make()
        let time = try #require(try await replica.pendingChangesets(after: 0, maximumBytes: 1).first?.time)
        for (number, title) in [(4, "mine"), (6, "theirs")] as [(UInt64, String)] {
            var batch = commit(30 + number, todo(1, "theirs"))
            let stamp = WriteStamp(time: time, client: ClientID(rawValue: number))
            add(WriteTimes(properties: [2: PropertyClock(stamp: stamp)]), to: &batch)
            try await replica.apply(batch)
            #expect(try replica.titles() == [1: title])
        }
    }

    @Test func `SQL is later than a write that had not seen it, and earlier than one that had`() async throws {
        let replica = try await make()
        try await replica.apply(commit(30, todo(1, "sql")))
        #expect(try replica.titles() == [1: "sql"])
        try replica.rename(1, "over it")
        #expect(try replica.titles() == [1: "over it"])
        // The commit is about another column.
        try await replica.apply(commit(60, todo(1, "sql", priority: 4)))
        #expect(try replica.titles() == [1: "over it"])
        // A commit whose time is not known counts as older.
        try await replica.apply(batch(70, put: [todo(1, "some time")]))
        #expect(try replica.titles() == [1: "over it"])
    }

    @Test func `what is written after another's write came is later, whatever its clock said`() async throws {
        let environment = TestEnvironment()
        let replica = try await make(environment)
        // The other's clock is five minutes ahead.
        var ahead = commit(30, todo(1, "ahead"), written: [2: 330_000])
        ahead.commits[0].writeTime = HybridTime(milliseconds: 330_000)
        try await replica.apply(ahead)
        #expect(try replica.titles() == [1: "ahead"])
        try replica.rename(1, "after it")
        #expect(try replica.titles() == [1: "after it"])
        let last = try #require(try await replica.pendingChangesets(after: 1, maximumBytes: 1).first)
        #expect(last.time > HybridTime(milliseconds: 330_000))
    }

    @Test func `additions of both count, and a later set of another's drops the device's own`() async throws {
        let replica = try await make()
        try replica.write { try $0.add(type: 0, key: .int(1), property: 2, amount: 5) }
        func priority() throws -> Value? { try replica.makeReader().store.row(type: 0, key: .int(1))?[2] }
        var added = commit(30, todo(1, "seen", priority: 2))
        let (zero, stamp) = (WriteStamp.zero, WriteStamp(time: HybridTime(milliseconds: 25_000), client: Self.other))
        add(
            WriteTimes(properties: [3: PropertyClock(stamp: zero, additions: [PropertyClock.Addition(stamp: stamp, amount: 2)])]),
            to: &added)
        try await replica.apply(added)
        #expect(try priority() == .int(7))
        try await replica.apply(commit(31, todo(1, "seen", priority: 100), written: [3: 26_000]))
        #expect(try priority() == .int(100))
    }

    @Test(arguments: [(15_000, "mine", "a"), (25_000, "x", "x")] as [(Int64, String, String)])
    func `of two sets of an element of a list the later is shown, and named by what the server has`(
        written: Int64, shown: String, named: String
    ) async throws {
        func row(_ first: String) -> Row {
            Row([.int(1), .string("seen"), .int(0), .null, .list([.string(first), .string("b")])])
        }
        let replica = try await make()
        try await replica.apply(commit(12, row("a")))
        func set(_ text: String) throws {
            try replica.write {
                try $0.set(
                    type: 0, key: .int(1), property: 4, .list([.string(text), .string("b")]),
                    by: ShownEdit([.setElement(0, .string(text))]))
            }
        }
        try set("mine")
        let list = Value.list([.string("a"), .string("b")])
        var state = ObjectState(
            values: ["tags": list], clocks: ObjectClocks(properties: [5: PropertyClock(stamp: .zero, valueHash: ValueHash(list))]))
        let before = state.clocks
        let stamp = WriteStamp(time: HybridTime(milliseconds: written), client: Self.other)
        let edit = Edit("tags", [.element(.listed(0, ValueHash(.string("a"))))], .set(.string("x")))
        try Merge.apply(
            ObjectChange(object: ObjectKey(type: "Todo", key: .int(1)), kind: .set, edits: [edit]),
            by: WriteContext(stamp: stamp, base: LSN(rawValue: 12), now: LSN(rawValue: 29)), to: &state, type: todoType)
        var others = commit(30, row("x"))
        add(WriteTimes(state.clocks, since: before), to: &others)
        try await replica.apply(others)
        func tags() throws -> Value? { try replica.makeReader().store.row(type: 0, key: .int(1))?[4] }
        #expect(try tags() == .list([.string(shown), .string("b")]))
        try set("after it")
        #expect(try tags() == .list([.string("after it"), .string("b")]))
        let last = try #require(try await replica.pendingChangesets(after: 2, maximumBytes: 1).first)
        #expect(last.changes.first?.edits.first?.path == [.element(.listed(0, ValueHash(.string(named))))])
    }

    @Test func `what others wrote is kept with its times when the file is closed`() async throws {
        do {
            let replica = try await make()
            try await replica.apply(commit(30, todo(1, "later"), written: [2: 25_000]))
        }
        let replica = try Replica(path: folder.file, schema: testSchema, environment: TestEnvironment())
        #expect(try replica.titles() == [1: "later"])
        try await replica.apply(commit(31, todo(1, "later", priority: 3), written: [3: 26_000]))
        #expect(try replica.titles() == [1: "later"])
    }

    @Test func `what others wrote is kept with its times when an update of the app adds a property before others`() async throws {
        do {
            let replica = try await make()
            try await replica.apply(commit(30, todo(1, "later"), written: [2: 25_000]))
        }
        let wider = ObjectType(
            name: "Todo",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "done", type: .bool, isOptional: true),
                Property(id: 3, name: "title", type: .string), Property(id: 4, name: "priority", type: .int),
                Property(id: 5, name: "note", type: .string, isOptional: true),
                Property(id: 6, name: "tags", type: .string, collection: .list),
            ])
        let replica = try Replica(path: folder.file, schema: Schema([wider, readingType]), environment: TestEnvironment())
        let row = Row([.int(1), .null, .string("later"), .int(3), .null, .list([])])
        try await replica.apply(commit(31, row, written: [4: 26_000]))
        let shown = try replica.makeReader().store.row(type: 0, key: .int(1))
        #expect(shown?[2] == .string("later") && shown?[3] == .int(3))
    }

    @Test func `a deletion by another device that the maker of an object did not know of is shown at once`() async throws {
        let replica = try await make()
        try replica.write { try $0.create(type: 0, key: .int(1), values: ["title": .string("made over it")]) }
        var gone = batch(30, leave: [1])
        gone.changes[0].event = .deleted
        let stamp = WriteStamp(time: HybridTime(milliseconds: 12_000), client: Self.other)
        add(WriteTimes(deletion: Deletion(stamp: stamp, lsn: LSN(rawValue: 29)), isDeleted: true), to: &gone)
        try await replica.apply(gone)
        #expect(try replica.titles().isEmpty)
    }

    @Test(arguments: [(29, "anew"), (9, "mine")] as [(UInt64, String)])
    func `a write to an object that others deleted and made anew is void, if it did not know of the deletion`(
        deleted: UInt64, shown: String
    ) async throws {
        let replica = try await make()
        var anew = commit(30, todo(1, "anew"))
        let stamp = WriteStamp(time: HybridTime(milliseconds: 12_000), client: Self.other)
        let clock = PropertyClock(stamp: WriteStamp(time: HybridTime(milliseconds: 13_000), client: Self.other))
        let deletion = Deletion(stamp: stamp, lsn: LSN(rawValue: deleted))
        add(WriteTimes(properties: [2: clock, 3: clock], deletion: deletion), to: &anew)
        try await replica.apply(anew)
        #expect(try replica.titles() == [1: shown])
        // A later commit of SQL leaves it at that.
        try await replica.apply(commit(31, todo(1, "anew", priority: 4)))
        #expect(try replica.titles() == [1: shown])
    }

    @Test func `rows of a bootstrap with their times are merged, and rows without count as older`() async throws {
        let replica = try await make()
        try replica.create(2, "mine too")
        try await replica.beginBootstrap(version: 1)
        var buffer = RowBuffer()
        let rows = [buffer.append(todo(1, "theirs")), buffer.append(todo(2, "theirs too"))]
        try await replica.stage(type: 0, rows: rows, of: buffer)
        // By the gateway's numbers of the properties.
        let stamp = WriteStamp(time: HybridTime(milliseconds: 90_000), client: Self.other)
        let sent = WriteTimes(properties: [102: PropertyClock(stamp: stamp)])
        try await replica.stageTimes(
            type: 0, [StagedTimes(key: .int(1), times: sent.encoded, commitTime: 90_000)], numbers: [101, 102, 103, 104, 105])
        #expect(try replica.titles() == [1: "mine", 2: "mine too"])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 90), types: [0])
        #expect(try replica.titles() == [1: "theirs", 2: "mine too"])
        // None are left for another bootstrap.
        try await replica.beginBootstrap(version: 1)
        try await replica.stage(type: 0, rows: rows, of: buffer)
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 91), types: [0])
        #expect(try replica.titles() == [1: "theirs", 2: "mine too"])
    }

    @Test func `what is written over a row of a bootstrap is later, however far ahead the clock of its writer is`() async throws {
        let replica = try await make()
        try await replica.beginBootstrap(version: 1)
        var buffer = RowBuffer()
        let row = buffer.append(todo(1, "ahead"))
        try await replica.stage(type: 0, rows: [row], of: buffer)
        let times = times([2: 200_000, 3: 100_000])
        try await replica.stageTimes(type: 0, [StagedTimes(key: .int(1), times: times.encoded, commitTime: 20_000)])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 90), types: [0])
        #expect(try replica.titles() == [1: "ahead"])
        try replica.rename(1, "after it")
        #expect(try replica.titles() == [1: "after it"])
        let last = try #require(try await replica.pendingChangesets(after: 1, maximumBytes: 1).first)
        #expect(last.time > HybridTime(milliseconds: 200_000))
    }

    @Test func `times that follow others of a row in a bootstrap add to them`() async throws {
        let replica = try await make()
        try replica.write { try $0.set(type: 0, key: .int(1), property: 2, .int(1)) }
        try await replica.beginBootstrap(version: 1)
        var buffer = RowBuffer()
        let row = buffer.append(todo(1, "theirs", priority: 8))
        try await replica.stage(type: 0, rows: [row], of: buffer)
        for (number, property) in ([2, 3] as [UInt32]).enumerated() {
            let times = times([property: 90_000])
            try await replica.stageTimes(
                type: 0, [StagedTimes(key: .int(1), times: times.encoded, commitTime: 90_000 + Int64(number))])
        }
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 90), types: [0])
        let shown = try replica.makeReader().store.row(type: 0, key: .int(1))
        #expect(shown?[1] == .string("theirs") && shown?[2] == .int(8))
    }

    @Test func `what a client reset recovers is shown as the latest`() async throws {
        let environment = TestEnvironment()
        let replica = try await make(environment)
        try await replica.apply(commit(30, todo(1, "later"), written: [2: 25_000]))
        #expect(try replica.titles() == [1: "later"])
        environment.now.store(99_000, ordering: .relaxed)
        try await replica.forgetServer(reset: .recover)
        try await replica.beginBootstrap(version: 1)
        var buffer = RowBuffer()
        let row = buffer.append(todo(1, "later"))
        try await replica.stage(type: 0, rows: [row], of: buffer)
        try await replica.stageTimes(type: 0, [StagedTimes(key: .int(1), times: times([2: 25_000]).encoded, commitTime: 30_000)])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 5), types: [0])
        #expect(try replica.titles() == [1: "mine"])
    }
}
