/// Receives the notification and the Realm.
public typealias NotificationBlock = (_ notification: Realm.Notification, _ realm: Realm) -> Void

extension Realm {
    /// A notification for observers of a Realm.
    public enum Notification: String, Sendable {
        /// The Realm has advanced, by a write of its own or of others.
        case didChange = "RLMRealmDidChangeNotification"
        /// A newer snapshot exists and the Realm has `autorefresh` off.
        case refreshRequired = "RLMRealmRefreshRequiredNotification"
    }

    /// Calls the block on the Realm's thread, queue or actor: within `commitWrite` and `refresh`, and when the Realm advances by itself.
    /// - Returns: A token. The notifications end when it is invalidated or released.
    public func observe(_ block: @escaping NotificationBlock) -> NotificationToken {
        core.observations.requireObservable()
        let token = NotificationToken()
        // Weak because: the hub belongs to the Realm, which an observer must not keep open.
        core.observations.observeRealm(token) { [weak core] notification in
            if let core { block(notification, Realm(core: core)) }
        }
        core.removeObservers(whenEnded: token)
        return token
    }

    /// `true` if the Realm advances to newer snapshots by itself. Default `true`.
    /// Only Realms of the main thread, a queue or an actor can do so. Setting it to `true` on a frozen Realm traps.
    public var autorefresh: Bool {
        get { core.reading.autorefresh }
        nonmutating set {
            if core.isFrozen && newValue { throwRealmException("Auto-refresh cannot be enabled for frozen Realms.") }
            core.scheduler.verify()
            core.reading.autorefresh = newValue
        }
    }
}
