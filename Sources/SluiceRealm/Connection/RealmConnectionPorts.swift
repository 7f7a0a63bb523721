package import SluiceCore
package import SluicePorts

/// An event of a client file's views.
///
/// Indirect, as the tasks of idle connections have room for several of them.
package indirect enum RealmViewEvent: Hashable, Sendable {
    /// The next part of the view that was built last. It covers every entry up to its server version.
    case part(RealmBootstrapPart)
    /// A query of the set is not valid. The event precedes every part of the view.
    case refused(queryVersion: UInt64, String)
    /// Entries for the client, not stored yet, in the order of their versions. One event has at most `Limits.stagedBytes`.
    case changes([OutgoingEntry])
    /// All entries up to this version have been yielded. The last of `changes` tells the same of its own version.
    case advanced(UInt64)
    /// A changeset of an upload has taken effect, ahead of the upload's last one. Entries that were made after it may follow.
    case integrated(RealmIntegratedUpload)
    /// The user's permissions changed.
    case permissionsChanged
}

/// The answer of views that is there without a wait.
package enum RealmReadyEvent: Hashable, Sendable {
    case event(RealmViewEvent)
    /// There is no event yet.
    case none
    /// Only `next` yields the event: something must be awaited for it, or it takes long.
    case later
}

/// The session for which views are opened.
package struct RealmViewClient: Hashable, Sendable {
    package var user: String
    /// The session, the last complete view, and the last version of the stream.
    package var stored: StoredRealmClient
    /// The server version that the client has. The stored stream lacks it if a crash lost entries.
    package var cursor: UInt64

    package init(user: String, stored: StoredRealmClient, cursor: UInt64 = 0) {
        (self.user, self.stored, self.cursor) = (user, stored, cursor)
    }
}

/// Builds the views of client files. A call ends soon after its task is cancelled.
package protocol RealmViews: Sendable {
    /// Opens the views of a file. Entries of the last complete view follow those that are stored.
    /// - Parameters:
    ///   - connection: The consumer of the views. They may run on its executor, so that a change needs no switch between the two.
    ///   - wake: Called when `next` may have an event, or throws. It returns at once.
    ///   - keep: Stores the state from which the views of the file continue (`RealmClientRecord.replica`), unless the file has another view
    ///     by then than the one of the version. It fails once the file has been opened again, and may be called after `close` of the view.
    func open(
        _ client: RealmViewClient, for connection: any Actor, wake: @escaping @Sendable () -> Void,
        keep: @escaping @Sendable ([UInt8], UInt64) async throws -> Void
    ) async throws -> any RealmClientView
}

/// The views of one client file, from the opening to `close`.
///
/// One consumer calls `next` until it returns nil, at first and after each call of `wake`. An event waits until it is asked for, so a slow
/// client stops its views.
package protocol RealmClientView: AnyObject, Sendable {
    /// The newest version of the server at the opening.
    var newest: UInt64 { get }
    /// The version of the client up to which its changesets had taken effect at the opening. It may exceed the stored progress.
    var clientVersion: UInt64 { get }
    /// Returns the objects that the client holds at the end of its stored stream.
    func heldObjects() async throws -> [OutgoingOperation.Object]
    /// Begins a view and returns at once.
    ///
    /// Entries of the last complete view continue up to the server version of the first part, and precede it. Those above it belong to the
    /// new view, and follow its last part. If the view is superseded or refused before a part, those of the complete view continue.
    func build(_ request: RealmViewRequest)
    /// Ends the building of a view and returns at once.
    func supersede(queryVersion: UInt64)
    /// Records changesets that took effect, and that the client sends again because it does not know that. Returns at once.
    ///
    /// The client has what they made. The state of the views may be older, after a crash or a session that ended in between.
    func repeated(_ entries: [RealmUploadEntry])
    /// Announces an upload and returns at once. The call of `RealmWrites.integrate` for it follows.
    ///
    /// An upload takes effect in the view before it, and before the views that are built after it.
    func expectUpload()
    /// Records that the client has all entries up to a version, and returns at once. It replaces an upload without changesets.
    /// - Returns: `false` if the views need an upload for it.
    func confirm(_ version: UInt64) -> Bool
    /// Returns the next event; nil if there is none yet.
    /// - Throws: `shuttingDown` after `close`.
    func next() async throws -> RealmViewEvent?
    /// Returns the next event if there is one that needs no wait. Only for a call on the connection's executor, while `next` is not called.
    /// - Parameter isTaken: `false` if earlier events are still to be handled. The views keep no state beyond them then.
    /// - Throws: As `next`.
    func nextNow(isTaken: Bool) throws -> RealmReadyEvent
    /// Returns the newest version of the server. `next` reaches it soon.
    func newestVersion() async throws -> UInt64
    /// Releases everything and returns at once.
    func close()
}

extension RealmClientView {
    package func confirm(_ version: UInt64) -> Bool { false }
}

/// The result of an upload's changesets.
package struct RealmWriteResult: Hashable, Sendable {
    package var integrated: RealmIntegratedUpload
    /// The updates that the views put back.
    package var rejected: [RealmRejectedUpdate]
    /// The last changeset of the upload of which the views yield an event `integrated`; 0 for none. The result comes behind that event.
    package var previous: UInt64

    package init(integrated: RealmIntegratedUpload, rejected: [RealmRejectedUpdate] = [], previous: UInt64 = 0) {
        (self.integrated, self.rejected, self.previous) = (integrated, rejected, previous)
    }
}

/// Applies the uploads of client files. A call ends soon after its task is cancelled.
package protocol RealmWrites: Sendable {
    /// Applies the changesets of an upload. The caller stores the progress afterwards.
    ///
    /// A changeset that took effect before is not applied again, even if its progress was not stored. The views yield the entries that put
    /// rejected updates back, with server versions above that of the result.
    /// - Throws: `resync` if the file has been opened again.
    func integrate(_ upload: RealmUploadMessage, of session: RealmFileSession, user: String) async throws -> RealmWriteResult
}

/// The outgoing side of a connection's socket.
package protocol RealmFrameSink: AnyObject, Sendable {
    /// Calls `body` soon on the thread of the socket, on which the client's messages arrive and a message is sent with the least work.
    /// - Returns: `false` if there is no such thread. `body` is not called then.
    func perform(_ body: @escaping @Sendable () -> Void) -> Bool
    /// Queues a message behind earlier ones. Never blocks. Does nothing on a closed socket.
    func send(_ message: [UInt8])
    /// The number of bytes queued and not yet written to the socket.
    var bufferedBytes: Int { get }
    /// Waits until fewer bytes are queued, the socket is closed, or the task is cancelled.
    /// The sink closes the socket if the client reads nothing for `Limits.unreadSeconds`.
    func drained(below bytes: Int) async
    func pauseReading()
    func resumeReading()
    /// Closes the socket after the queued messages.
    /// - Parameter text: The text of the close frame.
    func close(_ reason: RealmCloseReason, _ text: String)
    /// Called when the connection has ended, with all of its tasks.
    func ended()
}

/// Receives metrics of connections. Many connections call it concurrently, so each call must return at once.
package protocol RealmConnectionObserver: Sendable {
    /// Reports a change of the number of sessions with a file. A negative number means fewer.
    func sessions(_ change: Int)
    /// Reports one message of the client.
    func received(bytes: Int)
    /// Reports one message to the client.
    func sent(bytes: Int)
    /// Reports an error sent to the client, compensating writes included.
    func failed(_ code: RealmErrorCode)
    /// Reports an upload that took effect.
    /// - Parameter rejected: The number of its updates that the client must undo.
    func integrated(rejected: Int)
    /// Reports a message that was withheld because it would have stopped the client.
    func defect()
    /// Reports that a client could not apply a message.
    func clientFailed()
}

/// An observer that ignores every event.
package struct NoRealmConnectionObserver: RealmConnectionObserver {
    package init() {}
    package func sessions(_ change: Int) {}
    package func received(bytes: Int) {}
    package func sent(bytes: Int) {}
    package func failed(_ code: RealmErrorCode) {}
    package func integrated(rejected: Int) {}
    package func defect() {}
    package func clientFailed() {}
}

/// The encoding of messages, without the type of its compression.
package protocol RealmMessageCoding: Sendable {
    /// Returns the bytes that the decoding of a client's message handles, as far as its header tells.
    func workBytes(ofClient bytes: [UInt8]) -> Int
    func decodeClient(_ bytes: [UInt8]) throws(SluiceError) -> RealmClientMessage
    func encode(_ message: RealmServerMessage) throws(SluiceError) -> [UInt8]
}

extension RealmCodec: RealmMessageCoding {}
