import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import Synchronization
import Testing

/// What is told of objects that the server takes off the device.
@Suite struct LeavingTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// What a replica has told, in the order of the keys.
    private final class Told: Sendable {
        private let all = Mutex<[LeftObject]>([])

        init(_ replica: Replica) { _ = replica.observeLeaving { [weak self] objects in self?.add(objects) } }

        private func add(_ objects: [LeftObject]) { all.withLock { $0 += objects } }

        var lines: [String] {
            all.withLock { $0 }.map { left in if case .int(let id) = left.object.key { "\(id) \(left.reason)" } else { "?" } }.sorted()
        }
    }

    private func leaving(_ lsn: UInt64, _ events: [(Int, ReplicaRowChange.Event)]) -> ReplicaBatch {
        var batch = batch(lsn)
        for (id, event) in events { batch.changes.append(ReplicaRowChange(type: 0, event: event, key: .int(Int64(id)))) }
        batch.commits[0].changes = batch.changes.indices
        return batch
    }

    private func end(_ replica: Replica, version: UInt64) async throws {
        try await replica.beginBootstrap(version: version)
        try await replica.endBootstrap(version: version, lsn: LSN(rawValue: 50), types: [0])
    }

    @Test func `an object that the app has changed is told like any other, and one that the app deletes is not`() async throws {
        let replica = try await Replica.make(folder)
        let told = Told(replica)
        try await replica.apply(batch(10, put: (1...5).map { todo($0, "server's") }))
        for id in [1, 2, 3] { try replica.rename(id, "mine") }
        try replica.write { try $0.delete(type: 0, key: .int(5)) }
        try await replica.apply(leaving(20, [(1, .leftQuery), (2, .deleted), (3, .lostPermission), (4, .deleted), (5, .deleted)]))
        #expect(try replica.titles().isEmpty)
        #expect(told.lines == ["1 leftQuery", "2 deleted", "3 lostPermission", "4 deleted"])
    }

    @Test(arguments: [false, true])
    func `what the app made and the server keeps without sending it is told, once`(isAcknowledgedFirst: Bool) async throws {
        let replica = try await Replica.make(folder)
        let told = Told(replica)
        try replica.create(1, "beyond the limit")
        if isAcknowledgedFirst { try await replica.acknowledgeUpload(upTo: 1, lsn: LSN(rawValue: 30)) }
        try await replica.apply(batch(30))
        if !isAcknowledgedFirst {
            #expect(told.lines.isEmpty)
            try await replica.acknowledgeUpload(upTo: 1, lsn: LSN(rawValue: 30))
        }
        try await replica.apply(batch(40))
        #expect(try replica.titles().isEmpty && told.lines == ["1 leftQuery"])
    }

    @Test func `what the server refuses is not told beside the refusal`() async throws {
        let replica = try await Replica.make(folder)
        let told = Told(replica)
        try replica.create(1, "forbidden")
        let object = ObjectKey(type: "Todo", key: .int(1))
        try await replica.applyCompensation(id: 1, writes: [CompensatingWrite(changeset: 1, object: object, code: 231, reason: "no")])
        #expect(try replica.titles().isEmpty && told.lines.isEmpty)
    }

    /// The compensation may come after the commit of the rest, or of a later changeset, and after a bootstrap that has them.
    @Test(arguments: [1, 2], [false, true])
    func `what the server refuses is not told where its own commits come before the refusal`(last: UInt64, isBootstrap: Bool) async throws {
        let replica = try await Replica.make(folder)
        let told = Told(replica)
        try replica.write { transaction in
            for id in 1...2 { try transaction.create(type: 0, key: .int(Int64(id)), values: ["title": .string("mine")]) }
        }
        if last == 2 { try replica.rename(1, "mine again") }
        let title = last == 2 ? "mine again" : "mine"
        if isBootstrap {
            try await replica.beginBootstrap(version: 1)
            var rows = RowBuffer()
            let row = rows.append(todo(1, title))
            try await replica.stage(type: 0, rows: [row], of: rows)
            try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 20), types: [0], taken: last)
        } else {
            var commit = batch(20, put: [todo(1, title)])
            commit.commits[0].changeset = last
            try await replica.apply(commit)
        }
        #expect(try replica.titles() == [1: title, 2: "mine"] && told.lines.isEmpty)
        // What others have made of it since is shown before the acknowledgement.
        try await replica.apply(batch(30, put: [todo(1, "theirs")]))
        #expect(try replica.titles() == [1: "theirs", 2: "mine"])
        let object = ObjectKey(type: "Todo", key: .int(2))
        let refusal = try await replica.applyCompensation(
            id: 1, writes: [CompensatingWrite(changeset: 1, object: object, code: 231, reason: "no")])
        #expect(refusal?.writes.first?.values == ["title": .string("mine")])
        try await replica.acknowledgeUpload(upTo: last, lsn: LSN(rawValue: 20))
        #expect(try replica.titles() == [1: "theirs"] && told.lines.isEmpty)
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: .max).isEmpty)
    }

    /// The device had not heard of the object; others had made and deleted it.
    @Test func `what was written to a deleted object in vain is told as that, once, whenever the rows come`() async throws {
        let replica = try await Replica.make(folder)
        let told = Told(replica)
        for id in 1...3 { try replica.create(id, "mine") }
        let futile = [1, 2].map { FutileWrite(changeset: UInt64($0), object: ObjectKey(type: "Todo", key: .int(Int64($0)))) }
        // The first has been there, as far as the file knows.
        try await replica.apply(batch(20, put: [todo(1, "theirs")]))
        try await replica.acknowledgeUpload(upTo: 3, lsn: LSN(rawValue: 40), futile: futile)
        #expect(try replica.titles() == [3: "mine"] && told.lines == ["1 deleted", "2 deleted"])
        try await replica.apply(leaving(30, [(1, .deleted)]))
        try await replica.apply(batch(40))
        #expect(try replica.titles().isEmpty && told.lines == ["1 deleted", "2 deleted", "3 leftQuery"])
    }

    @Test func `what was written in vain takes nothing of what was written later`() async throws {
        let replica = try await Replica.make(folder)
        let told = Told(replica)
        try replica.create(1, "first")
        try replica.write { try $0.delete(type: 0, key: .int(1)) }
        try replica.create(1, "anew")
        let futile = FutileWrite(changeset: 1, object: ObjectKey(type: "Todo", key: .int(1)))
        try await replica.acknowledgeUpload(upTo: 3, lsn: LSN(rawValue: 40), futile: [futile])
        #expect(try replica.titles() == [1: "anew"] && told.lines.isEmpty)
        var commit = batch(40, put: [todo(1, "anew")])
        commit.commits[0].changeset = 3
        try await replica.apply(commit)
        #expect(try replica.titles() == [1: "anew"] && told.lines.isEmpty)
    }

    @Test func `of what a bootstrap does not have, what does not meet the subscriptions has left the query`() async throws {
        let replica = try await Replica.make(folder)
        let told = Told(replica)
        try await replica.apply(batch(10, put: (1...4).map { todo($0, "server's", priority: $0.isMultiple(of: 2) ? 9 : 1) }))
        for id in [3, 4] { try replica.rename(id, "mine") }
        let version = try replica.addSubscriptionSet([subscription("Todo", "priority < 5")])
        try await end(replica, version: version)
        #expect(try replica.titles().isEmpty)
        #expect(told.lines == ["1 leftView", "2 leftQuery", "3 leftView", "4 leftQuery"])
    }

    @Test func `what a removal of a bootstrap names is told with its reason, also when the app has changed it`() async throws {
        let replica = try await Replica.make(folder)
        let told = Told(replica)
        try await replica.apply(batch(10, put: [todo(1, "server's"), todo(2, "server's")]))
        try replica.rename(2, "mine")
        try await replica.beginBootstrap(version: 1)
        try await replica.stageRemoval(type: 0, keys: [.int(1), .int(2)], reasons: [.deleted, .lostPermission])
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [])
        #expect(told.lines == ["1 deleted", "2 lostPermission"])
    }

    @Test func `nobody can tell of a set that is not kept any more, nor of a query that cannot be asked here`() async throws {
        for queries in [["priority < 5"], ["colour == 'red'"]] {
            let folder = try TemporaryFolder()
            let replica = try await Replica.make(folder)
            let told = Told(replica)
            try await replica.apply(batch(10, put: [todo(1, "server's", priority: 9)]))
            let version = try replica.addSubscriptionSet(queries.map { subscription("Todo", $0) })
            if queries == ["priority < 5"] {
                let newer = try replica.addSubscriptionSet([subscription("Todo", "priority < 4")])
                try await replica.setSubscriptionState(version: newer, .complete)
            }
            try await end(replica, version: version)
            #expect(told.lines == ["1 leftView"], "\(queries)")
        }
    }
}
