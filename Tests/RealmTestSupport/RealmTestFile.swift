package import SluiceCore
package import SluicePorts
package import SluiceRealm

/// A Realm client's file and the session that synchronizes it, as pure code: messages of the server come in, and those of the client go
/// out.
///
/// It fails where a client stops syncing or ends: on a message at the wrong time, progress that goes back, an empty bootstrap or one of an
/// unknown set, a change of an object that it lacks, and on a wrong index or size. It keeps its state over connections, as a file on a
/// device does.
package struct RealmTestFile: Sendable {
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
        package init(_ description: String) { self.description = description }
    }

    private struct Commit: Sendable {
        var entry: RealmUploadEntry
        /// The form after the entries that came since.
        var rebased: [StampedInstruction]
    }

    /// The number of the session on its connection.
    package var session: UInt64
    package private(set) var file: RealmFileIdent?
    package private(set) var model: RealmModel
    private var commits: [Commit] = []
    /// The version of the last commit.
    package private(set) var version: UInt64 = 1
    /// The last version that was sent in this connection.
    private var sent: UInt64 = 0
    package private(set) var progress = RealmProgress()
    private var subscriptions = RealmTestSubscriptions()
    /// The parts of a bootstrap, by its query version. They outlive a connection, and the next parts follow them.
    private var parts: (version: UInt64, entries: [RealmDownloadEntry]) = (0, [])
    private var lastMark: UInt64 = 0
    package private(set) var reachedMark: UInt64 = 0
    package private(set) var queryErrors: [RealmQueryError] = []
    package private(set) var compensations: [RealmCompensation] = []
    /// The error that ended the session.
    package private(set) var error: RealmServerError?
    package private(set) var bootstraps = 0
    /// The parts of a bootstrap without its last one.
    package var waitingParts: Int { parts.entries.count }
    private var isIdentified = false
    private var isUnbinding = false
    /// `true` once the server has answered the UNBIND.
    package private(set) var isUnbound = false
    /// The version of the last set that was sent in this connection, or that need not be sent in it.
    private var sentQuery: UInt64 = 0

    package init(_ schema: Schema, session: UInt64 = 1) {
        model = RealmModel(schema)
        self.session = session
    }

    package var objects: [ObjectKey: [String: Value]] { model.objects }
    /// `true` if every commit has taken effect on the server.
    package var isUploaded: Bool { commits.allSatisfy { $0.entry.clientVersion <= progress.upload.clientVersion } }
    /// Returns the instructions of the commits behind a version that the stream has not confirmed, as the app made them.
    package func pending(after version: UInt64 = 0) throws -> [RealmInstruction] {
        try commits.filter { $0.entry.clientVersion > version }.flatMap { try RealmChangesetReader.instructions(of: $0.entry.changeset) }
    }
    /// The newest subscription set and the one whose view the file has.
    package var query: RealmQuerySet { subscriptions.newest }
    package var active: RealmQuerySet { subscriptions.active }
    package var isQueryComplete: Bool { active.version == query.version }

    // MARK: The app

    /// Commits a transaction.
    /// - Parameter time: Milliseconds since 2015-01-01.
    package mutating func commit(_ instructions: [RealmInstruction], at time: UInt64) throws {
        let isDeclaration = instructions.contains { if case .addTable = $0 { true } else { false } }
        // A client keeps no object of an asymmetric class.
        let kept = instructions.filter { instruction in instruction.object.map { model.schema[$0.type]?.kind != .asymmetric } ?? true }
        if !isDeclaration { try model.apply(kept) }
        version += 1
        let entry = RealmUploadEntry(
            clientVersion: version, serverVersion: progress.download.serverVersion, timestamp: time, origin: 0,
            changeset: try RealmChangesetWriter.bytes(of: instructions))
        let stamp = RealmStamp(time, file?.ident ?? 0)
        let rebased = isDeclaration ? [] : kept.map { StampedInstruction(instruction: $0, stamp: stamp) }
        commits.append(Commit(entry: entry, rebased: rebased))
    }

    package mutating func subscribe(_ queries: [String: String]) { subscriptions.add(queries) }

    /// Opens the file again, as a restarted app does. A client then discards the parts of an unfinished bootstrap.
    package mutating func reopen() { parts = (0, []) }

    // MARK: The connection

    /// Begins a connection.
    package mutating func connect() -> [RealmClientMessage] {
        (isIdentified, isUnbinding, isUnbound, sent, error) = (false, false, false, progress.upload.clientVersion, nil)
        // Sets whose views were not completed are sent again, but not those that were refused.
        sentQuery = active.version
        let bind = RealmClientMessage.bind(RealmBind(session: session, needsFileIdent: file == nil))
        return [bind] + (file == nil ? [] : identify())
    }

    private mutating func identify() -> [RealmClientMessage] {
        guard let file else { return [] }
        isIdentified = true
        let ident = RealmIdent(session: session, file: file, download: progress.download, latest: progress.latest, query: active)
        return [.ident(ident), mark()] + later()
    }

    /// Returns a mark, which the server answers once the client has all that was committed before.
    package mutating func mark() -> RealmClientMessage {
        lastMark += 1
        return .mark(session: session, request: lastMark)
    }

    /// `true` if the answer to the last mark has come.
    package var isMarkReached: Bool { reachedMark == lastMark }

    /// Ends the session. Its connection may serve others.
    package mutating func unbind() -> RealmClientMessage {
        isUnbinding = true
        return .unbind(session: session)
    }

    /// Returns the messages for what the app has done since: commits, and subscription sets behind them.
    package mutating func later() -> [RealmClientMessage] {
        guard isIdentified, error == nil, !isUnbinding else { return [] }
        var messages: [RealmClientMessage] = []
        // The first upload follows the first view, as those of clients do.
        if active.version > 0 || bootstraps > 0 || reachedMark > 0 {
            let fresh = commits.map(\.entry).filter { $0.clientVersion > sent }
            if !fresh.isEmpty { messages.append(upload(fresh)) }
            let sets = subscriptions.pending(after: sentQuery)
            sentQuery = sets.last?.version ?? sentQuery
            messages += sets.map { .query(session: session, $0) }
            if !sets.isEmpty { messages.append(mark()) }
        }
        return messages
    }

    private mutating func upload(_ entries: [RealmUploadEntry]) -> RealmClientMessage {
        sent = max(sent, version)
        let progress = RealmUploadProgress(clientVersion: version, serverVersion: progress.download.serverVersion)
        return .upload(RealmUploadMessage(session: session, progress: progress, entries: entries))
    }

    /// Handles a message of the server.
    package mutating func receive(_ message: RealmServerMessage) throws -> [RealmClientMessage] {
        try checkTime(of: message)
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
            try subscriptions.refuse(error.queryVersion)
            queryErrors.append(error)
        case .error(let error):
            if let compensation = error.compensation { compensations.append(compensation) } else { self.error = error }
        case .unbound: isUnbound = true
        case .pong, .plainError, .log, .testCommand: break
        }
        return []
    }

    /// A client closes its connection at a message of a session that has not identified its file, has ended by an error or is unbound.
    private func checkTime(of message: RealmServerMessage) throws {
        let isLegal =
            switch message {
            case .download, .mark: isIdentified && error == nil
            // Session 0 is the connection.
            case .error(let error): error.code.isOfConnection ? error.session == 0 : self.error == nil
            case .unbound: isUnbinding && error == nil
            case .ident, .queryError: error == nil
            case .pong, .plainError, .log, .testCommand: true
            }
        guard isLegal, !isUnbound || message.session != session else { throw Fault("a message at the wrong time: \(message)") }
    }

    // MARK: Downloads

    private mutating func receive(_ download: RealmDownload) throws -> [RealmClientMessage] {
        try check(download)
        switch download.batch {
        case .steadyState: try integrate(download.entries)
        case .moreToCome, .lastInBatch:
            try subscriptions.begin(download.queryVersion)
            if parts.version != download.queryVersion { parts = (download.queryVersion, []) }
            parts.entries += download.entries
            if download.batch == .moreToCome { return [] }
            guard !parts.entries.isEmpty else { throw Fault("an empty bootstrap, which a client never finishes") }
            try integrate(parts.entries)
            parts = (0, [])
            bootstraps += 1
            subscriptions.complete(download.queryVersion)
        }
        progress = download.progress
        commits.removeAll { $0.entry.clientVersion <= progress.download.clientVersion }
        guard isIdentified, !isUnbinding else { return [] }
        // The acknowledgement of the server's version.
        return [upload(commits.map(\.entry).filter { $0.clientVersion > sent })]
    }

    private func check(_ download: RealmDownload) throws {
        let (old, new) = (progress, download.progress)
        guard new.download.serverVersion >= old.download.serverVersion, new.latest.version >= new.download.serverVersion,
            new.latest.version >= old.latest.version, new.upload.clientVersion >= old.upload.clientVersion,
            new.upload.clientVersion <= version, new.download.clientVersion >= old.download.clientVersion,
            new.download.clientVersion <= new.upload.clientVersion, new.download.serverVersion >= new.upload.serverVersion
        else { throw Fault("progress that goes back or ahead: \(new) after \(old)") }
        guard download.entries.allSatisfy({ $0.origin != file?.ident && $0.origin > 0 && $0.serverVersion > 0 }) else {
            throw Fault("an entry of the file's own, or of version 0")
        }
        // The first entry follows the cursor of the file, and the last one precedes that of the message.
        let servers = [old.download.serverVersion] + download.entries.map(\.serverVersion) + [new.download.serverVersion]
        let clients = [old.download.clientVersion] + download.entries.map(\.clientVersion) + [new.download.clientVersion]
        guard zip(servers, servers.dropFirst()).allSatisfy(<=), zip(clients, clients.dropFirst()).allSatisfy(<=) else {
            throw Fault("entries out of order: \(servers), \(clients)")
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
