public import Foundation
import SluiceCore
import SluiceReplica

/// A position in the server's commit order. Positions of one server are comparable.
public struct SyncPosition: Hashable, Comparable, Sendable, CustomStringConvertible {
    let lsn: LSN

    public static func < (lhs: SyncPosition, rhs: SyncPosition) -> Bool { lhs.lsn < rhs.lsn }
    /// The position in PostgreSQL's `pg_lsn` notation.
    public var description: String { "\(lsn)" }
}

extension Realm {
    /// Waits until the Realm has all objects that match the newest subscriptions and that the server had at the time of the call.
    /// Traps if the Realm is not synced.
    /// - Parameter timeout: The longest wait in seconds. If nil, the wait is unbounded.
    /// - Returns: The position up to which the Realm is complete.
    /// - Throws: `Realm.Error.subscriptionFailed` if the server rejects the subscriptions; `ETIMEDOUT`; the error that ended the session.
    @discardableResult
    public func waitUntilSynced(timeout: TimeInterval? = nil, _isolation: isolated (any Actor)? = #isolation) async throws -> SyncPosition {
        guard let session = core.file.session else { throwRealmException("This Realm was not configured with flexible sync") }
        let version = try asRealmError { try core.file.replica.currentSubscriptionSet() }.version
        let file = core.file
        // The set first: the download barrier then includes its objects.
        try await session.events.unlessEnded(seconds: timeout) {
            try await file.waitForSubscriptionSet(version)
            try await session.wait(for: .download)
        }
        let applied = try await file.replica.appliedPosition()
        core.observations.refreshBeforeNotifying()
        return SyncPosition(lsn: applied.lsn)
    }
}
