import Crypto
package import SluiceCore
import SluiceValues
import Synchronization

/// The open logins to the console, in memory. They are bounded by `Limits.consoleSessions` and `Limits.consoleSessionSeconds`.
package final class ConsoleSessions: Sendable {
    private struct Session {
        /// The SHA-256 of the cookie's text.
        var hash: [UInt8]
        var identity: AdminIdentity
        /// The time of expiry, in milliseconds since 1970.
        var expires: Int64
    }

    private let environment: any Environment
    /// The sessions, oldest first.
    private let open = Mutex<[Session]>([])

    package init(environment: any Environment) { self.environment = environment }

    /// Opens a session. At the bound the oldest session ends.
    ///
    /// - Returns: The cookie's text.
    package func begin(_ identity: AdminIdentity) -> String {
        let cookie = SymmetricKey(size: .bits256).withUnsafeBytes { Hex.encode($0) }
        let expires = environment.wallMilliseconds() + Limits.consoleSessionSeconds * 1_000
        open.withLock { open in
            if open.count >= Limits.consoleSessions { open.removeFirst() }
            open.append(Session(hash: AdminToken.hash(of: cookie), identity: identity, expires: expires))
        }
        return cookie
    }

    package func identity(_ cookie: String) -> AdminIdentity? {
        let hash = AdminToken.hash(of: cookie)
        let now = environment.wallMilliseconds()
        return open.withLock { open in
            open.removeAll { $0.expires <= now }
            return open.first { $0.hash == hash }?.identity
        }
    }

    package func end(_ cookie: String) {
        let hash = AdminToken.hash(of: cookie)
        open.withLock { $0.removeAll { $0.hash == hash } }
    }
}
