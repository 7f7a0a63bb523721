/// Called with what happened and the Realm.
public typealias NotificationBlock = (_ notification: Realm.Notification, _ realm: Realm) -> Void

extension Realm {
    /// What the observer of a Realm hears.
    public enum Notification: String, Sendable {
        /// The Realm has moved on, by a write of its own or of others.
        case didChange = "RLMRealmDidChangeNotification"
        /// There is a newer state that a Realm without `autorefresh` does not move on to by itself.
        case refreshRequired = "RLMRealmRefreshRequiredNotification"
    }

    /// Calls the block where the Realm lives: within `commitWrite` and `refresh`, and when the Realm moves on by itself.
    /// - Returns: the token that keeps the notifications coming.
    public func observe(_ block: @escaping NotificationBlock) -> NotificationToken {
        core.requireObservable()
        let token = NotificationToken()
        core.realmObservers.append(.init(token: WeakConfined(token), block: block))
        let (scheduler, weak) = (core.scheduler, WeakConfined(core))
        token.whenEnded { scheduler.enqueue { weak.content?.forgetEnded() } }
        return token
    }

    /// Whether the Realm moves on to newer states by itself. True at first where it can: on the main thread, a queue, an actor.
    public var autorefresh: Bool {
        get { core.autorefresh }
        nonmutating set {
            if core.isFrozen && newValue { throwRealmException("Auto-refresh cannot be enabled for frozen Realms.") }
            core.scheduler.verify()
            core.autorefresh = newValue
        }
    }
}
