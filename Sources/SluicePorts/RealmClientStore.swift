/// The identity of a client file in Realm's protocol. Both numbers are positive and fit 63 bits.
package struct RealmFileIdent: Hashable, Sendable {
    package var ident: UInt64
    /// A secret of the file: the pair proves that the client is the one that received it.
    package var salt: UInt64

    package init(ident: UInt64, salt: UInt64) {
        (self.ident, self.salt) = (ident, salt)
    }
}

/// The progress of a client's uploads.
package struct RealmUploadProgress: Hashable, Sendable {
    /// The client's version up to which its changesets took effect.
    package var clientVersion: UInt64
    /// The server version that the client had integrated when it sent them.
    package var serverVersion: UInt64

    package init(clientVersion: UInt64 = 0, serverVersion: UInt64 = 0) {
        (self.clientVersion, self.serverVersion) = (clientVersion, serverVersion)
    }
}

/// An object whose write was rejected.
package struct RealmRejectedUpdate: Hashable, Sendable {
    package var reason: String
    package var table: String
    /// The primary key in the encoding of changesets, with a length-prefixed string.
    package var key: [UInt8]

    package init(reason: String, table: String, key: [UInt8]) {
        (self.reason, self.table, self.key) = (reason, table, key)
    }
}

/// The compensating write of one uploaded changeset.
package struct RealmCompensation: Hashable, Sendable {
    /// The version of the stream entry that puts the objects back.
    package var serverVersion: UInt64
    /// The version of the rejected changeset.
    package var clientVersion: UInt64
    package var rejected: [RealmRejectedUpdate]

    package init(serverVersion: UInt64, clientVersion: UInt64, rejected: [RealmRejectedUpdate]) {
        (self.serverVersion, self.clientVersion, self.rejected) = (serverVersion, clientVersion, rejected)
    }
}

/// A changeset on its way to one client.
package struct RealmStreamEntry: Hashable, Sendable {
    package var serverVersion: UInt64
    /// The version of the client that had taken effect when the entry was made. It never changes afterwards.
    package var clientVersion: UInt64
    /// Milliseconds since 2015-01-01, by the clock of the writer.
    package var timestamp: UInt64
    /// The file that made the change; 1 for the server. Never the receiving file.
    package var origin: UInt64
    package var changeset: [UInt8]
    /// The time at which the entry was made, milliseconds since 1970.
    package var created: Int64
    package var compensation: RealmCompensation?

    package init(
        serverVersion: UInt64, clientVersion: UInt64, timestamp: UInt64, origin: UInt64, changeset: [UInt8], created: Int64,
        compensation: RealmCompensation? = nil
    ) {
        (self.serverVersion, self.clientVersion, self.timestamp, self.origin) = (serverVersion, clientVersion, timestamp, origin)
        (self.changeset, self.created, self.compensation) = (changeset, created, compensation)
    }

    /// The bytes that the entry counts for: its changeset, its compensating write and a share for the rest.
    package var cost: Int {
        let rejected = compensation?.rejected.reduce(0) { $0 + $1.reason.utf8.count + $1.table.utf8.count + $1.key.count } ?? 0
        return 64 + changeset.count + rejected
    }
}

/// The durable state of one client file beside its stream entries.
package struct RealmClientRecord: Hashable, Sendable {
    /// A complete view of the client.
    package struct View: Hashable, Sendable {
        package var queryVersion: UInt64
        /// The server version of the bootstrap.
        package var serverVersion: UInt64
        /// The state to store with the view; nil keeps the stored one, and the result of `open` has nil.
        package var replica: [UInt8]?

        package init(queryVersion: UInt64, serverVersion: UInt64, replica: [UInt8]? = nil) {
            (self.queryVersion, self.serverVersion, self.replica) = (queryVersion, serverVersion, replica)
        }
    }

    package var file: RealmFileIdent
    package var upload = RealmUploadProgress()
    /// The server version that the client has confirmed. Entries up to it are removed.
    package var acknowledged: UInt64 = 0
    /// The last view whose bootstrap was sent completely; nil before the first.
    package var view: View?
    /// The query version of a bootstrap that was begun and not completed.
    package var building: UInt64?
    /// `true` if entries were dropped that the client had not confirmed. The client must be reset.
    package var isLost = false
    /// Compensating writes whose entry was replaced by a bootstrap before the client confirmed it.
    package var compensations: [RealmCompensation] = []
    /// The state from which the views of the file continue, opaque. It may be older than the stream. Empty before the first.
    package var replica: [UInt8] = []

    package init(file: RealmFileIdent) { self.file = file }
}

/// The bounds of a client's unconfirmed entries. Beyond one of the first three, the client is reset when it returns, and recovers its own
/// changes.
package struct ClientStreamBounds: Hashable, Sendable {
    package var entries: Int
    package var bytes: Int
    /// The age of the oldest entry, in milliseconds.
    package var age: Int64
    /// Compensating writes that a store keeps without their entry. Beyond: the oldest are not reported to the client.
    package var compensations: Int

    package init(entries: Int = 100_000, bytes: Int = 64 << 20, age: Int64 = 30 * 86_400_000, compensations: Int = 1_000) {
        (self.entries, self.bytes, self.age, self.compensations) = (entries, bytes, age, compensations)
    }
}

/// A session of a client file. A later session of the file supersedes it.
package struct RealmFileSession: Hashable, Sendable {
    package var file: UInt64
    /// The number of times that the file had been opened, this one included.
    package var number: UInt64

    package init(file: UInt64, number: UInt64) {
        (self.file, self.number) = (file, number)
    }
}

/// The stored state of a client file.
package struct StoredRealmClient: Hashable, Sendable {
    package var record: RealmClientRecord
    /// In the order of their versions.
    package var entries: [RealmStreamEntry]
    /// The number of the session that `open` began; 0 if the state comes from no store.
    package var sessionNumber: UInt64

    package init(record: RealmClientRecord, entries: [RealmStreamEntry] = [], sessionNumber: UInt64 = 0) {
        (self.record, self.entries, self.sessionNumber) = (record, entries, sessionNumber)
    }

    /// The session that `open` began.
    package var session: RealmFileSession { RealmFileSession(file: record.file.ident, number: sessionNumber) }
}

/// The store of client files that speak Realm's protocol.
///
/// Every call but `appendLater` and `confirmed` commits before it returns. A message to the client that depends on a call is sent only
/// afterwards.
///
/// A call for a session throws `resync` if the file has been opened again since, and `badClientFile` if the file is gone. It then stores
/// nothing. Versions that exceed 63 bits throw `internalError`.
package protocol RealmClientStore: Sendable {
    /// Registers a new file for a user. A store with a bound of a user's files lets one that is not in use give way.
    /// - Throws: `tooManyRequests` at the bound, if all are in use.
    func allot(user: String) async throws -> RealmFileIdent
    /// Returns the state of a file, and begins a session. Sessions of the file that were opened earlier may store nothing more.
    /// - Throws: `badClientFile` for an unknown pair, `userMismatch` for the file of another user.
    func open(_ file: RealmFileIdent, user: String) async throws -> StoredRealmClient
    /// Appends entries to a file's stream, in the transaction that gives the change its server version.
    ///
    /// If a bound of `ClientStreamBounds` is exceeded, the stream is lost instead. The age is that of the oldest entry at the making of the
    /// newest. A lost stream takes no entries.
    /// - Throws: `internalError` for a version that does not follow the stream's last one. No entry is then stored.
    func append(_ entries: [RealmStreamEntry], to session: RealmFileSession) async throws
    /// Takes entries that are stored soon. A crash may lose them: the client then names a version that the stored stream lacks.
    /// - Returns: `false` if the store takes none. The caller then appends them.
    /// - Throws: The error of an earlier call that has stored nothing.
    func appendLater(_ entries: [RealmStreamEntry], to session: RealmFileSession) throws -> Bool
    /// Tells that a client has confirmed the entries up to a version, and returns at once. Those that wait need not be stored any more.
    /// The confirmation itself is stored by another call.
    func confirmed(upTo serverVersion: UInt64, of session: RealmFileSession)
    /// Does what `record` does, perhaps a little later together with others. Returns once the progress is stored. It has a deadline of its
    /// own.
    func recordSoon(_ progress: RealmUploadProgress, of session: RealmFileSession) async throws
    /// Stores the progress of uploads, in the transaction that applies their changesets, and removes the entries that it confirms. Smaller
    /// numbers than those stored change nothing.
    func record(_ progress: RealmUploadProgress, of session: RealmFileSession) async throws
    /// Records that a bootstrap is under way, before any change for its view is appended.
    func beginBootstrap(queryVersion: UInt64, of session: RealmFileSession) async throws
    /// Records that the last message of a bootstrap may reach the client, and removes the entries that the bootstrap covers. Their
    /// compensating writes remain in the record until the client confirms their versions. Stores `view.replica` as well.
    func completeBootstrap(_ view: RealmClientRecord.View, of session: RealmFileSession) async throws
    /// Records that the bootstrap under way was given up before any of its messages was sent.
    func cancelBootstrap(of session: RealmFileSession) async throws
    /// Stores the state from which the views of the file continue.
    /// - Parameter view: The server version of the last complete view that the state knows; 0 for none. If the file has another one,
    ///   nothing is stored: `completeBootstrap` has stored a newer state with it.
    func keep(replica: [UInt8], ofView view: UInt64, of session: RealmFileSession) async throws
    /// Removes a file's entries. Its client is reset when it returns.
    func lose(_ session: RealmFileSession) async throws
}

extension RealmClientStore {
    package func appendLater(_ entries: [RealmStreamEntry], to session: RealmFileSession) throws -> Bool { false }

    package func confirmed(upTo serverVersion: UInt64, of session: RealmFileSession) {}

    package func recordSoon(_ progress: RealmUploadProgress, of session: RealmFileSession) async throws {
        try await record(progress, of: session)
    }
}
