package import SluiceCore
import SluicePorts
import Synchronization

/// The newest session of each client replica on this gateway.
/// A client may reconnect before the gateway detects that its previous connection is dead. Until then the dead session would hold its
/// leases for no reader.
package final class ClientSessions: Sendable {
    private struct Entry {
        weak var session: Session?
        /// The session number of the replica.
        var number: UInt64
    }

    private let newest = Mutex<[ClientID: Entry]>([:])

    package init() {}

    package var count: Int { newest.withLock(\.count) }

    /// The client replicas with a session, of both protocols, in no order.
    package var connected: [ClientID] { newest.withLock { Array($0.keys) } }

    /// Registers a session.
    /// - Returns: the session to end: the previous one, or `session` itself if it is the older of two that began concurrently.
    func begin(_ session: Session, of file: ClientFile) -> Session? {
        newest.withLock { newest in
            let other = newest[file.id]
            // Two sessions of a replica may register out of order; the higher number wins.
            if let other, let newer = other.session, newer !== session, other.number > file.session { return session }
            newest[file.id] = Entry(session: session, number: file.session)
            return other?.session === session ? nil : other?.session
        }
    }

    /// Removes an ended session unless a newer one of its replica has replaced it.
    func end(_ session: Session, of file: ClientFile) {
        newest.withLock { newest in
            if newest[file.id]?.session === session { newest[file.id] = nil }
        }
    }
}

extension Session {
    /// Ends the previous session of the same client replica on this gateway, which no client reads any more.
    func replaceOlder(of file: ClientFile) async {
        await services.files.begin(self, of: file)?.end(
            .all, SluiceError(.resync, "Client replica \(file.id) has begun another session."))
    }
}
