import SluiceCore
import SluiceReplica

/// An object that left the device at the server's request.
public struct LeftObject: Hashable {
    public enum Reason: Hashable, Sendable {
        /// The object was deleted, by any client or by SQL.
        case deleted
        /// The object no longer matches the subscriptions: it changed, or they did.
        case leftQuery
        /// The user may no longer read the object.
        case lostPermission
        /// The object was missing from the server's data after a disconnection or a change of rules; the exact reason is unknown.
        /// Objects that changed subscriptions no longer match have `leftQuery`.
        case leftView
    }

    public let className: String
    public let primaryKey: AnyRealmValue
    /// The reason, as reported by the server.
    public let reason: Reason
}

extension Realm {
    /// Calls the block on the Realm's thread, queue or actor after the server has removed objects from the device.
    ///
    /// It reports at most 20,000 objects per commit. They are no longer in the Realm at that time.
    /// Deletions by the app and reverted writes are not reported. Traps on Realms that cannot deliver notifications.
    /// - Returns: A token. The notifications end when it is invalidated or released.
    public func observeLeaving(_ block: @escaping ([LeftObject]) -> Void) -> NotificationToken {
        core.scheduler.verify()
        guard core.scheduler.canDeliver else {
            throwRealmException("Only Realms of the main thread, a queue or an actor can tell what leaves.")
        }
        let token = NotificationToken()
        let (replica, scheduler) = (core.replica, core.scheduler)
        let confined = Confined((block: block, token: token.weakly))
        let observer = replica.observeLeaving { objects in
            scheduler.enqueue {
                guard confined.content.token.content?.isValid == true else { return }
                confined.content.block(objects.map { LeftObject($0) })
            }
        }
        token.whenEnded { replica.removeObserver(observer) }
        return token
    }
}

extension LeftObject {
    fileprivate init(_ left: SluiceReplica.LeftObject) {
        className = left.object.type
        primaryKey = AnyRealmValue(scalar: left.object.key)
        reason =
            switch left.reason {
            case .deleted: .deleted
            case .leftQuery: .leftQuery
            case .lostPermission: .lostPermission
            case .leftView: .leftView
            }
    }
}

extension NotificationToken {
    fileprivate var weakly: WeakConfined<NotificationToken> { WeakConfined(self) }
}
