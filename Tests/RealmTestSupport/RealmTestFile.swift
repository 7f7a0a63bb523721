package import SluiceCore
package import SluicePorts
package import SluiceRealm

/// A Realm client's file and the session that synchronizes it, as pure code: messages of the server come in, and those of the client go out.
///
/// It fails where a client stops syncing or ends: on progress that goes back, an empty bootstrap, a change of an object that it lacks, and
/// on a wrong index or size. It keeps its state over connections, as a file on a device does.
package struct RealmTestFile: Sendable {
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
        init(_ description: String) { self.description = description }
    }

    private struct Commit: Sendable {
        var entry: RealmUploadEntry
        /// The form after the entries that came since.
        var rebased: [StampedInstruction]
    }

    /// The number of the session on its connection.
    package static let session: UInt64 = 1

    package private(set) var file: RealmFileIdent?
    package private(set) var model: RealmModel
    private var commits: [Commit] = []
    /// The version of the last commit.
    package private(set) var version: UInt64 = 1
    /// The last version that was sent in this connection.
    private var sent: UInt64 = 0
    package private(set) var progress = RealmProgress()
    /// The newest subscription set and the one whose view the file has.
    package private(set) var query = RealmQuerySet(version: 0, queries: [:])
    package private(set) var active = RealmQuerySet(version: 0, queries: [:])
    /// The parts of a bootstrap, by its query version.
    private var parts: (version: UInt64, entries: [RealmDownloadEntry]) = (0, [])
    private var lastMark: UInt64 = 0
    package private(set) var reachedMark: UInt64 = 0
    package private(set) var queryErrors: [RealmQueryError] = []
    package private(set) var compensations: [RealmCompensation] = []
    /// The error that ended the session.
    package private(set) var error: RealmServerError?
    package private(set) var bootstraps = 0
    private var isIdentified = false

    package init(_ schema: Schema) { model = RealmModel(schema) }

    package var objects: [ObjectKey: [String: Value]] { model.objects }
    /// `true` if every commit has taken effect on the server.
    package var isUploaded: Bool { commits.allSatisfy { $0.entry.clientVersion <= progress.upload.clientVersion } }
    package var isQueryComplete: Bool { active.version == query.version }

    // MARK: The app

    /// Commits a transaction.
    /// - Parameter time: Milliseconds since 2015-01-01.
    package mutating func commit(_ instructions: [RealmInstruction], at time: UInt64) throws {
        let isDeclaration = instructions.contains { if case .addTable = $0 { true } else { false } }
        if !isDeclaration { try model.apply(instructions) }
        version += 1
        let entry = RealmUploadEntry(
            clientVersion: version, serverVersion: progress.download.serverVersion, timestamp: time, origin: 0,
            changeset: try RealmChangesetWriter.bytes(of: instructions))
        let stamp = RealmStamp(time, file?.ident ?? 0)
        let rebased = isDeclaration ? [] : instructions.map { StampedInstruction(instruction: $0, stamp: stamp) }
        commits.append(Commit(entry: entry, rebased: rebased))
    }

    package mutating func subscribe(_ queries: [String: String]) {
        query = RealmQuerySet(version: query.version + 1, queries: queries)
    }

    // MARK: The connection

    /// Begins a connection.
    package mutating func connect() -> [RealmClientMessage] {
        (isIdentified, sent, error, parts) = (false, progress.upload.clientVersion, nil, (0, []))
        // A set whose view was not completed is sent again, but not one that was refused.
        sentQuery = max(active.version, queryErrors.last?.queryVersion ?? 0)
        let bind = RealmClientMessage.bind(RealmBind(session: Self.session, needsFileIdent: file == nil))
        return [bind] + (file == nil ? [] : identify())
    }

    private mutating func identify() -> [RealmClientMessage] {
        guard let file else { return [] }
        isIdentified = true
        let ident = RealmIdent(session: Self.session, file: file, download: progress.download, latest: progress.latest, query: active)
        return [.ident(ident), mark()] + later()
    }

    /// Returns a mark, which the server answers once the client has all that was committed before.
    package mutating func mark() -> RealmClientMessage {
        lastMark += 1
        return .mark(session: Self.session, request: lastMark)
    }

    /// `true` if the answer to the last mark has come.
    package var isMarkReached: Bool { reachedMark == lastMark }

    /// Returns the messages for what the app has done since: commits, and a subscription set behind them.
    package mutating func later() -> [RealmClientMessage] {
        guard isIdentified, error == nil else { return [] }
        var messages: [RealmClientMessage] = []
        // The first upload follows the first view, as those of clients do.
        if active.version > 0 || bootstraps > 0 || reachedMark > 0 {
            let fresh = commits.map(\.entry).filter { $0.clientVersion > sent }
            if !fresh.isEmpty { messages.append(upload(fresh)) }
            if query.version > sentQuery {
                sentQuery = query.version
                messages += [.query(session: Self.session, query), mark()]
            }
        }
        return messages
    }

    /// The version of the last set that was sent in this connection, or that need not be sent in it.
    private var sentQuery: UInt64 = 0

    private mutating func upload(_ entries: [RealmUploadEntry]) -> RealmClientMessage {
        sent = max(sent, version)
        let progress = RealmUploadProgress(clientVersion: version, serverVersion: progress.download.serverVersion)
        return .upload(RealmUploadMessage(session: Self.session, progress: progress, entries: entries))
    }

    /// Handles a message of the server.
    package mutating func receive(_ message: RealmServerMessage) throws -> [RealmClientMessage] {
        switch message {
        case .ident(_, let ident):
            guard file == nil, ident.ident > 1, ident.salt > 0 else { throw Fault("a file ident that was not asked for: \(ident)") }
            file = ident
            return identify()
        case .download(let download): return try receive(download)
        case .mark(_, let request):
            guard request > reachedMark, request <= lastMark else { throw Fault("a mark that was not sent: \(request)") }
            reachedMark = request
            return later()
        case .queryError(let error):
            guard error.queryVersion > active.version else { throw Fault("a query error of a complete set ends the process") }
            queryErrors.append(error)
            return []
        case .error(let error):
            guard let compensation = error.compensation else {
                self.error = error
                return []
            }
            compensations.append(compensation)
            return []
        case .unbound, .pong, .plainError, .log, .testCommand: return []
        }
    }

    // MARK: Downloads

    private mutating func receive(_ download: RealmDownload) throws -> [RealmClientMessage] {
        guard error == nil else { throw Fault("a download after an error") }
        try check(download)
        switch download.batch {
        case .steadyState: try integrate(download.entries)
        case .moreToCome, .lastInBatch:
            if parts.version != download.queryVersion { parts = (download.queryVersion, []) }
            parts.entries += download.entries
            if download.batch == .moreToCome { return [] }
            guard !parts.entries.isEmpty else { throw Fault("an empty bootstrap, which a client never finishes") }
            try integrate(parts.entries)
            parts = (0, [])
            bootstraps += 1
            if download.queryVersion > active.version {
                active = RealmQuerySet(version: download.queryVersion, queries: query.queries)
            }
        }
        progress = download.progress
        commits.removeAll { $0.entry.clientVersion <= progress.download.clientVersion }
        guard isIdentified else { return [] }
        // The acknowledgement of the server's version.
        return [upload(commits.map(\.entry).filter { $0.clientVersion > sent })]
    }

    private func check(_ download: RealmDownload) throws {
        let (old, new) = (progress, download.progress)
        guard new.download.serverVersion >= old.download.serverVersion, new.latest.version >= new.download.serverVersion,
            new.upload.clientVersion >= old.upload.clientVersion, new.upload.clientVersion <= version,
            new.download.clientVersion >= old.download.clientVersion
        else { throw Fault("progress that goes back or ahead: \(new) after \(old)") }
        guard download.entries.allSatisfy({ $0.origin != file?.ident && $0.origin > 0 && $0.serverVersion > 0 }) else {
            throw Fault("an entry of the file's own, or of version 0")
        }
        guard zip(download.entries, download.entries.dropFirst()).allSatisfy({ $0.serverVersion <= $1.serverVersion }) else {
            throw Fault("entries out of order")
        }
    }

    private mutating func integrate(_ entries: [RealmDownloadEntry]) throws {
        for entry in entries {
            let stamp = RealmStamp(entry.timestamp, entry.origin)
            commits.removeAll { $0.entry.clientVersion <= entry.clientVersion }
            var incoming = try RealmChangesetReader.instructions(of: entry.changeset).filter { !$0.isDeclaration }
                .map { StampedInstruction(instruction: $0, stamp: stamp) }
            for index in commits.indices {
                incoming = PendingTransform.rebase(incoming, over: &commits[index].rebased)
                    .map { StampedInstruction(instruction: $0, stamp: stamp) }
            }
            try model.apply(incoming.map(\.instruction))
        }
    }
}

extension RealmInstruction {
    fileprivate var isDeclaration: Bool {
        switch self {
        case .addTable, .addColumn: true
        default: false
        }
    }
}
