package import SluiceCore
package import SluiceReplica
package import SluiceWire

/// What happens to the machine. Inputs of a connection carry its number; those of an older one are ignored.
package enum SyncInput: Sendable {
    /// Begins, or begins again after a pause or an end. - Parameter token: nil asks for one first.
    case start(token: String?)
    /// Closes the connection and stays so until `start`.
    case pause
    /// Tries now instead of waiting; ends no pause.
    case reconnect
    case connected(UInt64)
    /// The connection could not be made, or is over.
    case disconnected(UInt64, SluiceError?)
    case received(UInt64, ServerMessage)
    /// A pong came.
    case traffic(UInt64)
    /// A message could not be read.
    case unreadable(UInt64, SluiceError)
    case loaded(UInt64, LocalState)
    case pending(UInt64, LocalPending)
    /// The app wrote, or committed a subscription set.
    case localChange
    case tokenRefreshed(String)
    case tokenFailed(SluiceError)
    /// An action on the file failed; what followed it in its batch was not done.
    case replicaFailed(SluiceError)
    case wait(UInt64, SyncWait, deadline: UInt64?)
    case cancelWait(UInt64)
    /// Time has passed; needed when `nextDeadline` is over.
    case tick
}

/// What an app can wait for.
package enum SyncWait: Hashable, Sendable {
    /// Everything that the gateway knew at the time is in the file, for the latest subscription set.
    case download
    /// Everything that was written by then is on the gateway.
    case upload
}

/// What the shell does, in order.
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
    /// Gives what is pending numbers after this one, unless it is the file's own changeset of that time.
    case renumber(after: UInt64, time: HybridTime)
    case acknowledgeUpload(UInt64, LSN, [FutileWrite])
    /// Forgets the objects and tells the app about those that were refused.
    case acknowledgeIngest(UInt64, [RefusedWrite])
    /// Takes the writes back, then tells the app.
    case compensate(UInt64, [RefusedWrite])
    /// Takes back a changeset that no message can carry, then tells the app.
    case setAside(UInt64, SluiceError)
    /// Puts aside from here on, beside what a checkpoint says is put aside.
    case beginBootstrap(version: UInt64, ServerMessage.Checkpoint?)
    case stage(StagedRows)
    /// Shows what was staged, in which all changesets up to `taken` are.
    case endBootstrap(version: UInt64, lsn: LSN, types: [Int], held: [UInt8], taken: UInt64)
    /// The gateway's clock, milliseconds since 1970, for the times of local writes.
    case observe(Int64)
    case apply(ReplicaBatch)
    case refuseSet(version: UInt64, SluiceError)
    /// Begins the server's side anew; the app is told before and after what follows from it has happened.
    case forgetServer(ReplicaReset)
    case report(SyncReport)
    /// Ends a wait, with nil when what was waited for has happened.
    case finish(UInt64, SluiceError?)
}

/// What to read from the file. Nil leaves a part out.
package struct LocalQuery: Hashable, Sendable {
    package var changesetsAfter: UInt64?
    package var maximumBytes: Int
    package var ingestAfter: UInt64?
    /// A batch that is formed for it has a higher number than this.
    package var ingestTaken: UInt64

    package init(changesetsAfter: UInt64?, maximumBytes: Int, ingestAfter: UInt64?, ingestTaken: UInt64) {
        self.changesetsAfter = changesetsAfter
        self.maximumBytes = maximumBytes
        self.ingestAfter = ingestAfter
        self.ingestTaken = ingestTaken
    }
}

/// What the app may want to know.
package enum SyncReport: Hashable, Sendable {
    package enum Connection: Hashable, Sendable { case disconnected, connecting, connected }

    case connection(Connection)
    /// Nothing stops.
    case warning(SluiceError)
    /// The session broke; the engine comes back by itself. Nothing is wrong unless it is a fault: connections are lost, and gateways
    /// stop and send their clients away for a while.
    case interrupted(SluiceError, isFault: Bool)
    /// The engine has stopped; `start` tries again.
    case stopped(SluiceError)
    /// It had stopped, and tries again.
    case resumed
    /// The engine has stopped: the user has to log in again.
    case loggedOut(SluiceError)
    /// The gateway does not know the file, and the engine has stopped: the app has to decide.
    case clientReset(SluiceError)
    /// The gateway does not know the file; the server's side is begun anew.
    case resetting(SluiceError)
    /// Writes were undone, or asymmetric objects not taken; the file shows the gateway's state already.
    case refused([RefusedWrite])
    /// A subscription set was refused; the older one stays active. - Parameter isLast: whether no other set's answer is to come.
    case setRefused(version: UInt64, SluiceError, isLast: Bool)
    /// A bootstrap under way: rows so far and expected (0: unknown).
    case downloading(version: UInt64, rows: UInt64, expected: UInt64)
    case downloaded(version: UInt64)
    /// A run of commits is on its way to the file: changes so far.
    case receiving(changes: UInt64)
    /// The file has the run.
    case received(changes: UInt64)
    /// The changesets up to the number are on the gateway.
    case uploaded(UInt64)
    /// The batches of asymmetric objects up to the number are on the gateway.
    case ingested(UInt64)
}
