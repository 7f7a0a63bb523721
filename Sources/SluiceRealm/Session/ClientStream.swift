package import SluiceCore
package import SluicePorts

/// The durable stream of changesets to one client file, and the progress of its uploads.
///
/// An entry stays until an IDENT or UPLOAD of the client confirms its version. In the store it stays until an UPLOAD does. It keeps the
/// client version of its making, so a resent entry is byte for byte the same: the client orders it among its own changes by that version.
package struct ClientStream: Hashable, Sendable {
    /// The way in which a returning client continues.
    package enum Resumption: Hashable, Sendable {
        /// The unconfirmed entries are sent again.
        case resend
        /// The view is sent again, with erasures of everything that the file may hold.
        case bootstrap
        /// The client replaces its file.
        case reset(RealmErrorCode, String)
    }

    package let bounds: ClientStreamBounds
    package private(set) var record: RealmClientRecord
    /// In the order of their versions, each version once.
    package private(set) var entries: [RealmStreamEntry]
    /// The sum of the entries' costs.
    package private(set) var bytes: Int

    package init(_ stored: StoredRealmClient, bounds: ClientStreamBounds = ClientStreamBounds()) {
        self.bounds = bounds
        record = stored.record
        entries = stored.entries
        bytes = stored.entries.reduce(0) { $0 + $1.cost }
    }

    /// The last server version of the stream: that of the last entry, bootstrap or confirmation.
    package var lastVersion: UInt64 { max(entries.last?.serverVersion ?? 0, record.view?.serverVersion ?? 0, record.acknowledged) }

    // MARK: Entries

    /// Appends an entry.
    ///
    /// - Parameter now: Milliseconds since 1970.
    /// - Returns: `false` if a bound is exceeded: the stream is lost, and the client must be reset.
    /// - Throws: `internalError` for a version that does not follow the last one.
    package mutating func append(_ entry: RealmStreamEntry, now: Int64) throws(SluiceError) -> Bool {
        guard !record.isLost else { return false }
        guard entry.serverVersion > lastVersion, entry.clientVersion >= entries.last?.clientVersion ?? 0 else {
            throw SluiceError(
                .internalError, "An entry of version \(entry.serverVersion) follows version \(lastVersion) of a client's stream.")
        }
        entries.append(entry)
        bytes += entry.cost
        return !expire(now: now)
    }

    /// Gives the stream up if a bound is exceeded.
    /// - Returns: `true` if the stream is lost.
    package mutating func expire(now: Int64) -> Bool {
        let isOld = entries.first.map { $0.created < now && now - max($0.created, 0) > bounds.age } ?? false
        if entries.count > bounds.entries || bytes > bounds.bytes || isOld { lose() }
        return record.isLost
    }

    /// Drops all entries. The client is reset when it returns.
    package mutating func lose() {
        record.isLost = true
        record.compensations = []
        entries = []
        bytes = 0
    }

    /// Removes the entries that the client has confirmed, and their compensating writes.
    package mutating func acknowledge(upTo serverVersion: UInt64) {
        record.acknowledged = max(record.acknowledged, serverVersion)
        dropEntries(upTo: serverVersion)
        record.compensations.removeAll { $0.serverVersion <= serverVersion }
    }

    private mutating func dropEntries(upTo serverVersion: UInt64) {
        let count = entries.prefix { $0.serverVersion <= serverVersion }.count
        bytes -= entries[..<count].reduce(0) { $0 + $1.cost }
        entries.removeFirst(count)
    }

    // MARK: Uploads

    /// Returns `true` if a changeset of this version has taken effect.
    package func isDuplicate(_ clientVersion: UInt64) -> Bool { clientVersion <= record.upload.clientVersion }

    /// Records that the changesets of an upload took effect, and the server versions that it confirms.
    package mutating func integrated(_ progress: RealmUploadProgress) {
        record.upload.clientVersion = max(record.upload.clientVersion, progress.clientVersion)
        record.upload.serverVersion = max(record.upload.serverVersion, progress.serverVersion)
        acknowledge(upTo: progress.serverVersion)
    }

    // MARK: Bootstraps

    /// Records that a view is being built. Until its end, a returning client gets a bootstrap.
    package mutating func beginBootstrap(queryVersion: UInt64) { record.building = queryVersion }

    /// Records that the bootstrap under way was given up before any of its messages was sent.
    package mutating func cancelBootstrap() { record.building = nil }

    /// Records the last message of a bootstrap. Entries that it covers are removed; their compensating writes remain to be reported.
    package mutating func completeBootstrap(queryVersion: UInt64, serverVersion: UInt64) {
        record.building = nil
        record.view = RealmClientRecord.View(queryVersion: queryVersion, serverVersion: serverVersion)
        record.compensations += entries.prefix { $0.serverVersion <= serverVersion }.compactMap(\.compensation)
        dropEntries(upTo: serverVersion)
    }

    /// Keeps a compensating write whose entry a bootstrap covers. Its notice is sent with the next entry.
    package mutating func keep(_ compensation: RealmCompensation) { record.compensations.append(compensation) }

    /// Chooses the way in which a returning client continues, and confirms the entries that it has.
    ///
    /// A bootstrap follows if the client's query version is not that of its view, and if a bootstrap was under way. It also follows if the
    /// cursor is older than the last bootstrap: the client has not received it in full.
    ///
    /// - Parameter newest: The newest version of the server.
    package mutating func resume(_ ident: RealmIdent, newest: UInt64, now: Int64) -> Resumption {
        let cursor = ident.download
        if expire(now: now) { return .reset(.badClientFileIdent, "The client was away for too long.") }
        if cursor.serverVersion > newest { return .reset(.badServerVersion, "The server has no version \(cursor.serverVersion).") }
        if cursor.clientVersion > record.upload.clientVersion {
            return .reset(.badClientVersion, "The server has no changeset of version \(cursor.clientVersion) of the client.")
        }
        // The file is an older copy. Its versions would not fit the progress of the newer one.
        if cursor.serverVersion < record.acknowledged {
            return .reset(.badClientFileIdent, "The client has confirmed version \(record.acknowledged) before.")
        }
        guard let view = record.view, record.building == nil, view.queryVersion == ident.query.version, cursor.serverVersion > 0,
            cursor.serverVersion >= view.serverVersion
        else { return .bootstrap }
        acknowledge(upTo: cursor.serverVersion)
        return .resend
    }
}
