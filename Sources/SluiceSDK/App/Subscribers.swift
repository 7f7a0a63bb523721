import Synchronization

/// A subscription to changes of an app or a user. It ends with `unsubscribe()` or when the token is released.
public final class AppSubscriptionToken: Sendable {
    private let ending: Mutex<(@Sendable () -> Void)?>

    init(_ ending: @escaping @Sendable () -> Void) { self.ending = Mutex(ending) }
    deinit { unsubscribe() }

    /// Ends the subscription. A notification in progress on another thread may still arrive.
    public func unsubscribe() { ending.withLock { $0.take() }?() }
}

/// RealmSwift's name for a user's token.
public typealias UserSubscriptionToken = AppSubscriptionToken

/// The subscribers to the changes of one subject.
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

    /// Calls the subscribers in the order of their subscription, without holding the lock: they may subscribe, log in and log out.
    func notify(_ subject: Subject) {
        for (_, block) in state.withLock({ $0.blocks }).sorted(by: { $0.key < $1.key }) { block(subject) }
    }
}

extension App {
    /// Subscribes to logins, logouts, switches and removals of users.
    /// The block runs synchronously on the thread of the change and must not block.
    @preconcurrency
    public func subscribe(_ block: @Sendable @escaping (App) -> Void) -> AppSubscriptionToken { shared.changes.add(block) }
}

extension User {
    /// Subscribes to the user's logins, logouts, removal and new tokens, which carry the custom data.
    /// The block runs synchronously on the thread of the change and must not block.
    @preconcurrency
    public func subscribe(_ block: @Sendable @escaping (User) -> Void) -> UserSubscriptionToken { changes.add(block) }
}

/// Receives a user, or the error that prevented the login.
public typealias UserCompletionBlock = @Sendable (User?, (any Error)?) -> Void
