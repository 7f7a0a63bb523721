public import Foundation
import SluiceCore
import SluiceQuery
import SluiceReplica

/// The API of query-based sync on top of the subscription set, for apps that were written with it.
///
/// As in query-based sync, a subscription includes the linked objects.
/// Here links are followed up to four deep, and no class occurs twice on one path.
public enum QueryBasedSync {
    /// The state of a subscription.
    public enum SubscriptionState: Equatable, Sendable {
        /// Not stored yet. Never returned, since subscribing stores the subscription.
        case creating
        /// Stored, but not answered by the server.
        case pending
        case complete
        /// Removed or expired.
        case invalidated
        case error(any Error)

        public static func == (lhs: SubscriptionState, rhs: SubscriptionState) -> Bool {
            switch (lhs, rhs) {
            case (.creating, .creating), (.pending, .pending), (.complete, .complete), (.invalidated, .invalidated): true
            case (.error(let l), .error(let r)): "\(l)" == "\(r)"
            default: false
            }
        }
    }

    /// Options of an observation.
    public struct ObservingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        /// Reports the state at the start of the observation too.
        public static let initial = ObservingOptions(rawValue: 4)
        public static let new = ObservingOptions(rawValue: 1)
    }

    /// A live subscription. It is confined to its Realm's thread, queue or actor.
    public final class Subscription {
        let core: RealmCore
        /// The subscription as it was stored; nil if storing failed.
        private let stored: StoredSubscription?
        private let failure: Realm.Error?

        init(core: RealmCore, stored: StoredSubscription?, failure: Realm.Error? = nil) {
            self.core = core
            self.stored = stored
            self.failure = failure
        }

        private var current: StoredSubscription? {
            guard let stored, let set = try? core.file.replica.currentSubscriptionSet() else { return stored }
            return set.subscriptions.first { $0.id == stored.id } ?? stored
        }

        public var name: String? { stored?.name }
        /// The query text.
        public var query: String? { current?.query }
        public var createdAt: Date? { stored.map { Date($0.created) } }
        public var updatedAt: Date? { current.map { Date($0.updated) } }
        public var expiresAt: Date? { current?.expires.map { Date($0) } }
        /// The seconds until it expires; nil if it does not expire.
        public var timeToLive: TimeInterval? { current?.options.timeToLive.map { Double($0) / 1_000 } }

        /// The current state. Reading `complete` advances the Realm, so that it shows the subscription's objects.
        /// For a Realm of an actor other than the main actor it is `pending` until a turn of the actor has advanced the Realm.
        public var state: SubscriptionState {
            let state = storedState
            guard state == .complete, let set = try? core.file.replica.completeSubscriptionSet() else { return state }
            core.observations.showNewest(completeSet: set.version)
            return core.observations.isBehind(completeSet: set.version) ? .pending : .complete
        }

        /// The state for a caller on the Realm's scheduler, where the Realm can advance.
        fileprivate var stateHere: SubscriptionState {
            let state = storedState
            if state == .complete { core.observations.showNewest(core.scheduler.isolation) }
            return state
        }

        private var storedState: SubscriptionState {
            guard let stored else { return .error(failure ?? Realm.Error(.fail, "The subscription was not stored.")) }
            do throws(SluiceError) {
                return try Subscription.state(of: stored.id, in: core.file.replica)
            } catch {
                return .error(Realm.Error(error))
            }
        }

        private static func state(of id: UInt64, in replica: Replica) throws(SluiceError) -> SubscriptionState {
            let latest = try replica.currentSubscriptionSet()
            guard let now = latest.subscriptions.first(where: { $0.id == id }) else { return .invalidated }
            // The newest set may be pending because of another subscription. This one is complete if the complete set has the same request.
            let before = try replica.completeSubscriptionSet().subscriptions.first { $0.id == id }
            if let before, before.asks(now.type, now.query, now.options) { return .complete }
            switch latest.state {
            case .complete: return .complete
            case .error(_, let message): return .error(Realm.Error(.subscriptionFailed, message))
            case .pending, .bootstrapping, .superseded: return .pending
            }
        }

        /// Calls the block on the Realm's thread, queue or actor when the state changes. Traps on other Realms.
        public func observe(
            _ keyPath: KeyPath<Subscription, SubscriptionState>, options: ObservingOptions = [],
            _ block: @escaping (SubscriptionState) -> Void
        ) -> NotificationToken {
            core.scheduler.verify()
            guard keyPath == \.state else { throwRealmException("Only the state of a subscription can be observed.") }
            guard core.scheduler.canDeliver else {
                throwRealmException("Only Realms of the main thread, a queue or an actor can tell a subscription's state.")
            }
            let token = NotificationToken()
            let watch = Confined(StateWatch(subscription: self, token: token, block: block))
            let (replica, scheduler) = (core.file.replica, core.scheduler)
            // Observe before the first read: an answer in between would otherwise be missed.
            let observer = replica.observeSubscriptions { scheduler.enqueue { watch.content.notify() } }
            if options.contains(.initial) { watch.content.notify() } else { watch.content.recordState() }
            token.whenEnded { replica.removeObserver(observer) }
            return token
        }

        /// Removes the subscription. Once the server has answered, its objects leave the device unless another subscription covers them.
        /// Errors are ignored; `state` shows the result.
        public func unsubscribe() {
            guard let stored else { return }
            _ = try? core.subscriptions.change { set in
                guard set.committed.subscriptions.contains(where: { $0.id == stored.id }) else { return false }
                set.erase { $0.id == stored.id }
                return true
            }
        }
    }

    /// One observer and the last state that it received.
    private final class StateWatch {
        let subscription: Subscription
        let block: (SubscriptionState) -> Void
        weak var token: NotificationToken?
        var last: SubscriptionState?

        init(subscription: Subscription, token: NotificationToken, block: @escaping (SubscriptionState) -> Void) {
            self.subscription = subscription
            self.token = token
            self.block = block
        }

        func recordState() { last = subscription.stateHere }

        func notify() {
            let state = subscription.stateHere
            if state == last || token?.isValid != true { return }
            last = state
            block(state)
        }
    }
}

extension Results where Element: Object {
    /// Subscribes to the query as query-based sync did. Returns at once; errors appear in the subscription's `state`.
    /// - Parameters:
    ///   - named: The name. If nil, class, query, limit, order and DISTINCTs identify the subscription, so subscribing twice has no effect.
    ///     It has no default, since `subscribe()` without arguments is Flexible Sync's method.
    ///   - limit: The most objects, in the order of the sorted, distinct results and then of primary keys.
    ///     0 or nil means all objects of the query, also for distinct results. Linked objects do not count.
    ///     The order may follow up to four links to one object each.
    ///   - update: Replaces the query and the time to live of an existing subscription.
    ///     If `false`, another query, limit, order or DISTINCT under its name is an error.
    ///   - timeToLive: The seconds until it expires, restarted by each `subscribe`. If nil, 0 or less, it does not expire.
    ///   - includingLinkingObjects: Key paths that end in `LinkingObjects`. Their objects are included, together with the objects
    ///     that those link to. Other paths trap.
    @discardableResult
    public func subscribe(
        named: String?, limit: Int? = nil, update: Bool = false, timeToLive: TimeInterval? = nil,
        includingLinkingObjects: [String] = []
    ) -> QueryBasedSync.Subscription {
        let core = storage.core
        let schema = ModelSchema.of(Element.self)
        let options = SyncSubscriptionOptions(
            name: named, overwriteExisting: update, timeToLive: timeToLive, limit: limit ?? 0,
            includes: schema.linkPaths + includingLinkingObjects.flatMap { schema.inversePaths($0) })
        let set = core.subscriptions
        let (type, text) = (Element.className(), subscriptionText)
        do {
            let stored = try stored(options)
            var index = 0
            // On the writer, so that concurrent calls with one name see each other's result.
            try set.change { set in
                if let refusal = set.refusal(of: options, stored, type: type, text: text) { throw refusal }
                index = set.put(name: named, stored, keepsTime: !update, type: type, text: text)
                return true
            }
            return QueryBasedSync.Subscription(core: core, stored: set.storage.committed.subscriptions[index])
        } catch {
            return QueryBasedSync.Subscription(core: core, stored: nil, failure: error as? Realm.Error)
        }
    }
}

extension Realm {
    /// All subscriptions in the form of query-based sync.
    public func legacySubscriptions() -> [QueryBasedSync.Subscription] {
        subscriptions.storage.committed.subscriptions.map { QueryBasedSync.Subscription(core: core, stored: $0) }
    }

    /// The subscription with a name in the form of query-based sync; nil if there is none.
    public func legacySubscription(named name: String) -> QueryBasedSync.Subscription? {
        subscriptions.storage.committed.subscriptions.first { $0.name == name }
            .map { QueryBasedSync.Subscription(core: core, stored: $0) }
    }
}

extension ModelSchema {
    /// The greatest number of links that are followed.
    private static let linkDepth = 4

    /// The longest link paths from this class, without a repeated class.
    fileprivate var linkPaths: [String] { linkPaths(passed: [name], depth: ModelSchema.linkDepth) }

    /// The longest link paths after a path of inverse links. Traps if the path does not end in inverse links.
    fileprivate func inversePaths(_ path: String) -> [String] {
        var (schema, passed, isInverse) = (self, Set([name]), false)
        for name in path.split(separator: ".", omittingEmptySubsequences: false) {
            guard let slot = schema.slot(of: String(name)), let target = schema.properties[slot].kind.target as? Object.Type else {
                throwRealmException("Invalid key path '\(path)': '\(schema.name).\(name)' is no link.")
            }
            isInverse = schema.properties[slot].kind.isComputed
            schema = ModelSchema.of(target)
            passed.insert(schema.name)
        }
        guard isInverse else { throwRealmException("Invalid key path '\(path)': it does not end in LinkingObjects.") }
        let further = schema.linkPaths(passed: passed, depth: ModelSchema.linkDepth)
        return further.isEmpty ? [path] : further.map { "\(path).\($0)" }
    }

    private func linkPaths(passed: Set<String>, depth: Int) -> [String] {
        guard depth > 0 else { return [] }
        return properties.prefix(storedCount).flatMap { property -> [String] in
            guard case .link = property.kind.type, property.kind.collection != .dictionary, let target = property.kind.target else {
                return []
            }
            let next = ModelSchema.of(target)
            // A repeated class ends the path; the link to it is still included.
            guard !passed.contains(next.name) else { return [property.name] }
            let further = next.linkPaths(passed: passed.union([next.name]), depth: depth - 1)
            return further.isEmpty ? [property.name] : further.map { "\(property.name).\($0)" }
        }
    }
}
