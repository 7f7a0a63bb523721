import SluiceCore
import SluicePorts

@testable import SluiceRealm

/// A client of the walk: what it stores, what it sends, and the rules by which it refuses messages.
struct WalkClient {
    /// The first message that a real client would refuse.
    var fault: String?

    // Stored
    var file: RealmFileIdent?
    var stored = RealmProgress()
    var query: UInt64 = 0
    /// Query sets without a complete view.
    var pendingQueries: [UInt64] = []
    var lastQuery: UInt64 = 0
    var newest: UInt64 = 0
    /// The changesets that are not acknowledged, with their bases.
    var changesets: [(version: UInt64, base: UInt64)] = []
    /// The server version of the last bootstrap, and the changes since.
    var bootstrapped: UInt64 = 0
    var received: [UInt64] = []
    var noticed: Set<UInt64> = []

    // Of the connection
    var isIdentified = false
    private var progress = RealmProgress()
    private var sentChangeset: UInt64 = 0
    private var lastMark: UInt64 = 0
    private var answeredMark: UInt64 = 0
    private var parts: (version: UInt64, entries: Int)?
    private var lastNotice: UInt64 = 0

    mutating func expect(_ holds: Bool, _ what: String) { if !holds, fault == nil { fault = what } }

    // MARK: Sending

    /// Returns the first messages of a connection.
    mutating func connect() -> [RealmClientMessage] {
        isIdentified = false
        progress = stored
        (sentChangeset, lastMark, answeredMark, parts, lastNotice) = (0, 0, 0, nil, 0)
        let bind = RealmClientMessage.bind(RealmBind(session: 1, needsFileIdent: file == nil))
        return file == nil ? [bind] : [bind] + identify()
    }

    /// Returns the IDENT and the query sets that were sent before.
    private mutating func identify() -> [RealmClientMessage] {
        guard let file else { return [] }
        isIdentified = true
        let ident = RealmIdent(
            session: 1, file: file, download: stored.download, latest: stored.latest, query: RealmQuerySet(version: query, queries: [:]))
        let queries = pendingQueries.map { RealmClientMessage.query(session: 1, RealmQuerySet(version: $0, queries: [:])) }
        return [.ident(ident)] + queries + mark()
    }

    mutating func write() {
        newest += 1
        changesets.append((newest, stored.download.serverVersion))
    }

    mutating func upload() -> [RealmClientMessage] {
        guard isIdentified else { return [] }
        let entries = changesets.filter { $0.version > sentChangeset }.map {
            RealmUploadEntry(clientVersion: $0.version, serverVersion: $0.base, timestamp: 0, origin: 0, changeset: [1])
        }
        sentChangeset = newest
        let progress = RealmUploadProgress(clientVersion: newest, serverVersion: stored.download.serverVersion)
        return [.upload(RealmUploadMessage(session: 1, progress: progress, entries: entries))]
    }

    mutating func subscribe() -> [RealmClientMessage] {
        guard isIdentified, pendingQueries.count < 8 else { return [] }
        lastQuery += 1
        pendingQueries.append(lastQuery)
        return [.query(session: 1, RealmQuerySet(version: lastQuery, queries: [:]))] + mark()
    }

    mutating func mark() -> [RealmClientMessage] {
        guard isIdentified else { return [] }
        lastMark += 1
        return [.mark(session: 1, request: lastMark)]
    }

    // MARK: Receiving

    /// Takes a message and returns the answers.
    mutating func receive(_ message: RealmServerMessage) -> [RealmClientMessage] {
        switch message {
        case .ident(_, let file):
            expect(self.file == nil, "a second ident")
            self.file = file
            return identify()
        case .download(let download): receive(download)
        case .mark(_, let request):
            expect(request > answeredMark && request <= lastMark, "mark \(request) of \(answeredMark)...\(lastMark)")
            answeredMark = request
        case .error(let error):
            expect(error.compensation != nil, "error \(error.code): \(error.message)")
            guard let notice = error.compensation else { break }
            expect(notice.serverVersion > lastNotice, "notice \(notice.serverVersion) after \(lastNotice)")
            lastNotice = notice.serverVersion
            noticed.insert(notice.serverVersion)
        case .queryError(let error):
            expect(pendingQueries.contains(error.queryVersion), "a query error ends the process: \(error.queryVersion)")
            pendingQueries.removeAll { $0 == error.queryVersion }
        default: expect(false, "\(message)")
        }
        return []
    }

    private mutating func receive(_ download: RealmDownload) {
        expect(isIdentified, "a download before the ident")
        check(download)
        progress = download.progress
        guard download.batch == .steadyState else { return receiveBootstrap(download) }
        expect(download.queryVersion == query, "a change of query version \(download.queryVersion), not \(query)")
        expect(parts == nil, "a change within a bootstrap")
        for entry in download.entries {
            expect(entry.serverVersion > received.last ?? bootstrapped, "change \(entry.serverVersion) after \(received.last ?? 0)")
            received.append(entry.serverVersion)
        }
        store()
    }

    private mutating func receiveBootstrap(_ download: RealmDownload) {
        let isKnown = download.queryVersion == query || pendingQueries.contains(download.queryVersion)
        expect(isKnown, "a bootstrap of query version \(download.queryVersion) ends the process")
        let before = parts.map { $0.version == download.queryVersion ? $0.entries : 0 } ?? 0
        parts = (download.queryVersion, before + download.entries.count)
        guard download.batch == .lastInBatch else { return }
        expect(parts?.entries ?? 0 > 0, "an empty bootstrap")
        parts = nil
        query = download.queryVersion
        pendingQueries.removeAll { $0 <= query }
        bootstrapped = download.progress.download.serverVersion
        received = []
        store()
    }

    private mutating func store() {
        stored = progress
        changesets.removeAll { $0.version <= stored.upload.clientVersion }
    }

    /// The checks of a real client.
    private mutating func check(_ next: RealmDownload) {
        let (old, new) = (progress, next.progress)
        expect(new.latest.version >= old.latest.version && new.download.serverVersion <= new.latest.version, "latest version")
        expect(new.download.serverVersion >= old.download.serverVersion, "server version")
        expect(new.download.clientVersion >= old.download.clientVersion, "client version")
        expect(new.upload.clientVersion >= old.upload.clientVersion && new.upload.clientVersion <= newest, "upload version")
        expect(new.download.clientVersion <= new.upload.clientVersion, "client version beyond upload")
        expect(new.download.serverVersion >= new.upload.serverVersion, "confirmed version")
        var (server, client) = (UInt64(1), old.download.clientVersion)
        for entry in next.entries {
            let isInOrder = entry.serverVersion >= server && entry.serverVersion <= new.download.serverVersion
            expect(isInOrder, "entry \(entry.serverVersion)")
            let isBased = entry.clientVersion >= client && entry.clientVersion <= new.download.clientVersion
            expect(isBased, "entry of client version \(entry.clientVersion)")
            guard fault == nil else { return }
            (server, client) = (entry.serverVersion, entry.clientVersion)
        }
    }
}
