import SluiceCore
import SluicePorts
import SluiceRealm
import Testing

@Suite struct `The check of progress` {
    private static let file = RealmFileIdent(ident: 7, salt: 1)

    private static func check() -> ProgressCheck {
        let ident = RealmIdent(
            session: 1, file: file, download: RealmDownloadCursor(serverVersion: 10, clientVersion: 4),
            latest: RealmServerVersion(version: 12, salt: 77), query: RealmQuerySet(version: 1, queries: [:]))
        return ProgressCheck(ident, upload: RealmUploadProgress(clientVersion: 6, serverVersion: 9))
    }

    private static func download(
        _ change: (inout RealmDownload) -> Void = { _ in }
    ) -> RealmDownload {
        var download = RealmDownload(
            session: 1,
            progress: RealmProgress(
                download: RealmDownloadCursor(serverVersion: 13, clientVersion: 6), latest: RealmServerVersion(version: 13, salt: 77),
                upload: RealmUploadProgress(clientVersion: 6, serverVersion: 9)),
            queryVersion: 1, batch: .steadyState, entries: [entry(11, 4), entry(13, 6)])
        change(&download)
        return download
    }

    private static func entry(_ server: UInt64, _ client: UInt64, origin: UInt64 = 1) -> RealmDownloadEntry {
        RealmDownloadEntry(serverVersion: server, clientVersion: client, timestamp: 0, origin: origin, changeset: [])
    }

    private static func isRefused(_ change: (inout RealmDownload) -> Void) -> Bool {
        var check = check()
        do { try check.check(download(change)) } catch {
            #expect(error.code == .internalError)
            return true
        }
        return false
    }

    @Test func `accepts progress that goes on`() throws {
        var check = Self.check()
        try check.check(Self.download())
        try check.check(Self.download { $0.entries = [] })
        check.uploaded(8)
        try check.check(
            Self.download {
                $0.entries = [Self.entry(13, 8)]
                ($0.progress.upload.clientVersion, $0.progress.download.clientVersion) = (8, 8)
            })
    }

    @Test func `refuses each number that the client would refuse`() {
        let changes: [(String, (inout RealmDownload) -> Void)] = [
            ("latest goes back", { $0.progress.latest.version = 11 }),
            (
                "server version goes back",
                {
                    $0.progress.download.serverVersion = 9; $0.entries = []
                }
            ),
            ("server version beyond the latest", { $0.progress.download.serverVersion = 14 }),
            (
                "client version goes back",
                {
                    $0.progress.download.clientVersion = 3; $0.entries = []
                }
            ),
            ("upload that was never sent", { $0.progress.upload.clientVersion = 7 }),
            ("client version beyond the upload", { $0.progress.upload.clientVersion = 5 }),
            ("confirmed version beyond the download", { $0.progress.upload.serverVersion = 14 }),
            ("entry of version 0", { $0.entries = [Self.entry(0, 4)] }),
            ("entry before the client's cursor", { $0.entries = [Self.entry(9, 4)] }),
            ("entries that go back", { $0.entries = [Self.entry(13, 4), Self.entry(12, 4)] }),
            ("entry beyond the header", { $0.entries = [Self.entry(14, 4)] }),
            ("client version of an entry that goes back", { $0.entries = [Self.entry(11, 6), Self.entry(12, 5)] }),
            ("client version of an entry before the last message", { $0.entries = [Self.entry(11, 3)] }),
            ("client version of an entry beyond the header", { $0.entries = [Self.entry(11, 7)] }),
            ("own changeset", { $0.entries = [Self.entry(11, 4, origin: 7)] }),
            ("no origin", { $0.entries = [Self.entry(11, 4, origin: 0)] }),
            ("another query version", { $0.queryVersion = 2 }), ("no estimate", { $0.estimate = .nan }),
            ("an estimate above 1", { $0.estimate = 1.5 }),
            ("bootstrap of an old query version", { ($0.batch, $0.queryVersion) = (.lastInBatch, 0) }),
            ("empty bootstrap", { ($0.batch, $0.entries) = (.lastInBatch, []) }),
        ]
        for (name, change) in changes { #expect(Self.isRefused(change), "\(name)") }
    }

    @Test func `refuses an acknowledgement that goes back`() throws {
        var check = Self.check()
        try check.check(Self.download())
        #expect(throws: SluiceError.self) {
            try check.check(Self.download { $0.progress.upload = RealmUploadProgress(clientVersion: 6, serverVersion: 8) })
        }
    }

    @Test func `counts the entries of all parts of a bootstrap`() throws {
        var check = Self.check()
        try check.check(Self.download { ($0.batch, $0.queryVersion) = (.moreToCome, 2) })
        try check.check(Self.download { ($0.batch, $0.queryVersion, $0.entries) = (.lastInBatch, 2, []) })
        try check.check(Self.download { ($0.queryVersion, $0.entries) = (2, []) })
    }

    @Test func `compares the entries of each part with the cursor before the bootstrap`() throws {
        var check = Self.check()
        try check.check(Self.download { $0.batch = .moreToCome })
        try check.check(Self.download { $0.batch = .moreToCome })
        #expect(throws: SluiceError.self) {
            try check.check(Self.download { ($0.batch, $0.entries) = (.lastInBatch, [Self.entry(9, 4)]) })
        }
        try check.check(Self.download { $0.batch = .lastInBatch })
        #expect(throws: SluiceError.self) { try check.check(Self.download { $0.entries = [Self.entry(12, 6)] }) }
    }

    @Test func `counts only the parts of the newest query version`() throws {
        var check = Self.check()
        try check.check(Self.download { ($0.batch, $0.queryVersion) = (.moreToCome, 2) })
        #expect(throws: SluiceError.self) {
            try check.check(Self.download { ($0.batch, $0.queryVersion, $0.entries) = (.lastInBatch, 3, []) })
        }
    }

    @Test func `returns to an older set if the newer one was not complete`() throws {
        var check = Self.check()
        try check.check(Self.download { ($0.batch, $0.queryVersion) = (.moreToCome, 2) })
        try check.check(Self.download { ($0.batch, $0.queryVersion, $0.entries) = (.lastInBatch, 1, [Self.entry(13, 6)]) })
        try check.check(Self.download { $0.entries = [] })
    }

    @Test func `lets no change interrupt a bootstrap`() throws {
        var check = Self.check()
        try check.check(Self.download { $0.batch = .moreToCome })
        #expect(throws: SluiceError.self) { try check.check(Self.download { $0.entries = [] }) }
    }
}
