import RealmTestSupport
import SluiceCore
import SluicePorts
import SluiceRealm
import Testing

@Suite struct `The file of a test's Realm client` {
    /// The versions of the subscription sets in messages.
    private static func sets(_ messages: [RealmClientMessage]) -> [UInt64] {
        messages.compactMap { if case .query(_, let set) = $0 { set.version } else { nil } }
    }

    @Test func `sends a set in each connection until its view is complete or it is refused`() throws {
        var file = RealmTestFile(IntegrationPlay.schema)
        _ = file.connect()
        _ = try file.receive(.ident(session: 1, RealmFileIdent(ident: 2, salt: 7)))
        _ = try file.receive(.mark(session: 1, request: 1))
        file.subscribe(["Task": "TRUEPREDICATE"])
        #expect(Self.sets(file.later()) == [1])
        #expect(Self.sets(file.later()).isEmpty)
        #expect(Self.sets(file.connect()) == [1])
        _ = try file.receive(.queryError(RealmQueryError(session: 1, queryVersion: 1, message: "Invalid query: no such class")))
        #expect(Self.sets(file.connect()).isEmpty)
        file.subscribe(["Task": "TRUEPREDICATE"])
        #expect(Self.sets(file.later()) == [2])
        let progress = RealmProgress(
            download: RealmDownloadCursor(serverVersion: 3, clientVersion: 0), latest: RealmServerVersion(version: 3, salt: 9))
        let entry = RealmDownloadEntry(serverVersion: 3, clientVersion: 0, timestamp: 1, origin: 1, changeset: [])
        let download = RealmDownload(session: 1, progress: progress, queryVersion: 2, batch: .lastInBatch, entries: [entry])
        _ = try file.receive(.download(download))
        #expect(file.isQueryComplete)
        #expect(Self.sets(file.connect()).isEmpty)
    }

    /// A file that has its ident and the answer to its first mark.
    private static func opened() throws -> RealmTestFile {
        var file = RealmTestFile(IntegrationPlay.schema)
        _ = file.connect()
        _ = try file.receive(.ident(session: 1, RealmFileIdent(ident: 2, salt: 7)))
        _ = try file.receive(.mark(session: 1, request: 1))
        return file
    }

    private static func task(_ key: Int64) -> ObjectKey { ObjectKey(type: "Task", key: .int(key)) }

    /// A bootstrap's part that creates an object.
    private static func part(
        _ queryVersion: UInt64, _ key: Int64, at version: UInt64, _ batch: RealmBatchState = .lastInBatch
    ) throws -> RealmServerMessage {
        let changeset = try RealmChangesetWriter.bytes(of: [.eraseObject(task(key)), .createObject(task(key))])
        let progress = RealmProgress(
            download: RealmDownloadCursor(serverVersion: version, clientVersion: 0), latest: RealmServerVersion(version: version, salt: 9))
        let entry = RealmDownloadEntry(serverVersion: version, clientVersion: 0, timestamp: 1, origin: 1, changeset: changeset)
        return .download(RealmDownload(session: 1, progress: progress, queryVersion: queryVersion, batch: batch, entries: [entry]))
    }

    @Test func `knows the queries of the set whose view it has, while newer sets wait`() throws {
        var file = try Self.opened()
        file.subscribe(["Task": "first"])
        file.subscribe(["Task": "second"])
        #expect(Self.sets(file.later()) == [1, 2])
        _ = try file.receive(try Self.part(1, 1, at: 3))
        #expect(file.active == RealmQuerySet(version: 1, queries: ["Task": "first"]) && !file.isQueryComplete)
        let messages = file.connect()
        #expect(Self.sets(messages) == [2])
        #expect(messages.contains { if case .ident(let ident) = $0 { ident.query == file.active } else { false } })
        _ = try file.receive(try Self.part(2, 2, at: 4))
        #expect(file.active.queries == ["Task": "second"] && file.isQueryComplete)
    }

    @Test func `ends at a bootstrap or a query error of a set that it does not have`() throws {
        var file = try Self.opened()
        file.subscribe(["Task": "first"])
        file.subscribe(["Task": "second"])
        let before = file
        #expect(throws: RealmTestFile.Fault.self) { try file.receive(try Self.part(3, 1, at: 3)) }
        file = before
        _ = try file.receive(try Self.part(2, 1, at: 3))
        // The older set is superseded.
        for version in [1, 2, 3] as [UInt64] {
            let error = RealmQueryError(session: 1, queryVersion: version, message: "Invalid query")
            #expect(throws: RealmTestFile.Fault.self) { try file.receive(.queryError(error)) }
        }
        #expect(throws: RealmTestFile.Fault.self) { try file.receive(try Self.part(1, 1, at: 3)) }
        // The active one comes again after a change of permissions.
        _ = try file.receive(try Self.part(2, 1, at: 3))
        file = before
        _ = try file.receive(.queryError(RealmQueryError(session: 1, queryVersion: 1, message: "Invalid query")))
        #expect(throws: RealmTestFile.Fault.self) { try file.receive(try Self.part(1, 1, at: 3)) }
    }

    @Test func `keeps the parts of a bootstrap over a connection, and not over a restart`() throws {
        var file = try Self.opened()
        file.subscribe(["Task": "first"])
        _ = file.later()
        _ = try file.receive(try Self.part(1, 1, at: 3, .moreToCome))
        #expect(file.objects.isEmpty && file.progress.download.serverVersion == 0)
        _ = file.connect()
        var restarted = file
        restarted.reopen()
        _ = try file.receive(try Self.part(1, 2, at: 4))
        #expect(Set(file.objects.keys) == [Self.task(1), Self.task(2)])
        _ = try restarted.receive(try Self.part(1, 2, at: 4))
        #expect(Set(restarted.objects.keys) == [Self.task(2)])
    }

    @Test func `takes no message at a wrong time, and no entry before its cursor`() throws {
        var file = try Self.opened()
        file.subscribe(["Task": "first"])
        _ = file.later()
        let error = RealmServerError(session: 1, code: .otherSessionError, message: "no", action: .transient, tryAgain: true)
        var ended = file
        _ = try ended.receive(.error(error))
        for message in [.mark(session: 1, request: 2), .error(error), .unbound(session: 1), try Self.part(1, 1, at: 3)]
            as [RealmServerMessage]
        {
            #expect(throws: RealmTestFile.Fault.self, "\(message)") { try ended.receive(message) }
        }
        #expect(throws: RealmTestFile.Fault.self) { try file.receive(.unbound(session: 1)) }
        _ = try file.receive(try Self.part(1, 1, at: 5))
        #expect(throws: RealmTestFile.Fault.self) {
            guard case .download(var download) = try Self.part(1, 1, at: 6, .steadyState) else { return }
            download.entries[0].serverVersion = 4
            _ = try file.receive(.download(download))
        }
        #expect(file.unbind() == .unbind(session: 1))
        _ = try file.receive(.unbound(session: 1))
        #expect(throws: RealmTestFile.Fault.self) { try file.receive(try Self.part(1, 1, at: 6, .steadyState)) }
    }
}
