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
}
