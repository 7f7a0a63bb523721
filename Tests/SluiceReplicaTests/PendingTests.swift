import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import SluiceValues
import Testing

@Suite struct PendingTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `a local write is seen at once and waits for upload`() async throws {
        let replica = try await Replica.make(folder)
        try replica.create(1, "mine")
        #expect(try replica.titles() == [1: "mine"])
        let pending = try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20)
        #expect(pending.count == 1)
        #expect(pending.first?.number == 1)
        #expect(pending.first?.changes.first?.kind == .create)
        #expect(pending.first?.changes.first?.values["title"] == .string("mine"))
    }

    @Test func `a cancelled transaction leaves nothing`() async throws {
        let replica = try await Replica.make(folder)
        let transaction = try replica.beginWrite()
        try transaction.create(type: 0, key: .int(1), values: ["title": .string("no")])
        transaction.cancel()
        #expect(try replica.titles().isEmpty)
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).isEmpty)
        try replica.create(2, "yes")
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).map(\.number) == [1])
    }

    @Test func `a transaction over the bound of an upload is refused at commit, and nothing of it is stored`() async throws {
        let bound = UploadBound(bytes: 1_000) { changeset in changeset.changes.reduce(0) { $0 + ($1.values["title"]?.recordBytes ?? 0) } }
        let replica = try await Replica.make(folder, options: ReplicaOptions(uploadBound: bound))
        try replica.create(1, "small")
        let error = #expect(throws: SluiceError.self) { try replica.create(2, String(repeating: "x", count: 2_000)) }
        #expect(error?.code == .writeTooLarge && error?.message.contains("2014 bytes") == true, "\(String(describing: error))")
        #expect(error?.message.contains("1000 bytes") == true && error?.fix?.contains("several transactions") == true)
        try replica.create(3, "after")
        #expect(try replica.titles() == [1: "small", 3: "after"])
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).map(\.number) == [1, 2])
    }

    @Test func `a changeset that is set aside is taken back and told, and its number stays`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "server")]))
        try replica.rename(1, "mine")
        let transaction = try replica.beginWrite()
        try transaction.create(type: 0, key: .int(1), values: ["title": .string("large")])
        try transaction.create(type: 0, key: .int(2), values: ["title": .string("made")])
        try transaction.commit()
        try replica.create(3, "later")
        let error = SluiceError(.writeTooLarge, "It is too large.")
        let refusal = try #require(try await replica.setAside(changeset: 2, error))
        #expect(Set(refusal.writes.map(\.object.key)) == [.int(1), .int(2)])
        #expect(refusal.writes.allSatisfy { $0.changeset == 2 && $0.reason == "It is too large." && $0.cause == "too_large" })
        #expect(refusal.writes.first { $0.object.key == .int(2) }?.values["title"] == .string("made"))
        #expect(try replica.titles() == [1: "mine", 3: "later"])
        let pending = try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20)
        #expect(pending.map(\.number) == [1, 2, 3] && pending.map(\.changes.count) == [1, 0, 1])
        // Kept until the app has been told, and not told again.
        #expect(try await replica.unreportedRefusals().map(\.id) == [refusal.id])
        #expect(try await replica.setAside(changeset: 2, error) == nil)
    }

    @Test func `server data arrive under pending writes and do not hide them`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "server", priority: 1)]))
        try replica.rename(1, "mine")
        try await replica.apply(batch(20, put: [todo(1, "newer server", priority: 5), todo(2, "other")]))
        #expect(try replica.titles() == [1: "mine", 2: "other"])
        let row = try replica.makeReader().store.row(type: 0, key: .int(1))
        #expect(row?[2] == .int(5))
    }

    @Test func `an acknowledged write stays on top until its commit has been applied`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "server")]))
        try replica.rename(1, "mine")
        try await replica.acknowledgeUpload(upTo: 1, lsn: LSN(rawValue: 30))
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).isEmpty)
        try await replica.apply(batch(20, put: [todo(1, "before mine")]))
        #expect(try replica.titles() == [1: "mine"])
        try await replica.apply(batch(30, put: [todo(1, "merged")]))
        #expect(try replica.titles() == [1: "merged"])
    }

    @Test func `an acknowledgement after its commit drops the write at once`() async throws {
        let replica = try await Replica.make(folder)
        try replica.create(1, "mine")
        try await replica.apply(batch(30, put: [todo(1, "merged")]))
        #expect(try replica.titles() == [1: "mine"])
        try await replica.acknowledgeUpload(upTo: 1, lsn: LSN(rawValue: 30))
        #expect(try replica.titles() == [1: "merged"])
    }

    @Test func `a pending edit of an object that the server took away shows nothing`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "server")]))
        try replica.rename(1, "mine")
        try await replica.apply(batch(20, leave: [1]))
        #expect(try replica.titles().isEmpty)
    }

    @Test func `CR-30 a write is later than what the device has seen, however far behind its clock is`() async throws {
        let replica = try await Replica.make(folder)
        var seen = batch(10, put: [todo(1, "server")])
        seen.commits[0].time = 5_000_000_000
        try await replica.apply(seen)
        try replica.rename(1, "mine")
        try await replica.observe(9_000_000)
        try replica.rename(1, "again")
        let times = try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).map(\.time)
        #expect(times[0] > HybridTime(milliseconds: 5_000_000) && times[1] > HybridTime(milliseconds: 9_000_000))
    }

    @Test func `a change says what the server had where it was made`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "server", priority: 3)]))
        func seen() async throws -> [[String: ValueHash]] {
            try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).flatMap(\.changes).map(\.seen)
        }
        try replica.create(2, "new")
        try replica.rename(2, "renamed")
        #expect(try await seen() == [[:], [:]])
        try replica.write { transaction in
            try transaction.set(type: 0, key: .int(1), property: 1, .string("mine"))
            try transaction.set(type: 0, key: .int(1), property: 1, .string("mine again"))
            try transaction.add(type: 0, key: .int(1), property: 2, amount: 1)
            try transaction.set(type: 0, key: .int(1), property: 4, .list([.string("a")]), by: ShownEdit([.insert(.string("a"), at: 0)]))
        }
        let server = ["title": ValueHash(.string("server")), "priority": ValueHash(.int(3)), "tags": ValueHash(.list([]))]
        #expect(try await seen().dropFirst(2).reduce(into: [:]) { $0.merge($1) { $1 } } == server)
        // Not what the device made of it, nor what came since; but what had come when it was made.
        try replica.rename(1, "third")
        try await replica.apply(batch(20, put: [todo(1, "newer")]))
        try replica.create(1, "over it")
        #expect(try await seen().suffix(2) == [["title": ValueHash(.string("server"))], ["title": ValueHash(.string("newer"))]])
        try replica.write { try $0.delete(type: 0, key: .int(1)) }
        try replica.create(1, "anew")
        #expect(try await seen().suffix(2) == [[:], [:]])
    }

    @Test func `compensation takes back the object's writes and leaves the others`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "server")]))
        try replica.write { transaction in
            try transaction.set(type: 0, key: .int(1), property: 1, .string("forbidden"))
            try transaction.create(type: 0, key: .int(2), values: ["title": .string("allowed")])
        }
        try replica.rename(1, "later")
        let titles = try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).map(\.number)
        var refused = CompensatingWrite(
            changeset: titles[0], object: ObjectKey(type: "Todo", key: .int(1)), code: 231, cause: "fields", reason: "no", fields: ["title"]
        )
        let report = try await replica.applyCompensation(id: 7, writes: [refused])
        // The app can have back what it wanted.
        refused.values = ["title": .string("forbidden")]
        #expect(report?.writes == [refused])
        #expect(try await replica.unreportedRefusals().map(\.writes) == [[refused]])
        // A later write is judged by itself.
        #expect(try replica.titles() == [1: "later", 2: "allowed"])
        refused.changeset = titles[1]
        let second = try await replica.applyCompensation(id: 8, writes: [refused])
        #expect(second?.writes.first?.values == ["title": .string("later")])
        #expect(try replica.titles() == [1: "server", 2: "allowed"])
        try await replica.reported(second?.id ?? 0)
        #expect(try await replica.applyCompensation(id: 7, writes: [refused]) == nil)
        #expect(try await replica.lastCompensation() == 8)
        #expect(try await replica.unreportedRefusals().count == 1)
        try await replica.reported(report?.id ?? 0)
        #expect(try await replica.unreportedRefusals().isEmpty)
    }

    @Test func `what was refused is told as the gateway has it when the file has dropped it`() async throws {
        let replica = try await Replica.make(folder)
        try replica.create(1, "wanted")
        try replica.rename(1, "later")
        var commit = batch(10, put: [todo(1, "later")])
        commit.commits[0].changeset = 2
        try await replica.apply(commit)
        let refused = CompensatingWrite(
            changeset: 1, object: ObjectKey(type: "Todo", key: .int(1)), code: 231, reason: "no", values: ["title": .string("wanted")])
        #expect(try await replica.applyCompensation(id: 1, writes: [refused])?.writes == [refused])
        #expect(try replica.titles() == [1: "later"])
    }

    @Test func `a forbidden creation is erased and a forbidden deletion undone`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "server")]))
        try replica.create(2, "made")
        try replica.write { try $0.delete(type: 0, key: .int(1)) }
        #expect(try replica.titles() == [2: "made"])
        let writes = [(2, 1), (1, 2)].map { key, number in
            CompensatingWrite(changeset: number, object: ObjectKey(type: "Todo", key: .int(key)), code: 231, reason: "no")
        }
        try await replica.applyCompensation(id: 1, writes: writes)
        #expect(try replica.titles() == [1: "server"])
    }

    @Test func `writing a class without subscription is refused`() async throws {
        let replica = try await Replica.make(folder, subscribed: false)
        let error = #expect(throws: SluiceError.self) { try replica.create(1, "mine") }
        #expect(error?.code == .noSubscriptionForWrite)
        #expect(try replica.titles().isEmpty)
    }

    @Test func `changes of one object in one transaction are joined`() async throws {
        let replica = try await Replica.make(folder)
        try replica.write { transaction in
            try transaction.create(type: 0, key: .int(1), values: ["title": .string("a")])
            try transaction.set(type: 0, key: .int(1), property: 1, .string("b"))
            try transaction.create(type: 0, key: .int(2), values: [:])
            try transaction.delete(type: 0, key: .int(2))
        }
        let changes = try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).first?.changes
        #expect(changes?.count == 1)
        #expect(changes?.first?.values == ["title": .string("b")])
    }

    @Test func `uploads are taken in pieces of bounded size`() async throws {
        let replica = try await Replica.make(folder)
        for id in 1...10 { try replica.create(id, String(repeating: "x", count: 100)) }
        let first = try await replica.pendingChangesets(after: 0, maximumBytes: 350)
        #expect(first.count >= 1 && first.count < 4)
        let next = try await replica.pendingChangesets(after: first.last?.number ?? 0, maximumBytes: 1 << 20)
        #expect(first.map(\.number) + next.map(\.number) == Array(1...10))
        #expect(try await replica.pendingChangesets(after: 9, maximumBytes: 1).map(\.number) == [10])
    }

    @Test func `asymmetric objects go to the queue and keep their batch until acknowledged`() async throws {
        let replica = try await Replica.make(folder)
        try replica.write { transaction in
            for id in 1...5 { try transaction.create(type: 1, key: .int(Int64(id)), values: ["celsius": .double(20)]) }
        }
        let first = try await replica.pendingIngest(after: 0, maximumObjects: 3)
        #expect(first?.number == 1)
        #expect(first?.objects.map(\.object.key) == [.int(1), .int(2), .int(3)])
        let again = try await replica.pendingIngest(after: 0, maximumObjects: 5)
        #expect(again == first)
        let second = try await replica.pendingIngest(after: 1)
        #expect(second?.number == 2)
        #expect(second?.objects.count == 2)
        try await replica.acknowledgeIngest(upTo: 2)
        #expect(try await replica.pendingIngest(after: 0) == nil)
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).isEmpty)
    }

    @Test func `a batch that no message can carry keeps its number, and the objects that are too large are told`() async throws {
        let replica = try await Replica.make(folder)
        for id in 1...4 as ClosedRange<Int64> {
            try replica.write { try $0.create(type: 1, key: .int(id), values: ["celsius": .double(20)]) }
        }
        let formed = try #require(try await replica.pendingIngest(after: 0))
        var cut = IngestCut(batch: formed.number)
        (cut.dropped, cut.returned) = ([1], [3])
        cut.refused = [CompensatingWrite(changeset: formed.number, object: formed.objects[1].object, code: 803, reason: "too large")]
        let report = try #require(try await replica.shortenIngest(cut))
        #expect(report.writes == cut.refused)
        #expect(try await replica.unreportedRefusals().map(\.id) == [report.id])
        let shorter = try #require(try await replica.pendingIngest(after: 0))
        #expect(shorter.number == formed.number && shorter.objects.map(\.object.key) == [.int(1), .int(3)])
        let next = try #require(try await replica.pendingIngest(after: formed.number))
        #expect(next.number == formed.number + 1 && next.objects.map(\.object.key) == [.int(4)])
        var all = IngestCut(batch: next.number)
        all.dropped = [0]
        #expect(try await replica.shortenIngest(all) == nil)
        #expect(try await replica.pendingIngest(after: formed.number) == nil)
    }

    @Test func `an asymmetric object over the bound of an upload is refused, however short it is as JSON`() async throws {
        let series = ObjectType(
            name: "Series", kind: .asymmetric,
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "values", type: .double, collection: .list),
            ])
        let bound = UploadBound(bytes: 1_500_000) { changeset in
            changeset.changes.reduce(0) { $0 + ($1.values["values"]?.recordBytes ?? 0) }
        }
        let replica = try await Replica.make(folder, schema: Schema([todoType, series]), options: ReplicaOptions(uploadBound: bound))
        func send(_ key: Int64, _ count: Int) throws {
            let values = Value.list(Array(repeating: .double(0.5), count: count))
            try replica.write { try $0.create(type: 1, key: .int(key), values: ["values": values]) }
        }
        try send(1, 100_000)
        // 480,000 bytes as JSON.
        let error = #expect(throws: SluiceError.self) { try send(2, 120_000) }
        #expect(error?.code == .ingestTooLarge && error?.message.contains("1680014 bytes") == true, "\(String(describing: error))")
        #expect(error?.message.contains("1500000 bytes") == true && error?.fix?.contains("several") == true)
        #expect(try await replica.pendingIngest(after: 0)?.objects.map(\.object.key) == [.int(1)])
    }

    /// The file was backed up when it had three batches, one of them not acknowledged, and the gateway has more of it since.
    @Test func `asymmetric objects of a file that is older than the gateway knows get numbers that are free`() async throws {
        let replica = try await Replica.make(folder)
        for id in 1...4 as ClosedRange<Int64> {
            try replica.write { try $0.create(type: 1, key: .int(id), values: ["celsius": .double(20)]) }
            if id < 4 { #expect(try await replica.pendingIngest(after: UInt64(id) - 1)?.number == UInt64(id)) }
        }
        try await replica.acknowledgeIngest(upTo: 2)
        // What it knows the number of it sends with that.
        let known = try #require(try await replica.pendingIngest(after: 2, taken: 10))
        #expect(known.number == 3 && known.objects.map(\.object.key) == [.int(3)])
        let new = try #require(try await replica.pendingIngest(after: 3, taken: 10))
        #expect(new.number == 11 && new.objects.map(\.object.key) == [.int(4)])
        try replica.write { try $0.create(type: 1, key: .int(5), values: ["celsius": .double(20)]) }
        #expect(try await replica.pendingIngest(after: 11, taken: 10)?.number == 12)
    }

    /// The file was backed up when it had two changesets, and the gateway has more of it since.
    @Test(arguments: [(7, 0), (3, 5)])
    func `what a restored file has written since is numbered behind what the gateway has`(last: UInt64, time: UInt64) async throws {
        let replica = try await Replica.make(folder)
        for id in 1...2 { try replica.create(id, "t\(id)") }
        try await replica.acknowledgeUpload(upTo: 2, lsn: LSN(rawValue: 100))
        for id in 3...4 { try replica.create(id, "t\(id)") }
        _ = try replica.addSubscriptionSet(try await replica.latestSubscriptionSet().subscriptions)
        try replica.create(5, "t5")
        try await replica.renumberPending(after: last, time: HybridTime(rawValue: time))
        let pending = try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20)
        #expect(pending.map(\.number) == [last + 1, last + 2, last + 3])
        #expect(pending.map { $0.changes.first?.object.key } == [.int(3), .int(4), .int(5)])
        #expect(try await replica.latestSubscriptionSet().changesetsBefore == last + 2)
        try replica.create(6, "t6")
        #expect(try await replica.pendingChangesets(after: last + 3, maximumBytes: 1 << 20).map(\.number) == [last + 4])
        // The acknowledged ones are the gateway's own.
        try await replica.apply(batch(100, put: [todo(1, "t1"), todo(2, "t2")]))
        #expect(try replica.titles().count == 6)
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).count == 4)
    }

    @Test func `a file that has what the gateway has keeps its numbers`() async throws {
        let replica = try await Replica.make(folder)
        for id in 1...3 { try replica.create(id, "t\(id)") }
        let written = try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20)
        // The acknowledgement of the second was lost; of the third the gateway has nothing. Zero: it is of before times were kept.
        for time in [written[1].time, .zero] {
            try await replica.renumberPending(after: 2, time: time)
            #expect(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20) == written)
        }
        try await replica.acknowledgeUpload(upTo: 3, lsn: LSN(rawValue: 100))
        try await replica.renumberPending(after: 9, time: HybridTime(rawValue: 4))
        try replica.create(4, "t4")
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).map(\.number) == [10])
    }

    @Test func `a file is written to after a gateway gave it a time and a number that cannot be`() async throws {
        let replica = try await Replica.make(folder)
        try replica.create(1, "t1")
        let last: UInt64 = 1 << 48
        try await replica.renumberPending(after: last, time: HybridTime(rawValue: .max))
        try await replica.observe(.max)
        for id in 2...3 { try replica.create(id, "t\(id)") }
        let pending = try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20)
        #expect(pending.map(\.number) == [last + 1, last + 2, last + 3])
        #expect(pending[1].time < pending[2].time)
    }

    @Test func `CR-30 a gateway's time of a changeset counts up to five minutes ahead`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.renumberPending(after: 7, time: HybridTime(rawValue: .max))
        try replica.create(1, "t1")
        let time = try #require(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).first).time
        #expect(time.milliseconds <= SystemEnvironment().wallMilliseconds() + Limits.clockSkewMilliseconds + 1)
    }

    @Test func `a file that the gateway does not know starts anew and keeps what was not sent`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.setIdentity(ReplicaIdentity(client: ClientID(rawValue: 9), secret: [1, 2]))
        for id in 1...3 { try replica.create(id, "t\(id)") }
        try await replica.acknowledgeUpload(upTo: 1, lsn: LSN(rawValue: 100))
        try await replica.forgetServer()
        #expect(try await replica.identity() == nil)
        let pending = try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20)
        #expect(pending.map(\.number) == [1, 2])
        #expect(pending.map { $0.changes.first?.object.key } == [.int(2), .int(3)])
        #expect(try await replica.appliedPosition() == AppliedPosition(lsn: .zero, version: 0))
        #expect(try await replica.latestSubscriptionSet().state == .pending)
    }
}
