package import SluiceCore
import Synchronization

/// The number of open sessions of each user on this gateway, of both protocols. Sessions within the process do not count.
///
/// One user's devices may share an account, so the bound is high. It keeps a stolen or anonymous account from taking all sessions.
package final class UserSessions: Sendable {
    private let most: Int
    private let counts = Mutex<[String: Int]>([:])

    /// - Parameter most: The maximum number of sessions of a user.
    package init(most: Int = Limits.userSessions) { self.most = most }

    /// Counts a session. The caller must call `end` for it.
    ///
    /// - Throws: `tooManyRequests` at the maximum. Nothing is counted then.
    package func begin(_ user: String) throws(SluiceError) {
        let isAdmitted = counts.withLock { counts in
            guard counts[user, default: 0] < most else { return false }
            counts[user, default: 0] += 1
            return true
        }
        guard isAdmitted else {
            throw SluiceError(
                .tooManyRequests, "User \(user) has \(most) sessions open on this gateway.",
                fix: "Close some, or let each person have an account.")
        }
    }

    package func end(_ user: String) {
        counts.withLock { counts in
            let count = counts[user, default: 1] - 1
            // No entry for zero: users would accumulate.
            counts[user] = count > 0 ? count : nil
        }
    }
}
