import Logging
import SluiceCore
import SluicePipeline
import SluicePostgres
import Synchronization

/// Has sessions notice what happens to their users, on whichever gateway it was done, or by SQL.
///
/// It looks when this gateway has changed a user, and every second.
final class UserWatch: Sendable {
    private struct Looks {
        var begun = 0
        var ended = 0
    }

    private let store: UserChangeStore
    private let looks = Mutex(Looks())
    /// Fired when this gateway has changed a user.
    private let changed: Signal
    /// Fired when a look has ended.
    private let looked: Signal
    /// Those up to here were there before any session of this gateway.
    private let first: Int64
    private let environment: any Environment
    private let logger: Logger

    private static let pauseMilliseconds = 1_000
    /// How long whoever changed a user waits for the sessions to know it.
    private static let patienceMilliseconds = 2_000
    private static let pruning: UInt64 = 60_000_000_000
    /// After so long without PostgreSQL some changes may be kept no more.
    private static let memory: UInt64 = 50 * 60_000_000_000

    init(_ store: UserChangeStore, environment: any Environment, logger: Logger) async throws {
        self.store = store
        changed = Signal(environment: environment)
        looked = Signal(environment: environment)
        self.environment = environment
        self.logger = logger
        first = try await store.last()
    }

    /// Returns when this gateway's sessions have been told what has happened until now, or after two seconds.
    func look() async {
        let wanted = looks.withLock { $0.begun + 1 }
        let deadline = environment.monotonicNanoseconds() + UInt64(Self.patienceMilliseconds) * 1_000_000
        changed.fire()
        while !Task.isCancelled, environment.monotonicNanoseconds() < deadline {
            let seen = looked.count
            if looks.withLock({ $0.ended >= wanted }) { return }
            await looked.wait(after: seen, milliseconds: Self.patienceMilliseconds)
        }
    }

    /// - Parameters:
    ///   - tell: called with each change, in order.
    ///   - lost: called when it cannot be said any more what has changed.
    func run(tell: (UserChange) async -> Void, lost: () async -> Void) async throws {
        var last = first
        var (heard, pruned) = (environment.monotonicNanoseconds(), UInt64(0))
        while !Task.isCancelled {
            let seen = changed.count
            looks.withLock { $0.begun += 1 }
            do {
                let now = environment.monotonicNanoseconds()
                let changes = try await store.changes(after: last)
                if now - heard > Self.memory { await lost() }
                heard = now
                for change in changes { await tell(change) }
                last = changes.last?.number ?? last
                if changes.count == UserChangeStore.limit { continue }
                looks.withLock { $0.ended = $0.begun }
                looked.fire()
                if now - pruned > Self.pruning {
                    try await store.prune()
                    pruned = now
                }
            } catch let error as SluiceError {
                logger.debug("Changes of users could not be asked for.", metadata: ["error": "\(error)"])
            }
            await changed.wait(after: seen, milliseconds: Self.pauseMilliseconds)
        }
    }
}

extension UserChange {
    /// Why a session ends; nil: it goes on with the user's new data.
    var error: SluiceError? {
        switch kind {
        case .data: nil
        case .disabled: SluiceError(.userDisabled, "User \(user) was disabled.")
        case .deleted: SluiceError(.userDisabled, "User \(user) was deleted.")
        case .revoked: SluiceError(.invalidSession, "The sessions of user \(user) were revoked.")
        }
    }
}
