package import SluiceCore

/// The effect of a client reset on the writes that the gateway does not have.
package enum ReplicaReset: UInt64, Hashable, Sendable {
    case recover = 1
    case discard = 2
    /// As `discard`, for the file of another user. Also drops the asymmetric objects, which would be sent in the new user's name.
    case disown = 3
}

/// A new start with the server, for a replica that the gateway does not know.
package struct ClientReset: Sendable {
    let database: ReplicaDatabase
    let local: LocalChanges
    let subscriptions: SubscriptionStore
    let ingest: IngestQueue
    /// The user who opened the file. `nil` if it is not synced.
    let owner: String?

    /// The client reset under way, which the next bootstrap ends, and the number of resets begun since the last that ended.
    package var underWay: (reset: ReplicaReset?, count: UInt64) {
        (ReplicaReset(rawValue: database.meta.reset), database.meta.resets)
    }

    /// Forgets the server. Identity and position are dropped. Pending writes stay and are numbered from 1 again. The newest subscription
    /// set becomes pending. Rows stay visible until the next bootstrap replaces them. Runs in a durable transaction.
    /// - Parameter reset: the effect of that bootstrap's end on pending writes. `nil` outside of a client reset.
    package func begin(_ reset: ReplicaReset?) throws(SluiceError) {
        // During a reset, acknowledged writes stay visible until the new state arrives. They are not sent again.
        if reset == nil { try local.dropAcknowledged(leaving: .untold) }
        database.meta.identity = nil
        database.meta.applied = AppliedPosition(lsn: .zero, version: 0)
        database.meta.held = []
        database.meta.checkpoint = []
        database.meta.compensation = 0
        database.meta.taken = 0
        // The ingest batches do not wait for the bootstrap, so they are deleted now.
        if reset == .disown { try ingest.removeAll() }
        // A copy has no owner until it is opened.
        if reset == nil || reset == .disown { database.meta.owner = owner ?? "" }
        try local.renumberFromOne()
        try ingest.renumber()
        let latest = try subscriptions.latest()
        if latest.version > 0 { try subscriptions.setState(version: latest.version, .pending) }
        database.news.local = true
        guard let reset else { return }
        database.meta.reset = reset.rawValue
        database.meta.resets += 1
        // Without a subscription there is no bootstrap to wait for.
        if latest.version == 0 { try finish(leaving: .known(.leftView)) }
    }

    /// Ends a client reset, if one is under way: the replica shows the gateway's state, with or without the pending writes.
    ///
    /// No changeset has been uploaded under the new identity yet, so numbers may begin at 1 again.
    /// - Parameter leaving: the reason for objects that no longer exist.
    func finish(leaving: Leaving) throws(SluiceError) {
        if let reset = ReplicaReset(rawValue: database.meta.reset), reset != .recover {
            try local.discard(leaving: leaving)
        } else if database.meta.reset != 0 {
            try local.recover(leaving: leaving)
        }
        database.meta.reset = 0
        database.meta.resets = 0
    }
}
