import Logging
import SluiceCore
import SluicePipeline
import SluicePorts
import SluicePostgres
import Synchronization

/// Applies changes of users to sessions, regardless of the gateway or SQL statement that made them.
///
/// It reads the changes every second, and at once when this gateway has changed a user. Sessions of disabled or deleted users end while
/// the changes are read. Users with new data wait in a queue, as plugins are notified of each and may be slow.
final class UserWatch: Sendable {
    private struct Looks {
        var begun = 0
        /// The last pass whose changes are read, and the last whose users are notified.
        var read = 0
        var ended = 0
        /// The users with new data, each once, in order.
        var waiting: [String] = []
        var known: Set<String> = []

        mutating func add(_ user: String) {
            if known.insert(user).inserted { waiting.append(user) }
        }

        /// - Returns: The waiting users, and the pass that ends once they are notified; nil if there is nothing to do.
        mutating func take() -> (users: [String], look: Int)? {
            if waiting.isEmpty, read == ended { return nil }
            defer { (waiting, known) = ([], []) }
            return (waiting, read)
        }
    }

    private let store: UserChangeStore
    private let looks = Mutex(Looks())
    /// Fired when changes have been read.
    private let arrived: AsyncEvent
    /// Fired when this gateway has changed a user.
    private let changed: AsyncEvent
    /// Fired when a pass has ended.
    private let looked: AsyncEvent
    /// The last change before any session of this gateway.
    private let first: Int64
    private let environment: any Environment
    private let logger: Logger

    /// The maximum numbers of users notified at once, and of waiting users. At the second bound no further changes are read.
    static let width = 4
    static let most = 100_000
    private static let pauseMilliseconds = 1_000
    /// The longest wait of `look`, in milliseconds.
    private static let patienceMilliseconds = 2_000
    private static let pruning: UInt64 = 60_000_000_000
    /// The time without PostgreSQL, in nanoseconds, after which changes may be pruned unread. The table keeps them for one hour.
    private static let memory: UInt64 = 50 * 60_000_000_000

    init(_ store: UserChangeStore, environment: any Environment, logger: Logger) async throws {
        self.store = store
        changed = AsyncEvent(environment: environment)
        looked = AsyncEvent(environment: environment)
        arrived = AsyncEvent(environment: environment)
        self.environment = environment
        self.logger = logger
        first = try await store.last()
    }

    /// Waits until this gateway's sessions have applied all changes made before the call, for at most two seconds.
    func look() async {
        // A pass that has begun may have read before the change, so the next one counts.
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
    ///   - read: Called with each change, in order.
    ///   - tell: Called later with each user whose data changed, for up to four users at once.
    ///   - lost: Called if changes may have been missed.
    func run(
        read: @escaping @Sendable (UserChange) async -> Void, tell: @escaping @Sendable (String) async -> Void,
        lost: @escaping @Sendable () async -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.readChanges(read, lost) }
            group.addTask { await self.tellChanged(tell) }
            defer { group.cancelAll() }
            _ = try await group.next()
        }
    }

    private func readChanges(_ read: (UserChange) async -> Void, _ lost: () async -> Void) async throws {
        var last = first
        var (heard, pruned) = (environment.monotonicNanoseconds(), UInt64(0))
        while !Task.isCancelled {
            // The count is taken before the read: a change made during the read causes another pass at once.
            let seen = changed.count
            let look = looks.withLock { looks in
                looks.begun += 1
                return looks.begun
            }
            do {
                let now = environment.monotonicNanoseconds()
                let changes = try await store.changes(after: last)
                // After the query: only then is PostgreSQL known to be reachable again.
                if now - heard > Self.memory { await lost() }
                heard = now
                for change in changes {
                    await read(change)
                    if change.kind == .data { looks.withLock { $0.add(change.user) } }
                }
                last = changes.last?.number ?? last
                // A full page may leave changes unread, so this pass is not complete yet.
                let isAll = changes.count < UserChangeStore.limit
                if isAll { looks.withLock { $0.read = look } }
                arrived.fire()
                guard isAll else {
                    await waitForRoom()
                    continue
                }
                if now - pruned > Self.pruning {
                    try await store.prune()
                    pruned = now
                }
            } catch let error as SluiceError {
                logger.debug("Changes of user accounts could not be read.", metadata: ["error": "\(error)"])
            }
            await changed.wait(after: seen, milliseconds: Self.pauseMilliseconds)
        }
    }

    private func waitForRoom() async {
        while !Task.isCancelled {
            let seen = looked.count
            if looks.withLock({ $0.waiting.count < Self.most }) { return }
            await looked.wait(after: seen, milliseconds: Self.pauseMilliseconds)
        }
    }

    private func tellChanged(_ tell: @escaping @Sendable (String) async -> Void) async {
        while !Task.isCancelled {
            let seen = arrived.count
            guard let (users, look) = looks.withLock({ $0.take() }) else {
                await arrived.wait(after: seen, milliseconds: Self.pauseMilliseconds)
                continue
            }
            await withTaskGroup(of: Void.self) { group in
                for (index, user) in users.enumerated() {
                    if index >= Self.width { _ = await group.next() }
                    group.addTask { if !Task.isCancelled { await tell(user) } }
                }
            }
            looks.withLock { $0.ended = look }
            looked.fire()
        }
    }
}

extension UserChange {
    /// The sessions that end, with their error; nil if they continue with new data.
    var end: (SessionScope, SluiceError)? {
        switch kind {
        case .data: nil
        case .disabled: (.user(user), SluiceError(.userDisabled, "User \(user) was disabled."))
        case .deleted: (.user(user), SluiceError(.userDisabled, "User \(user) was deleted."))
        case .loggedOut(let login): (.login(login, of: user), SluiceError(.invalidSession, "A login of user \(user) has ended."))
        }
    }
}
