import SluiceCore
import SluiceReplica

/// An object that has left the device because the server said so.
public struct LeftObject: Hashable {
    public enum Reason: Hashable, Sendable {
        /// It was deleted, by whomever.
        case deleted
        /// It does not match the subscriptions any more: it has changed, or they have.
        case leftQuery
        /// The user may not read it any more.
        case lostPermission
        /// It was not among what the server sent after a time without a connection, or under other rules, and it is not known which of
        /// the others it is. What changed subscriptions do not match any more is `leftQuery`.
        case leftView
    }

    public let className: String
    public let primaryKey: AnyRealmValue
    public let reason: Reason
}

extension Realm {
    /// Calls the block where the Realm lives when the server has taken objects off the device, with the reason; up to 20,000 of one change.
    /// What the app deletes itself is not told, nor what goes because the server has refused it. The objects are gone by then.
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
