import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import Synchronization
import Testing

@Suite struct BootstrapTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func stage(_ replica: Replica, _ rows: [Row], checkpoint: [UInt8] = []) async throws {
        var buffer = RowBuffer()
        let refs = rows.map { buffer.append($0) }
        try await replica.stage(type: 0, rows: refs, of: buffer, checkpoint: checkpoint)
    }

    @Test func `nothing of a bootstrap shows before its end, everything after`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "old"), todo(2, "stays")]))
        try await replica.beginBootstrap(version: 1)
        try await stage(replica, [todo(2, "stays"), todo(3, "new")])
        #expect(try replica.titles() == [1: "old", 2: "stays"])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0])
        #expect(try replica.titles() == [2: "stays", 3: "new"])
        #expect(try await replica.appliedPosition() == AppliedPosition(lsn: LSN(rawValue: 50), version: 1))
    }

    @Test func `a bootstrap that does not replace a class adds to it`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "old")]))
        try await replica.beginBootstrap(version: 1)
        try await stage(replica, [todo(3, "new")])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [])
        #expect(try replica.titles() == [1: "old", 3: "new"])
    }

    @Test func `a bootstrap may keep objects as they are, unless it says something else of them later`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "one"), todo(2, "two"), todo(3, "three"), todo(4, "four"), todo(5, "five")]))
        try replica.rename(4, "mine")
        try replica.rename(5, "mine too")
        try await replica.beginBootstrap(version: 1)
        try await replica.stageKept(type: 0, keys: [.int(1), .int(2), .int(3), .int(4)])
        try await stage(replica, [todo(2, "changed")])
        try await replica.stageRemoval(type: 0, keys: [.int(3)])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0], held: [7, 8])
        #expect(try replica.titles() == [1: "one", 2: "changed", 4: "mine"])
        #expect(try await replica.held() == [7, 8])
        // Nothing is kept for the next one.
        try await replica.beginBootstrap(version: 2)
        try await replica.endBootstrap(version: 2, lsn: LSN(rawValue: 60), types: [0])
        #expect(try replica.titles() == [:])
        #expect(try await replica.held() == [])
    }

    @Test func `a bootstrap goes on from what an interrupted one put aside, and only from that`() async throws {
        do {
            let replica = try await Replica.make(folder)
            try await replica.apply(batch(10, put: [todo(9, "the file's"), todo(8, "the file's")]))
            try await replica.beginBootstrap(version: 1)
            try await stage(replica, [todo(1, "one"), todo(2, "two"), todo(3, "three"), todo(4, "four")], checkpoint: [4])
            #expect(try await replica.checkpoint() == [4])
        }
        let replica = try Replica(path: folder.file, schema: testSchema)
        #expect(try await replica.checkpoint() == [4])
        // It goes on, and is interrupted again before it has come farther.
        try await replica.beginBootstrap(version: 1, keeping: [0], checkpoint: [4])
        try await replica.stageKept(type: 0, keys: [.int(1), .int(9)])
        try await stage(replica, [todo(2, "newer")])
        #expect(try await replica.checkpoint() == [4])
        try await replica.beginBootstrap(version: 1, keeping: [0], checkpoint: [4])
        try await replica.stageKept(type: 0, keys: [.int(1), .int(2), .int(4), .int(9)])
        try await stage(replica, [todo(5, "five")], checkpoint: [5])
        try await replica.stageRemoval(type: 0, keys: [.int(4)])
        #expect(try replica.titles() == [8: "the file's", 9: "the file's"])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0])
        #expect(try replica.titles() == [1: "one", 2: "newer", 5: "five", 9: "the file's"])
        #expect(try await replica.checkpoint() == [])
    }

    @Test func `a bootstrap that does not go on forgets what was put aside`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.beginBootstrap(version: 1)
        try await stage(replica, [todo(1, "one")], checkpoint: [1])
        try await replica.beginBootstrap(version: 2)
        #expect(try await replica.checkpoint() == [])
        try await replica.stageKept(type: 0, keys: [.int(1)])
        try await replica.endBootstrap(version: 2, lsn: LSN(rawValue: 50), types: [0])
        #expect(try replica.titles() == [:])
        // Nor does a file that begins anew say that it has something.
        try await replica.beginBootstrap(version: 3)
        try await stage(replica, [todo(1, "one")], checkpoint: [1])
        try await replica.forgetServer()
        #expect(try await replica.checkpoint() == [])
    }

    @Test func `changesets that a bootstrap has are not shown over it, those behind them are`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "one"), todo(2, "two")]))
        try replica.rename(1, "mine")
        try replica.rename(2, "mine")
        try replica.rename(2, "mine again")
        try await replica.beginBootstrap(version: 1)
        // What another has made of the first, and what came of the second.
        try await stage(replica, [todo(1, "theirs"), todo(2, "mine")])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0], taken: 2)
        #expect(try replica.titles() == [1: "theirs", 2: "mine again"])
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: .max).map(\.number) == [3])
    }

    @Test func `what the file has is forgotten with the server`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.beginBootstrap(version: 1)
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0], held: [7])
        try await replica.forgetServer()
        #expect(try await replica.held() == [])
    }

    @Test func `objects that leave during a bootstrap are gone at its end`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "old"), todo(2, "old")]))
        try replica.rename(2, "mine")
        try await replica.beginBootstrap(version: 1)
        try await stage(replica, [todo(3, "came"), todo(4, "came")])
        try await replica.stageRemoval(type: 0, keys: [.int(1), .int(2), .int(3), .int(4)])
        try await stage(replica, [todo(4, "came back")])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [])
        #expect(try replica.titles() == [4: "came back"])
    }

    @Test func `a bootstrap that begins again forgets the first`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.beginBootstrap(version: 1)
        try await stage(replica, [todo(1, "from the first")])
        try await replica.beginBootstrap(version: 1)
        try await stage(replica, [todo(2, "from the second")])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0])
        #expect(try replica.titles() == [2: "from the second"])
    }

    @Test func `pending writes stay on top of a bootstrap`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "server"), todo(2, "server")]))
        try replica.rename(1, "mine")
        try replica.rename(2, "mine too")
        try replica.create(3, "made here")
        try await replica.beginBootstrap(version: 1)
        try await stage(replica, [todo(1, "boot", priority: 9)])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0])
        #expect(try replica.titles() == [1: "mine", 3: "made here"])
        #expect(try replica.makeReader().store.row(type: 0, key: .int(1))?[2] == .int(9))
        try await replica.acknowledgeUpload(upTo: 3, lsn: LSN(rawValue: 50))
        #expect(try replica.titles() == [1: "boot"])
    }

    @Test func `a bootstrap reports only what differs`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "same"), todo(2, "old"), todo(3, "goes")]))
        let seen = Mutex<[ReplicaChange]>([])
        let observer = replica.observeChanges { change in seen.withLock { $0.append(change) } }
        try await replica.beginBootstrap(version: 1)
        try await stage(replica, [todo(1, "same"), todo(2, "new"), todo(4, "comes")])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0])
        replica.removeObserver(observer)
        let changes = seen.withLock { $0 }
        #expect(changes.count == 1)
        #expect(changes.first?.types[0]?.keys == [.int(2), .int(3), .int(4)])
    }

    @Test func `applying a commit twice changes nothing the second time`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.apply(batch(10, put: [todo(1, "first")]))
        try await replica.apply(batch(20, put: [todo(1, "second")]))
        try await replica.apply(batch(10, put: [todo(1, "first")]))
        #expect(try replica.titles() == [1: "second"])
        #expect(try await replica.appliedPosition().lsn == LSN(rawValue: 20))
    }

    @Test func `a position is kept with its witness, in the file, until a bootstrap or a reset brings another`() async throws {
        func position() async throws -> AppliedPosition {
            // As the file has it.
            try await Replica.make(folder).appliedPosition()
        }
        var first = batch(10, put: [todo(1, "first")])
        first.witness = [1, 2, 3]
        let replica = try await Replica.make(folder)
        try await replica.apply(first)
        #expect(try await position() == AppliedPosition(lsn: LSN(rawValue: 10), version: 0, witness: [1, 2, 3]))
        // What is older says nothing of it, and what is newer without one has none.
        var older = batch(5)
        older.witness = [9]
        try await replica.apply(older)
        #expect(try await position().witness == [1, 2, 3])
        try await replica.apply(batch(20))
        #expect(try await position().witness == [])
        var last = batch(30)
        last.witness = [4]
        try await replica.apply(last)
        try await replica.beginBootstrap(version: 1)
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0])
        #expect(try await position() == AppliedPosition(lsn: LSN(rawValue: 50), version: 1))
        last.lsn = LSN(rawValue: 60)
        try await replica.apply(last)
        #expect(try await position().witness == [4])
        try await replica.forgetServer()
        #expect(try await position() == AppliedPosition(lsn: .zero, version: 0))
    }

    @Test func `a batch that cannot be applied changes nothing`() async throws {
        let replica = try await Replica.make(folder)
        var broken = batch(10, put: [todo(1, "fine")])
        broken.changes.append(ReplicaRowChange(type: 0, event: .deleted))
        broken.commits[0].changes = broken.changes.indices
        await #expect(throws: SluiceError.self) { try await replica.apply(broken) }
        #expect(try replica.titles().isEmpty)
        #expect(try await replica.appliedPosition().lsn == .zero)
    }

    @Test func `a hundred thousand rows are staged and shown`() async throws {
        let replica = try await Replica.make(folder)
        let clock = ContinuousClock()
        let duration = try await clock.measure {
            try await replica.beginBootstrap(version: 1)
            for part in 0..<50 {
                var buffer = RowBuffer()
                let refs = (0..<2_000).map { buffer.append(todo(part * 2_000 + $0, "row \($0)")) }
                try await replica.stage(type: 0, rows: refs, of: buffer)
            }
            try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0])
        }
        #expect(try replica.makeReader().store.count(type: 0) == 100_000)
        // Far below what a release build does; it notices a change of the order of growth.
        #expect(duration < .seconds(60))
    }
}
