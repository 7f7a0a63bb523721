package import SluicePorts

/// The place of a DOWNLOAD among those of its query version.
package enum RealmBatchState: UInt64, CaseIterable, Sendable {
    /// A part of a bootstrap that another one follows.
    case moreToCome = 0
    /// The last part of a bootstrap. The client applies all parts now.
    case lastInBatch = 1
    /// Changes after the bootstrap.
    case steadyState = 2
}

/// One changeset of a DOWNLOAD.
package struct RealmDownloadEntry: Hashable, Sendable {
    package var serverVersion: UInt64
    package var clientVersion: UInt64
    /// Milliseconds since 2015-01-01.
    package var timestamp: UInt64
    package var origin: UInt64
    /// The size before the server changed the changeset. Clients only count it.
    package var originalSize: UInt64
    package var changeset: [UInt8]

    package init(_ entry: RealmStreamEntry) {
        (serverVersion, clientVersion) = (entry.serverVersion, entry.clientVersion)
        (timestamp, origin, changeset) = (entry.timestamp, entry.origin, entry.changeset)
        originalSize = UInt64(entry.changeset.count)
    }

    package init(
        serverVersion: UInt64, clientVersion: UInt64, timestamp: UInt64, origin: UInt64, originalSize: UInt64? = nil, changeset: [UInt8]
    ) {
        (self.serverVersion, self.clientVersion, self.timestamp) = (serverVersion, clientVersion, timestamp)
        (self.origin, self.originalSize, self.changeset) = (origin, originalSize ?? UInt64(changeset.count), changeset)
    }
}

/// The progress that a DOWNLOAD reports.
package struct RealmProgress: Hashable, Sendable {
    package var download: RealmDownloadCursor
    package var latest: RealmServerVersion
    package var upload: RealmUploadProgress

    package init(
        download: RealmDownloadCursor = RealmDownloadCursor(), latest: RealmServerVersion = RealmServerVersion(),
        upload: RealmUploadProgress = RealmUploadProgress()
    ) {
        (self.download, self.latest, self.upload) = (download, latest, upload)
    }
}

/// Changesets for a client, with the progress after them. Without entries it acknowledges uploads.
package struct RealmDownload: Hashable, Sendable {
    package var session: UInt64
    package var progress: RealmProgress
    package var queryVersion: UInt64
    package var batch: RealmBatchState
    /// The share of a bootstrap that the client has after this message, between 0 and 1.
    package var estimate: Double
    package var entries: [RealmDownloadEntry]

    package init(
        session: UInt64, progress: RealmProgress, queryVersion: UInt64, batch: RealmBatchState, estimate: Double = 1,
        entries: [RealmDownloadEntry] = []
    ) {
        (self.session, self.progress, self.queryVersion) = (session, progress, queryVersion)
        (self.batch, self.estimate, self.entries) = (batch, estimate, entries)
    }
}

/// The pause before a client retries.
package struct RealmBackoff: Hashable, Sendable {
    package var seconds: UInt64
    package var maximumSeconds: UInt64
    package var multiplier: UInt64

    package init(seconds: UInt64, maximumSeconds: UInt64, multiplier: UInt64) {
        (self.seconds, self.maximumSeconds, self.multiplier) = (seconds, maximumSeconds, multiplier)
    }
}

/// An error of a session, or of the connection with session 0.
package struct RealmServerError: Hashable, Sendable {
    package var session: UInt64
    package var code: RealmErrorCode
    package var message: String
    package var action: RealmErrorAction
    package var tryAgain: Bool
    package var backoff: RealmBackoff?
    /// Present if the code is 231.
    package var compensation: RealmCompensation?

    package init(
        session: UInt64, code: RealmErrorCode, message: String, action: RealmErrorAction, tryAgain: Bool, backoff: RealmBackoff? = nil
    ) {
        (self.session, self.code, self.message) = (session, code, message)
        (self.action, self.tryAgain, self.backoff) = (action, tryAgain, backoff)
    }

    /// The notice of a compensating write. The session continues after it.
    package init(session: UInt64, _ compensation: RealmCompensation) {
        self.init(
            session: session, code: .compensatingWrite, message: "Client attempted a write that is not allowed; it has been reverted",
            action: .warning, tryAgain: true)
        self.compensation = compensation
    }
}

/// The refusal of a subscription set. The previous one stays in force.
package struct RealmQueryError: Hashable, Sendable {
    package var session: UInt64
    package var queryVersion: UInt64
    /// The text begins with `Invalid query`.
    package var message: String

    package init(session: UInt64, queryVersion: UInt64, message: String) {
        (self.session, self.queryVersion, self.message) = (session, queryVersion, message)
    }
}

/// A line for the client's log.
package struct RealmLogMessage: Hashable, Sendable {
    package var session: UInt64
    /// `trace`, `debug`, `info`, `warn` or `error`.
    package var level: String
    package var message: String
    package var connection: String?

    package init(session: UInt64, level: String, message: String, connection: String? = nil) {
        (self.session, self.level, self.message, self.connection) = (session, level, message, connection)
    }
}

/// The error form of old protocol versions. Clients still read it; the gateway does not send it.
package struct RealmPlainError: Hashable, Sendable {
    package var session: UInt64
    package var code: UInt64
    package var message: String
    package var tryAgain: Bool

    package init(session: UInt64, code: UInt64, message: String, tryAgain: Bool) {
        (self.session, self.code, self.message, self.tryAgain) = (session, code, message, tryAgain)
    }
}

/// A message of the server. The large cases are rare and indirect.
package enum RealmServerMessage: Hashable, Sendable {
    case ident(session: UInt64, RealmFileIdent)
    case download(RealmDownload)
    case mark(session: UInt64, request: UInt64)
    case unbound(session: UInt64)
    case pong(timestamp: UInt64)
    indirect case error(RealmServerError)
    indirect case plainError(RealmPlainError)
    indirect case queryError(RealmQueryError)
    indirect case log(RealmLogMessage)
    indirect case testCommand(RealmTestCommand)

    /// The session; zero for the connection.
    package var session: UInt64 {
        switch self {
        case .ident(let session, _), .mark(let session, _), .unbound(let session): session
        case .download(let download): download.session
        case .pong: 0
        case .error(let error): error.session
        case .plainError(let error): error.session
        case .queryError(let error): error.session
        case .log(let message): message.session
        case .testCommand(let command): command.session
        }
    }
}
