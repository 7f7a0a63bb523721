package import SluicePorts

/// The reason for which a client opens a session.
package enum RealmSessionReason: UInt64, CaseIterable, Sendable {
    case sync = 0
    /// The session fills a fresh file, or follows one that did, for a client reset.
    case clientReset = 1
}

/// The first message of a session.
package struct RealmBind: Hashable, Sendable {
    package var session: UInt64
    package var needsFileIdent: Bool
    package var isSubserver: Bool
    package var reason: RealmSessionReason
    /// Zero if the app has no schema version.
    package var schemaVersion: UInt64
    /// The partition of a file that was migrated from partition-based sync.
    package var migratedPartition: String?
    /// Empty: the token of the URL counts.
    package var token: String

    package init(
        session: UInt64, needsFileIdent: Bool, isSubserver: Bool = false, reason: RealmSessionReason = .sync, schemaVersion: UInt64 = 0,
        migratedPartition: String? = nil, token: String = ""
    ) {
        (self.session, self.needsFileIdent, self.isSubserver, self.reason) = (session, needsFileIdent, isSubserver, reason)
        (self.schemaVersion, self.migratedPartition, self.token) = (schemaVersion, migratedPartition, token)
    }
}

/// The position of a client in the server's history.
package struct RealmDownloadCursor: Hashable, Sendable {
    package var serverVersion: UInt64
    /// The client's version that the server had integrated at that position.
    package var clientVersion: UInt64

    package init(serverVersion: UInt64 = 0, clientVersion: UInt64 = 0) {
        (self.serverVersion, self.clientVersion) = (serverVersion, clientVersion)
    }
}

/// The newest version of the server's history, with the salt of that history.
package struct RealmServerVersion: Hashable, Sendable {
    package var version: UInt64
    package var salt: UInt64

    package init(version: UInt64 = 0, salt: UInt64 = 0) {
        (self.version, self.salt) = (version, salt)
    }
}

/// The queries of one subscription set, one per class.
package struct RealmQuerySet: Hashable, Sendable {
    package var version: UInt64
    /// The text of each class's query.
    package var queries: [String: String]

    package init(version: UInt64, queries: [String: String]) {
        (self.version, self.queries) = (version, queries)
    }
}

/// The identity, progress and active subscription set of a client file.
package struct RealmIdent: Hashable, Sendable {
    package var session: UInt64
    package var file: RealmFileIdent
    package var download: RealmDownloadCursor
    package var latest: RealmServerVersion
    package var query: RealmQuerySet

    package init(
        session: UInt64, file: RealmFileIdent, download: RealmDownloadCursor, latest: RealmServerVersion, query: RealmQuerySet
    ) {
        (self.session, self.file, self.download, self.latest, self.query) = (session, file, download, latest, query)
    }
}

/// One changeset of an upload.
package struct RealmUploadEntry: Hashable, Sendable {
    package var clientVersion: UInt64
    /// The server version that the client had integrated when it made the changeset.
    package var serverVersion: UInt64
    /// Milliseconds since 2015-01-01.
    package var timestamp: UInt64
    /// Zero for the client itself.
    package var origin: UInt64
    package var changeset: [UInt8]

    package init(clientVersion: UInt64, serverVersion: UInt64, timestamp: UInt64, origin: UInt64, changeset: [UInt8]) {
        (self.clientVersion, self.serverVersion, self.timestamp) = (clientVersion, serverVersion, timestamp)
        (self.origin, self.changeset) = (origin, changeset)
    }
}

/// Changesets of a client and the progress of its uploads and downloads. An upload without changesets reports progress alone.
package struct RealmUploadMessage: Hashable, Sendable {
    package var session: UInt64
    package var progress: RealmUploadProgress
    /// Unused by the server.
    package var lockedServerVersion: UInt64
    package var entries: [RealmUploadEntry]

    package init(session: UInt64, progress: RealmUploadProgress, lockedServerVersion: UInt64 = 0, entries: [RealmUploadEntry] = []) {
        (self.session, self.progress) = (session, progress)
        (self.lockedServerVersion, self.entries) = (lockedServerVersion, entries)
    }

    /// The bytes that the upload counts for until it took effect.
    package var cost: Int { entries.reduce(64) { $0 + 64 + $1.changeset.count } }
}

/// A client's report that it could not apply a message.
package struct RealmClientReport: Hashable, Sendable {
    package var session: UInt64
    package var code: UInt64
    package var message: String

    package init(session: UInt64, code: UInt64, message: String) {
        (self.session, self.code, self.message) = (session, code, message)
    }

    /// The class and property that the client and the app declare in different ways, in the client's words; nil for another report.
    var schemaMismatch: String? {
        guard let begin = message.firstRange(of: "Schema mismatch: ") else { return nil }
        return String(message[begin.lowerBound...].unicodeScalars.prefix(512))
    }
}

/// A command of test suites and its answer.
package struct RealmTestCommand: Hashable, Sendable {
    package var session: UInt64
    package var request: UInt64
    package var body: String

    package init(session: UInt64, request: UInt64, body: String) {
        (self.session, self.request, self.body) = (session, request, body)
    }
}

/// A message of the client. The large cases are rare and indirect.
package enum RealmClientMessage: Hashable, Sendable {
    indirect case bind(RealmBind)
    indirect case ident(RealmIdent)
    case query(session: UInt64, RealmQuerySet)
    case upload(RealmUploadMessage)
    case mark(session: UInt64, request: UInt64)
    case unbind(session: UInt64)
    /// Times in milliseconds: a monotonic clock, and the last round trip.
    case ping(timestamp: UInt64, roundTrip: UInt64)
    indirect case report(RealmClientReport)
    indirect case testCommand(RealmTestCommand)

    /// The session; zero for the connection.
    package var session: UInt64 {
        switch self {
        case .bind(let bind): bind.session
        case .ident(let ident): ident.session
        case .query(let session, _), .mark(let session, _), .unbind(let session): session
        case .upload(let upload): upload.session
        case .ping: 0
        case .report(let report): report.session
        case .testCommand(let command): command.session
        }
    }

    /// The name on the wire.
    package var name: String {
        switch self {
        case .bind: "bind"
        case .ident: "ident"
        case .query: "query"
        case .upload: "upload"
        case .mark: "mark"
        case .unbind: "unbind"
        case .ping: "ping"
        case .report: "json_error"
        case .testCommand: "test_command"
        }
    }
}
