import SluiceCore
import Synchronization

/// The sessions of this gateway by their client files, of each the newest. A client comes back before the gateway has noticed that the
/// connection before is dead: what that one holds would be delivered to nobody until then.
package final class FileSessions: Sendable {
    private struct Entry {
        weak var session: Session?
        /// Which session of the file it is.
        var number: UInt64
    }

    private let newest = Mutex<[ClientID: Entry]>([:])

    package init() {}

    package var count: Int { newest.withLock(\.count) }

    /// - Returns: the session that is over because of another of its file: the one before, or this one when it is the older of two that
    ///   began at once.
    func begin(_ session: Session, of file: ClientFile) -> Session? {
        newest.withLock { newest in
            let other = newest[file.id]
            if let other, let newer = other.session, newer !== session, other.number > file.session { return session }
            newest[file.id] = Entry(session: session, number: file.session)
            return other?.session === session ? nil : other?.session
        }
    }

    /// Forgets a session that is over, unless a newer one of its file has taken its place.
    func end(_ session: Session, of file: ClientFile) {
        newest.withLock { newest in
            if newest[file.id]?.session === session { newest[file.id] = nil }
        }
    }
}

extension Session {
    /// Ends the session before of the same client file, if this gateway has it: nobody reads on there.
    func replaceOlder(of file: ClientFile) async {
        await services.files.begin(self, of: file)?.end(
            user: nil, SluiceError(.resync, "Client file \(file.id) has begun another session."))
    }
}
