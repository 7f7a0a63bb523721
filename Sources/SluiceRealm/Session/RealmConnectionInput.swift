package import SluiceCore
package import SluicePorts

/// A session of a connection. The generation tells it from an earlier session with the client's same number.
package struct RealmSessionID: Hashable, Sendable {
    package var session: UInt64
    package var generation: UInt64

    package init(session: UInt64, generation: UInt64) {
        (self.session, self.generation) = (session, generation)
    }
}

/// The state of a client file in memory. A session owns it from `opened` to `release`.
package struct RealmClientState: Hashable, Sendable {
    package var stream: ClientStream
    package var model: ClientModel

    package init(stream: ClientStream, model: ClientModel) {
        (self.stream, self.model) = (stream, model)
    }
}

/// One message of a bootstrap.
package struct RealmBootstrapPart: Hashable, Sendable {
    package var queryVersion: UInt64
    /// The server version of the view, the same in all parts.
    package var serverVersion: UInt64
    /// The version of the client that had taken effect at that server version.
    package var clientVersion: UInt64
    package var entries: [OutgoingEntry]
    /// The share of the bootstrap that the client has after this part.
    package var estimate: Double
    package var isLast: Bool
    /// With the last part: the state of the views that is stored with the view; nil for none.
    package var replica: [UInt8]?
    /// The number of the request for the view; nil for any. Parts of an earlier request of the same set are dropped.
    package var request: UInt64?

    package init(
        queryVersion: UInt64, serverVersion: UInt64, clientVersion: UInt64, entries: [OutgoingEntry], estimate: Double = 1,
        isLast: Bool = true, replica: [UInt8]? = nil, request: UInt64? = nil
    ) {
        self.request = request
        (self.queryVersion, self.serverVersion, self.clientVersion) = (queryVersion, serverVersion, clientVersion)
        (self.entries, self.estimate, self.isLast, self.replica) = (entries, estimate, isLast, replica)
    }
}

/// The result of an upload.
package struct RealmIntegratedUpload: Hashable, Sendable {
    /// The progress version of the upload.
    package var clientVersion: UInt64
    /// The server version after it. The stream has every entry for the client up to it.
    package var serverVersion: UInt64
    /// The operations of the client that took effect.
    package var operations: [OutgoingOperation]
    /// The number of uploads that took effect together.
    package var uploads: Int

    package init(clientVersion: UInt64, serverVersion: UInt64, operations: [OutgoingOperation] = [], uploads: Int = 1) {
        (self.clientVersion, self.serverVersion, self.operations) = (clientVersion, serverVersion, operations)
        self.uploads = uploads
    }
}

/// The events that the connection machine handles.
///
/// Indirect, as the tasks of idle connections have room for several of them.
package indirect enum RealmConnectionInput: Hashable, Sendable {
    case received(RealmClientMessage)
    /// A message could not be decoded.
    case malformed(SluiceError)
    /// The answer to `allotFile`.
    case allotted(RealmSessionID, RealmFileIdent)
    /// The answer to `openFile`, with the newest version of the server.
    case opened(RealmSessionID, RealmClientState, newest: UInt64)
    /// Changesets for the client, in the order of their versions and stored already.
    case append(RealmSessionID, [OutgoingEntry])
    /// The stream has every entry for the client up to this version.
    case advanced(RealmSessionID, UInt64)
    /// The next part of the bootstrap that `buildView` asked for.
    case bootstrap(RealmSessionID, RealmBootstrapPart)
    /// A query of the set is not valid. It comes before any part of the bootstrap.
    case queryFailed(RealmSessionID, queryVersion: UInt64, String)
    /// The user's permissions changed: the view must be built again.
    case permissionsChanged(RealmSessionID)
    /// The answer to one `integrate` or several, in the order of the actions.
    case integrated(RealmSessionID, RealmIntegratedUpload)
    /// A changeset of an upload under way has taken effect.
    case changesetIntegrated(RealmSessionID, RealmIntegratedUpload)
    /// The answer to `catchUp`.
    case caughtUp(RealmSessionID, request: UInt64)
    /// The session cannot continue.
    case failed(RealmSessionID, SluiceError)
    /// Another connection opened the session's file.
    case replaced(RealmSessionID)
    case tokenExpired
    /// The user is disabled or deleted.
    case userDisabled
    case shutDown
    case disconnected
}

/// A view to build.
package struct RealmViewRequest: Hashable, Sendable {
    package var query: RealmQuerySet
    /// `true` if the bootstrap must erase everything that the file may hold; `false` if the difference to the last complete view suffices.
    package var isFull: Bool
    /// `true` if the bootstrap must begin with the schema, because the file may have none.
    package var hasSchema: Bool
    /// `true` if the client has a view of the set. If the connection ends behind a part, the next bootstrap is appended to the part.
    package var isRepeated: Bool
    /// The number of the request in its session.
    package var number: UInt64
    /// The version of the last entry that the client gets before the view. The session drops those behind it that the view covers.
    package var received: UInt64

    package init(
        query: RealmQuerySet, isFull: Bool, hasSchema: Bool, isRepeated: Bool = false, number: UInt64 = 0, received: UInt64 = 0
    ) {
        (self.query, self.isFull, self.hasSchema) = (query, isFull, hasSchema)
        (self.isRepeated, self.number, self.received) = (isRepeated, number, received)
    }
}

/// A change of a file's durable record.
package enum RealmRecordChange: Hashable, Sendable {
    case beginBootstrap(queryVersion: UInt64)
    case cancelBootstrap
    case completeBootstrap(RealmClientRecord.View)
    case lose
}

/// The effects that the caller performs, in order. A `send` waits until the `store` actions before it are durable.
///
/// The large cases are rare and indirect: each message moves several actions.
package enum RealmConnectionAction: Hashable, Sendable {
    /// Registers a new file. Answered by `allotted`.
    case allotFile(RealmSessionID)
    /// Loads the state of a file. Answered by `opened`, or by `failed` for an unknown pair.
    indirect case openFile(RealmSessionID, RealmIdent)
    indirect case store(RealmSessionID, RealmRecordChange)
    /// Builds a view. Answered by `bootstrap` or `queryFailed`. Entries for the last complete view continue until the first part.
    indirect case buildView(RealmSessionID, RealmViewRequest)
    /// The bootstrap of this query version ends without its last part: it was superseded.
    case superseded(RealmSessionID, queryVersion: UInt64)
    /// Applies the changesets that are new and stores the progress, in one transaction. Answered by `integrated`, also without changesets.
    case integrate(RealmSessionID, RealmUploadMessage)
    /// Tells the views of changesets that the client sends again although they took effect.
    case repeated(RealmSessionID, [RealmUploadEntry])
    /// Asks for an answer once every change up to now has been appended. Answered by `caughtUp`.
    case catchUp(RealmSessionID, request: UInt64)
    case send(RealmServerMessage)
    /// The client could not apply a message.
    indirect case report(RealmSessionID, RealmClientReport)
    /// The server was about to send a message that would have stopped the client. It is counted.
    indirect case defect(RealmSessionID, SluiceError)
    /// The session is over. The state is nil if it was not opened or is no longer usable.
    indirect case release(RealmSessionID, RealmClientState?)
    case pauseReading
    case resumeReading
    case close(RealmCloseReason, String)
}
