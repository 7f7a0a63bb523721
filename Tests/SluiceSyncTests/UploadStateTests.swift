import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceWire
import Testing

extension SluiceWireAction {
    var action: SessionAction {
        switch self {
        case .logOutUser: .logOutUser
        case .applicationBug: .applicationBug
        case .clientResetManual: .clientReset
        }
    }
}

@Suite struct UploadStateTests {
    // MARK: Sets

    @Test func `the latest set is sent on connect, and complete with its bootstrap`() {
        var harness = MachineHarness()
        harness.open()
        #expect(harness.queries.count == 1)
        harness.pending([set(3, ["north", "south"])])
        guard case .subscribe(let message)? = harness.sent.first else {
            Issue.record("nothing was subscribed to")
            return
        }
        #expect(message.version == 3 && message.queries.map(\.text) == ["north", "south"])
        harness.receive(.bootstrapBegin(version: 3, rows: 9))
        #expect(harness.reports == [.downloading(version: 3, rows: 0, expected: 9)])
        harness.receive(.bootstrapEnd(version: 3, lsn: LSN(rawValue: 5), types: []))
        #expect(harness.reports == [.downloaded(version: 3)])
    }

    @Test func `a set names the objects of the changesets that wait, each once`() throws {
        var harness = MachineHarness()
        harness.open()
        harness.pending(
            [set(3, ["north"])], [MachineHarness.change(1, key: 4), MachineHarness.change(2, key: 5), MachineHarness.change(3, key: 4)])
        guard case .subscribe(let message)? = harness.sent.first else {
            Issue.record("nothing was subscribed to")
            return
        }
        #expect(message.pending.map(\.type) == ["Item"])
        #expect(try message.pending.flatMap(\.keys).map { try Value($0) } == [.int(4), .int(5)])
    }

    @Test func `the empty set of a new file is not sent`() {
        var harness = MachineHarness()
        harness.open()
        harness.pending([set(0, [])])
        #expect(harness.subscribed.isEmpty)
    }

    @Test func `types without a subscription are emptied, unless the bootstrap brought rows of them or went on from the log`() {
        var harness = MachineHarness()
        harness.open()
        harness.pending([set(1, [])])
        harness.receive(.bootstrapBegin(version: 1, rows: 0))
        harness.receive(.bootstrapEnd(version: 1, lsn: LSN(rawValue: 5), types: []))
        #expect(harness.actions.contains { if case .endBootstrap(1, _, let types, _, _) = $0 { types == [0] } else { false } })
        harness.receive(.bootstrapBegin(version: 1, rows: 0))
        harness.receive(.bootstrapRows(StagedRows(type: 0)))
        harness.receive(.bootstrapEnd(version: 1, lsn: LSN(rawValue: 6), types: []))
        #expect(harness.actions.contains { if case .endBootstrap(1, _, let types, _, _) = $0 { types.isEmpty } else { false } })
        harness.receive(.bootstrapBegin(version: 1, rows: 0))
        harness.receive(.bootstrapEnd(version: 1, lsn: LSN(rawValue: 7), types: nil))
        #expect(
            harness.actions.contains { if case .endBootstrap(1, LSN(rawValue: 7), let types, _, _) = $0 { types.isEmpty } else { false } })
    }

    @Test func `a new set is sent after the writes that were made before it, and later writes after its bootstrap`() {
        var harness = MachineHarness.settled()
        harness.feed(.localChange)
        harness.pending(
            [set(1, ["north"], state: .complete), set(2, ["south"], before: 2)],
            [MachineHarness.change(1), MachineHarness.change(2), MachineHarness.change(3)])
        #expect(harness.uploaded == [1, 2] && harness.subscribed == [2])
        guard case .upload? = harness.sent.first, case .subscribe? = harness.sent.last else {
            Issue.record("the order is \(harness.sent)")
            return
        }
        harness.receive(.uploadAck(number: 2, lsn: LSN(rawValue: 60)))
        #expect(harness.uploaded.isEmpty)
        harness.receive(.bootstrapBegin(version: 2, rows: 0))
        #expect(harness.uploaded.isEmpty)
        harness.receive(.bootstrapEnd(version: 2, lsn: LSN(rawValue: 70), types: [0]))
        #expect(harness.uploaded == [3])
    }

    @Test func `after a reconnect the older set comes first when writes were made in it`() {
        var harness = MachineHarness()
        let sets = [set(1, ["north"], state: .complete), set(2, ["south"], before: 5)]
        harness.open(welcome: MachineHarness.welcome(changeset: 4))
        harness.pending(sets, [MachineHarness.change(5)])
        #expect(harness.subscribed == [1] && harness.uploaded.isEmpty)
        harness.bootstrap(1)
        #expect(harness.uploaded == [5])
        harness.pending(sets)
        #expect(harness.subscribed == [2])
    }

    @Test func `sets in which nothing was written are passed over`() {
        var harness = MachineHarness.settled()
        harness.feed(.localChange)
        harness.pending([set(1, ["north"], state: .complete), set(2, ["south"]), set(3, ["east"]), set(4, ["west"])])
        #expect(harness.subscribed == [4])
        harness.feed(.localChange)
        harness.pending([set(1, ["north"], state: .complete), set(4, ["west"]), set(5, ["south"])])
        #expect(harness.subscribed == [5])
    }

    @Test func `a refused set leaves the older one active, and is not sent again`() {
        var harness = MachineHarness.settled()
        harness.feed(.localChange)
        let sets = [set(1, ["north"], state: .complete), set(2, ["bad"])]
        harness.pending(sets)
        #expect(harness.subscribed == [2])
        let error = SluiceError(.querySyntax, "bad")
        harness.receive(.queryError(version: 2, error))
        #expect(harness.reports == [.setRefused(version: 2, error, isLast: true)])
        #expect(harness.actions.contains { if case .refuseSet(2, _) = $0 { true } else { false } })
        harness.feed(.localChange)
        harness.pending(sets, [MachineHarness.change(1)])
        #expect(harness.subscribed.isEmpty && harness.uploaded == [1])
        #expect(harness.machine.phase == .open)
    }

    @Test func `the error of a refused set names the subscription at fault`() {
        func message(index: Int?, name: String?) -> String? {
            var harness = MachineHarness.settled()
            harness.feed(.localChange)
            var refused = set(2, ["north", "bad"])
            refused.subscriptions[1].name = name
            harness.pending([set(1, ["north"], state: .complete), refused])
            harness.receive(.queryError(version: 2, SluiceError(.queryNotQueryable, "No such field."), index: index))
            guard case .setRefused(version: 2, let error, isLast: true)? = harness.reports.first else { return nil }
            #expect(harness.actions.contains { if case .refuseSet(2, error) = $0 { true } else { false } })
            return error.message
        }
        #expect(message(index: 1, name: "open orders") == "Subscription 'open orders' to Item: No such field.")
        let query = set(2, ["bad"]).subscriptions[0].query
        #expect(message(index: 1, name: nil) == "Subscription without a name, \(query), to Item: No such field.")
        #expect(message(index: nil, name: "open orders") == "No such field.")
        #expect(message(index: 7, name: "open orders") == "No such field.")
    }

    @Test func `a set that is refused at the start of a session gives way to the older one in a new session`() {
        var harness = MachineHarness()
        harness.open()
        let active = set(1, ["north"], state: .complete)
        harness.pending([active, set(2, ["bad"])])
        #expect(harness.subscribed == [2])
        harness.receive(.queryError(version: 2, SluiceError(.querySyntax, "bad")))
        #expect(harness.hasClosed && harness.hasConnected)
        harness.open()
        harness.pending([active, set(2, ["bad"], state: .error(code: 300, message: "bad"))])
        #expect(harness.subscribed == [1])
    }

    @Test func `a refused set leaves one alone that was sent before it and is on its way`() {
        var harness = MachineHarness()
        harness.open()
        let sets = [set(1, ["north"], state: .complete), set(2, ["south"])]
        harness.pending(sets)
        harness.receive(.bootstrapBegin(version: 2, rows: 9))
        harness.feed(.localChange)
        harness.pending(sets + [set(3, ["bad"])], [MachineHarness.change(1)])
        #expect(harness.subscribed == [3])
        let error = SluiceError(.querySyntax, "bad")
        harness.receive(.queryError(version: 3, error))
        #expect(harness.reports == [.setRefused(version: 3, error, isLast: false)])
        #expect(!harness.hasClosed && harness.uploaded.isEmpty && harness.machine.phase == .open)
        harness.receive(.bootstrapRows(StagedRows(type: 0)))
        harness.receive(.bootstrapEnd(version: 2, lsn: LSN(rawValue: 60), types: [0]))
        #expect(!harness.hasClosed && harness.uploaded == [1] && harness.machine.phase == .open)
    }

    @Test func `a refused set is not the last where a later one waits for the writes before it`() {
        var harness = MachineHarness.settled()
        harness.feed(.localChange)
        let sets = [set(1, ["north"], state: .complete), set(2, ["bad"]), set(3, ["south"], before: 1)]
        harness.pending(sets, [MachineHarness.change(1)])
        #expect(harness.subscribed == [2] && harness.uploaded.isEmpty)
        let error = SluiceError(.querySyntax, "bad")
        harness.receive(.queryError(version: 2, error))
        #expect(harness.reports == [.setRefused(version: 2, error, isLast: false)])
        #expect(harness.uploaded == [1])
        harness.pending(sets)
        #expect(harness.subscribed == [3])
    }

    // MARK: Changesets

    @Test func `uploads stop at the window and go on with acknowledgements`() {
        var harness = MachineHarness.settled()
        harness.feed(.localChange)
        let large = String(repeating: "x", count: 900 << 10)
        var sent: [UInt64] = []
        for number: UInt64 in 1...6 {
            harness.pending([set(1, ["north"], state: .complete)], [MachineHarness.change(number, value: large)])
            sent += harness.uploaded
        }
        #expect(sent == [1, 2, 3, 4])
        harness.receive(.uploadAck(number: 2, lsn: LSN(rawValue: 60)))
        #expect(harness.uploaded == [5])
        #expect(harness.actions.contains { if case .acknowledgeUpload(2, LSN(rawValue: 60), []) = $0 { true } else { false } })
    }

    @Test func `what came to nothing is handed on with the acknowledgement`() {
        var harness = MachineHarness.settled()
        let write = FutileWrite(changeset: 2, object: ObjectKey(type: "Item", key: .int(1)))
        harness.receive(.uploadAck(number: 3, lsn: LSN(rawValue: 60), futile: [write]))
        #expect(harness.actions.contains { if case .acknowledgeUpload(3, LSN(rawValue: 60), [write]) = $0 { true } else { false } })
    }

    /// Otherwise they would cover what others have made of them since, until the answer comes.
    @Test func `changesets whose acknowledgement was lost are over with the bootstrap that has them`() {
        var harness = MachineHarness()
        harness.open()
        harness.pending([set(1, ["north"])])
        harness.receive(.bootstrapBegin(version: 1, rows: 0))
        harness.receive(.bootstrapEnd(version: 1, lsn: LSN(rawValue: 70), types: [0], taken: 3))
        #expect(harness.actions.contains { if case .endBootstrap(1, LSN(rawValue: 70), _, _, 3) = $0 { true } else { false } })
    }

    @Test func `a changeset that no message can carry is taken back, and those after it are uploaded`() {
        var harness = MachineHarness()
        harness.open(welcome: MachineHarness.welcome(maximumMessageBytes: 1_000))
        harness.pending([set(1, ["north"])])
        harness.bootstrap(1)
        harness.feed(.localChange)
        let sets = [set(1, ["north"], state: .complete)]
        let large = MachineHarness.change(2, value: String(repeating: "x", count: 2_000))
        harness.pending(sets, [MachineHarness.change(1), large, MachineHarness.change(3)])
        let taken = harness.actions.compactMap { action -> (UInt64, SluiceError)? in
            if case .setAside(let number, let error) = action { (number, error) } else { nil }
        }
        #expect(taken.map(\.0) == [2] && taken.first?.1.code == .writeTooLarge)
        #expect(taken.first?.1.message.contains("1000 bytes") == true, "\(taken)")
        // The gateway has it in its log.
        let told = harness.sent.compactMap { kind -> PBReportError? in if case .reportError(let report) = kind { report } else { nil } }
        #expect(told.map(\.code) == [UInt32(ErrorCode.writeTooLarge.rawValue)])
        let writes = told.flatMap(\.writes)
        #expect(writes.map(\.changeset) == [2] && writes.map(\.type) == ["Item"] && writes.map(\.primaryKey) == [PBValue(Value.int(1))])
        #expect(harness.uploaded == [1])
        // The file has taken its changes back: the number is uploaded without any.
        #expect(harness.queries.last?.changesetsAfter == 1)
        harness.pending(sets, [Changeset(number: 2, time: .zero, base: .zero, changes: []), MachineHarness.change(3)])
        #expect(harness.uploaded == [2, 3] && harness.machine.phase == .open)
        #expect(!harness.actions.contains { if case .setAside = $0 { true } else { false } })
    }

    @Test func `after a lost acknowledgement the position is asked for by number alone`() {
        var harness = MachineHarness()
        harness.open(LocalState(firstUnacknowledged: 3), welcome: MachineHarness.welcome(changeset: 5))
        guard case .upload(let upload)? = harness.sent.first else {
            Issue.record("nothing was sent")
            return
        }
        #expect(upload.changesets.map(\.number) == [5] && upload.changesets[0].changes.isEmpty)
        #expect(harness.queries.first?.changesetsAfter == 5)
    }

    @Test func `a file is told the gateway's last changeset of it before anything is read from it`() throws {
        var harness = MachineHarness()
        var welcome = MachineHarness.welcome(changeset: 5)
        welcome.changesetTime = HybridTime(milliseconds: 9)
        harness.open(LocalState(firstUnacknowledged: 3), welcome: welcome)
        let order = harness.actions.compactMap { action in
            switch action {
            case .renumber(let number, let time): "\(number) at \(time.milliseconds)"
            case .read: "read"
            default: nil
            }
        }
        #expect(order == ["5 at 9", "read"])
    }

    @Test func `a compensation takes back what was read ahead, is told once and acknowledged each time`() {
        var harness = MachineHarness.settled()
        harness.feed(.localChange)
        let sets = [set(1, ["north"], state: .complete), set(2, ["south"], before: 1)]
        harness.pending(sets, [MachineHarness.change(1), MachineHarness.change(2)])
        #expect(harness.uploaded == [1])
        let write = CompensatingWrite(object: ObjectKey(type: "Item", key: .int(1)), code: 231, reason: "no")
        harness.receive(.compensation(id: 4, [write]))
        #expect(harness.actions.contains { if case .compensate(4, [write]) = $0 { true } else { false } })
        // Changeset 2 was read before the file dropped the object's changes: it is read again.
        #expect(harness.queries.first?.changesetsAfter == 1)
        guard case .upload(let upload)? = harness.sent.first else {
            Issue.record("it was not acknowledged")
            return
        }
        #expect(upload.compensation == 4 && upload.changesets.isEmpty)
        harness.receive(.compensation(id: 4, [write]))
        #expect(!harness.actions.contains { if case .compensate = $0 { true } else { false } })
        #expect(harness.sent.count == 1)
    }

    @Test func `changesets read before a compensation and delivered after it are not used`() {
        var harness = MachineHarness.settled()
        harness.feed(.localChange)
        harness.receive(.compensation(id: 1, []))
        harness.pending([set(1, ["north"], state: .complete)], [MachineHarness.change(1)])
        #expect(harness.uploaded.isEmpty && harness.queries.first?.changesetsAfter == 0)
    }

    @Test func `a class that the gateway does not have stops the engine`() {
        var harness = MachineHarness()
        harness.feed(.start(token: "t"))
        harness.feed(.connected(1))
        harness.feed(.loaded(1, LocalState()))
        var welcome = MachineHarness.welcome()
        welcome.schema = Schema([
            ObjectType(name: "Item", properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "value", type: .string)])
        ])
        harness.receive(.welcome(welcome))
        harness.pending([set(0, [])], [MachineHarness.change(1)])
        guard case .ended(let error) = harness.machine.phase else {
            Issue.record("\(harness.machine.phase)")
            return
        }
        #expect(error.code == .unknownProperty)
    }

    // MARK: Asymmetric objects

    @Test func `ingest batches are sent ahead up to the window, and again by their numbers after a reconnect`() {
        func batch(_ number: UInt64) -> IngestBatch {
            IngestBatch(
                number: number, objects: [ObjectChange(object: ObjectKey(type: "Reading", key: .int(Int64(number))), kind: .create)])
        }
        var harness = MachineHarness()
        harness.open(welcome: MachineHarness.welcome(ingest: 2))
        #expect(harness.actions.contains { if case .acknowledgeIngest(2, let writes) = $0 { writes.isEmpty } else { false } })
        var sent: [UInt64] = []
        var asked: [UInt64?] = []
        for number: UInt64 in 3...7 {
            asked += harness.queries.map(\.ingestAfter)
            harness.pending([set(0, [])], ingest: number < 7 ? batch(number) : nil)
            sent += harness.sent.compactMap { if case .ingest(let message) = $0 { message.number } else { nil } }
        }
        #expect(sent == [3, 4, 5, 6] && asked == [2, 3, 4, 5])
        let refused = CompensatingWrite(object: ObjectKey(type: "Reading", key: .int(3)), code: 230, reason: "no")
        harness.receive(.ingestAck(number: 3, [refused]))
        #expect(harness.actions.contains { if case .acknowledgeIngest(3, [refused]) = $0 { true } else { false } })
        #expect(harness.queries.map(\.ingestAfter) == [6] && harness.reports == [.ingested(3)])
    }

    @Test func `ingest batches are numbered behind all that the gateway has, and sent from the first that it may say more of`() {
        var harness = MachineHarness()
        harness.open(welcome: MachineHarness.welcome(ingest: 7, ingestTaken: 10))
        #expect(harness.queries.map(\.ingestAfter) == [7] && harness.queries.map(\.ingestTaken) == [10])
    }

    // MARK: Waits

    @Test func `a download is waited for by a mark, after the latest set has been sent, and again after a reconnect`() {
        func marks(_ harness: MachineHarness) -> [UInt64] {
            harness.sent.compactMap { if case .mark(let mark) = $0 { mark.id } else { nil } }
        }
        var harness = MachineHarness()
        harness.feed(.wait(5, .download, deadline: nil))
        harness.open()
        #expect(marks(harness).isEmpty)
        harness.pending([set(1, ["north"])])
        #expect(harness.subscribed == [1] && marks(harness) == [5])
        harness.feed(.disconnected(harness.connection, nil))
        harness.feed(.tick, after: 1_000)
        harness.open()
        harness.pending([set(1, ["north"])])
        #expect(marks(harness) == [5])
        harness.receive(.markReached(5))
        #expect(harness.finished == [5: nil])
        harness.receive(.markReached(5))
        #expect(harness.finished.isEmpty)
    }

    @Test func `a wait that begins while the sets are read has its mark after the set that was made before it`() {
        var harness = MachineHarness.settled()
        harness.pending([set(1, ["north"], state: .complete)])
        harness.feed(.localChange)
        #expect(harness.queries.count == 1)
        // The set is made now, and what is being read may not have it.
        harness.feed(.wait(5, .download, deadline: nil))
        #expect(!harness.sent.contains { if case .mark = $0 { true } else { false } })
        harness.pending([set(1, ["north"], state: .complete)])
        #expect(!harness.sent.contains { if case .mark = $0 { true } else { false } } && harness.queries.count == 1)
        harness.pending([set(1, ["north"], state: .complete), set(2, ["south"])])
        #expect(harness.subscribed == [2])
        #expect(harness.sent.contains { if case .mark = $0 { true } else { false } })
    }

    @Test func `an upload is waited for until everything is acknowledged`() {
        var harness = MachineHarness.settled()
        harness.pending([set(1, ["north"], state: .complete)])
        harness.feed(.wait(1, .upload, deadline: nil))
        #expect(harness.finished.isEmpty && harness.queries.count == 1)
        harness.pending([set(1, ["north"], state: .complete)], [MachineHarness.change(1)])
        #expect(harness.uploaded == [1] && harness.finished.isEmpty)
        harness.pending([set(1, ["north"], state: .complete)])
        #expect(harness.finished.isEmpty)
        harness.receive(.uploadAck(number: 1, lsn: LSN(rawValue: 9)))
        #expect(harness.finished == [1: nil])
    }

    @Test func `a wait ends with its deadline, and one that was given up is forgotten`() {
        var harness = MachineHarness()
        harness.feed(.wait(1, .download, deadline: harness.now + 500))
        harness.feed(.wait(2, .upload, deadline: harness.now + 300))
        #expect(harness.machine.nextDeadline == harness.now + 300)
        harness.feed(.cancelWait(2))
        harness.feed(.tick, after: 500)
        #expect(harness.finished.keys.sorted() == [1])
        #expect(harness.finished[1]??.code == .timeout)
        #expect(harness.machine.nextDeadline == nil)
    }

    // MARK: Commits

    @Test func `the pieces of a run are applied as one`() {
        var harness = MachineHarness.settled()
        var first = ReplicaBatch()
        first.changes = [ReplicaRowChange(type: 0, event: .deleted, key: .int(1))]
        first.commits = [ReplicaCommit(lsn: LSN(rawValue: 60), changes: 0..<1)]
        // They are told of while they come, and again when the file has them.
        harness.receive(.commits(first, more: true))
        #expect(harness.actions.count == 1 && harness.reports == [.receiving(changes: 1)])
        var second = ReplicaBatch()
        let row = second.rows.append(Row([.string("v"), .int(2), .string("north")]))
        second.changes = [ReplicaRowChange(type: 0, event: .entered, row: row)]
        second.commits = [ReplicaCommit(lsn: LSN(rawValue: 61), changes: 0..<1)]
        second.lsn = LSN(rawValue: 62)
        harness.receive(.commits(second, more: false))
        guard harness.actions.count == 3, case .apply(let batch) = harness.actions[1] else {
            Issue.record("nothing was applied: \(harness.actions)")
            return
        }
        #expect(harness.reports == [.receiving(changes: 2), .received(changes: 2)])
        #expect(batch.lsn == LSN(rawValue: 62) && batch.commits.map(\.changes) == [0..<1, 1..<2])
        #expect(batch.changes[0].key == .int(1))
        #expect(batch.changes[1].row.map { batch.rows.withView($0) { Row($0) } } == Row([.string("v"), .int(2), .string("north")]))
        // What only moves the position is not told of.
        var position = ReplicaBatch()
        position.lsn = LSN(rawValue: 70)
        harness.receive(.commits(position, more: false))
        #expect(harness.reports.isEmpty && harness.actions.count == 1)
    }
}
