package import SluiceCore
package import SluiceReplica
package import SluiceWire

/// The events that the state machine handles. Those of a connection carry its number; those of an older connection are ignored.
package enum SyncInput: Sendable {
    /// Starts, or restarts after a pause or an end. - Parameter token: `nil` uses the previous one, or requests one if there is none.
    case start(token: String?)
    /// Closes the connection. The machine stays offline until `start`.
    case pause
    /// Reconnects now instead of waiting. Does not end a pause.
    case reconnect
    case connected(UInt64)
    /// The connection failed, or ended.
    case disconnected(UInt64, SluiceError?)
    case received(UInt64, ServerMessage)
    /// A pong arrived.
    case traffic(UInt64)
    /// A message could not be decoded.
    case unreadable(UInt64, SluiceError)
    case loaded(UInt64, LocalState)
    case pending(UInt64, LocalPending)
    /// The app wrote, or committed a subscription set.
    case localChange
    case tokenRefreshed(String)
    case tokenFailed(SluiceError)
    /// An action on the replica failed. The actions on the replica after it, in the same batch, were not performed.
    case replicaFailed(SluiceError)
    case wait(UInt64, SyncWait, deadline: UInt64?)
    case cancelWait(UInt64)
    /// Time has passed. Required at `nextDeadline`.
    case tick
}

/// The events that an app can wait for.
package enum SyncWait: Hashable, Sendable {
    /// The replica has everything that the gateway knew when the wait began, for the latest subscription set.
    case download
    /// The gateway has everything that was written before the wait began.
    case upload
}

/// The effects that `SyncLoop` performs, in order.
package enum SyncAction: Sendable {
    case connect(UInt64)
    case close(UInt64)
    case send(UInt64, PBClientMessage)
    case ping(UInt64)
    /// Answered by `loaded`.
    case load(UInt64)
    /// Answered by `pending`.
    case read(UInt64, LocalQuery)
    /// Answered by `tokenRefreshed` or `tokenFailed`.
    case refreshToken
    case setIdentity(ReplicaIdentity)
    /// Renumbers the pending changesets from `after` + 1, unless the changeset `after` of that time is the replica's own.
    case renumber(after: UInt64, time: HybridTime)
    case acknowledgeUpload(UInt64, LSN, [FutileWrite])
    /// Deletes the acknowledged objects and reports the rejected ones to the app.
    case acknowledgeIngest(UInt64, [CompensatingWrite])
    /// Undoes the writes, then reports them to the app.
    case compensate(UInt64, [CompensatingWrite])
    /// Undoes a changeset that no message can carry, then reports it to the app.
    case setAside(UInt64, SluiceError)
    /// Removes objects from a batch that no message can carry, then reports the deleted ones to the app.
    case shortenIngest(IngestCut)
    /// Begins to stage a bootstrap. Keeps the staged rows that the checkpoint names and drops the others.
    case beginBootstrap(version: UInt64, ServerMessage.Checkpoint?)
    case stage(StagedRows)
    /// Shows the staged rows, which include all changesets up to `taken`.
    case endBootstrap(version: UInt64, lsn: LSN, types: [Int], held: [UInt8], taken: UInt64)
    /// The gateway's clock, in milliseconds since 1970. Local write times never fall behind it.
    case observe(Int64)
    case apply(ReplicaBatch)
    case refuseSet(version: UInt64, SluiceError)
    /// Forgets the server's identity and position; the next session downloads anew. The app is called around the change of content.
    case forgetServer(ReplicaReset)
    case report(SyncReport)
    /// Ends a wait: `nil` for success.
    case finish(UInt64, SluiceError?)
}

/// The parts of the replica to read. `nil` leaves a part out.
package struct LocalQuery: Hashable, Sendable {
    package var changesetsAfter: UInt64?
    package var maximumBytes: Int
    package var ingestAfter: UInt64?
    /// The number that a newly formed ingest batch must exceed.
    package var ingestTaken: UInt64

    package init(changesetsAfter: UInt64?, maximumBytes: Int, ingestAfter: UInt64?, ingestTaken: UInt64) {
        self.changesetsAfter = changesetsAfter
        self.maximumBytes = maximumBytes
        self.ingestAfter = ingestAfter
        self.ingestTaken = ingestTaken
    }
}

/// The events that the engine reports to the app.
package enum SyncReport: Hashable, Sendable {
    package enum Connection: Hashable, Sendable { case disconnected, connecting, connected }

    case connection(Connection)
    /// An error that stops nothing.
    case warning(SluiceError)
    /// The session broke; the engine reconnects by itself. Lost connections and gateways that stop are no fault.
    case interrupted(SluiceError, isFault: Bool)
    /// The engine has stopped. `start` tries again.
    case stopped(SluiceError)
    /// The engine had stopped and starts again.
    case resumed
    /// The engine has stopped. The user must log in again.
    case loggedOut(SluiceError)
    /// The gateway does not know the client replica, and the engine has stopped. The app must decide.
    case clientReset(SluiceError)
    /// The gateway does not know the client replica. The engine downloads anew.
    case resetting(SluiceError)
    /// Compensating writes, or rejected asymmetric objects. The replica already shows the gateway's state.
    case refused([CompensatingWrite])
    /// The gateway rejected a subscription set; the older one stays active. - Parameter isLast: `true` if no other set awaits an answer.
    case setRefused(version: UInt64, SluiceError, isLast: Bool)
    /// A bootstrap under way: rows staged so far, and rows expected (0: unknown).
    case downloading(version: UInt64, rows: UInt64, expected: UInt64)
    case downloaded(version: UInt64)
    /// A run of commits is arriving: changes so far.
    case receiving(changes: UInt64)
    /// The replica has committed the run.
    case received(changes: UInt64)
    /// The gateway has the changesets up to this number.
    case uploaded(UInt64)
    /// The gateway has the batches of asymmetric objects up to this number.
    case ingested(UInt64)
}
