import Synchronization

/// Keeps news of an app or a user coming, until `unsubscribe()` or until the token goes away.
public final class AppSubscriptionToken: Sendable {
    private let ending: Mutex<(@Sendable () -> Void)?>

    init(_ ending: @escaping @Sendable () -> Void) { self.ending = Mutex(ending) }
    deinit { unsubscribe() }

    /// Ends the news. What is under way on another thread may still arrive.
    public func unsubscribe() { ending.withLock { $0.take() }?() }
}

/// As apps written for RealmSwift have it.
public typealias UserSubscriptionToken = AppSubscriptionToken

/// Those who want to hear of the changes of one thing.
final class Subscribers<Subject>: Sendable {
    private struct State {
        var next: UInt64 = 1
        var blocks: [UInt64: @Sendable (Subject) -> Void] = [:]
    }

    private let state = Mutex(State())

    func add(_ block: @escaping @Sendable (Subject) -> Void) -> AppSubscriptionToken {
        let number = state.withLock { state in
            defer { state.next += 1 }
            state.blocks[state.next] = block
            return state.next
        }
        return AppSubscriptionToken { [weak self] in _ = self?.state.withLock { $0.blocks.removeValue(forKey: number) } }
    }

    /// Calls them in the order in which they came, without a lock: they may subscribe, log in and log out.
    func tell(_ subject: Subject) {
        for (_, block) in state.withLock({ $0.blocks }).sorted(by: { $0.key < $1.key }) { block(subject) }
    }
}

extension App {
    /// Calls the block when a user has logged in or out, been switched to, or been removed: there, on whatever thread it happened, so it
    /// must not block.
    @preconcurrency
    public func subscribe(_ block: @Sendable @escaping (App) -> Void) -> AppSubscriptionToken { shared.changes.add(block) }
}

extension User {
    /// Calls the block when the user has logged in or out, been removed, or has new tokens, and with them custom data: there, on whatever
    /// thread it happened, so it must not block.
    @preconcurrency
    public func subscribe(_ block: @Sendable @escaping (User) -> Void) -> UserSubscriptionToken { changes.add(block) }
}

/// Takes a user, or why there is none.
public typealias UserCompletionBlock = @Sendable (User?, (any Error)?) -> Void
