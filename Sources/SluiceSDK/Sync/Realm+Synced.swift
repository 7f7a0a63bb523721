public import Foundation
import SluiceCore
import SluiceReplica

/// A place in the server's order of commits. Two of one server can be compared.
public struct SyncPosition: Hashable, Comparable, Sendable, CustomStringConvertible {
    let lsn: LSN

    public static func < (lhs: SyncPosition, rhs: SyncPosition) -> Bool { lhs.lsn < rhs.lsn }
    /// PostgreSQL's form of it, as `pg_lsn`.
    public var description: String { "\(lsn)" }
}

extension Realm {
    /// Waits until everything that matches the newest subscriptions and that the server had when it was asked is here.
    /// - Parameter timeout: seconds to wait at most; nil: as long as it takes.
    /// - Returns: up to where the Realm has everything.
    /// - Throws: `Realm.Error.subscriptionFailed` when the server refuses the subscriptions; `ETIMEDOUT`; the error that ended the session.
    @discardableResult
    public func waitUntilSynced(timeout: TimeInterval? = nil, _isolation: isolated (any Actor)? = #isolation) async throws -> SyncPosition {
        guard let session = core.file.session else { throwRealmException("This Realm was not configured with flexible sync") }
        let version = try asRealmError { try core.file.replica.currentSubscriptionSet() }.version
        let file = core.file
        try await session.events.unlessEnded(seconds: timeout) {
            try await file.waitForSubscriptionSet(version)
            try await session.wait(for: .download)
        }
        let applied = try await file.replica.appliedPosition()
        core.moveOn()
        return SyncPosition(lsn: applied.lsn)
    }
}
