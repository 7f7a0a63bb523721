public import Foundation
import SluiceCore
import SluiceQuery
import SluiceReplica

/// The subscriptions of query-based sync, for apps that were written with it: a facade on the subscription set.
///
/// As in query-based sync, a subscription brings along what its objects link to. Here links are followed up to four deep, and no class
/// twice on one path.
public enum QueryBasedSync {
    /// What became of a subscription.
    public enum SubscriptionState: Equatable, Sendable {
        /// Not stored yet: no subscription is ever seen so, since storing is part of subscribing.
        case creating
        /// Stored, and not answered by the server.
        case pending
        case complete
        /// Somebody has removed it, or its time is over.
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

    /// What an observer wants to hear.
    public struct ObservingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        /// The state at the beginning too.
        public static let initial = ObservingOptions(rawValue: 4)
        public static let new = ObservingOptions(rawValue: 1)
    }

    /// One subscription, live. It belongs to where its Realm does.
    public final class Subscription {
        let core: RealmCore
        /// As it was stored; nil when it could not be.
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
        /// The query's text.
        public var query: String? { current?.query }
        public var createdAt: Date? { stored.map { Date($0.created) } }
        public var updatedAt: Date? { current.map { Date($0.updated) } }
        public var expiresAt: Date? { current?.expires.map { Date($0) } }
        /// Seconds; nil: it stays.
        public var timeToLive: TimeInterval? { current?.options.timeToLive.map { Double($0) / 1_000 } }

        /// What became of it, as of now.
        public var state: SubscriptionState {
            guard let stored else { return .error(failure ?? Realm.Error(.fail, "The subscription was not stored.")) }
            do throws(SluiceError) {
                let state = try Subscription.state(of: stored.id, in: core.file.replica)
                if state == .complete { core.showNewest() }
                return state
            } catch {
                return .error(Realm.Error(error))
            }
        }

        private static func state(of id: UInt64, in replica: Replica) throws(SluiceError) -> SubscriptionState {
            let latest = try replica.currentSubscriptionSet()
            guard let now = latest.subscriptions.first(where: { $0.id == id }) else { return .invalidated }
            let before = try replica.completeSubscriptionSet().subscriptions.first { $0.id == id }
            if let before, before.asks(now.type, now.query, now.options) { return .complete }
            switch latest.state {
            case .complete: return .complete
            case .error(_, let message): return .error(Realm.Error(.subscriptionFailed, message))
            case .pending, .bootstrapping, .superseded: return .pending
            }
        }

        /// Calls the block where the Realm lives when the state has changed. Only a Realm of the main thread, a queue or an actor can.
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
            // Before the first look, or an answer that comes between them would never be told of.
            let observer = replica.observeSubscriptions { scheduler.enqueue { watch.content.tell() } }
            if options.contains(.initial) { watch.content.tell() } else { watch.content.look() }
            token.whenEnded { replica.removeObserver(observer) }
            return token
        }

        /// Removes it. Its objects leave the device when the server has answered, unless another subscription covers them.
        public func unsubscribe() {
            guard let stored else { return }
            _ = try? core.subscriptions.change { set in
                guard set.committed.subscriptions.contains(where: { $0.id == stored.id }) else { return false }
                set.erase { $0.id == stored.id }
                return true
            }
        }
    }

    /// One observer and what it was told last.
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

        func look() { last = subscription.state }

        func tell() {
            let state = subscription.state
            if state == last || token?.isValid != true { return }
            last = state
            block(state)
        }
    }
}

extension Results where Element: Object {
    /// Subscribes to the query as query-based sync did. Returns at once; see `state` for what becomes of it.
    /// - Parameters:
    ///   - named: nil: it is known by class and query with limit and order, so that subscribing twice is one subscription. It has to be given: without
    ///     arguments `subscribe` is Flexible Sync's, also where Swift prefers what is not async, as at the top level of a program.
    ///   - limit: no more than the first so many of the sorted, distinct results; what is equal in order counts by primary key. 0 or nil: all,
    ///     also of distinct results. What links lead to does not count. The order may go through links to one object each, four deep.
    ///   - update: gives an existing subscription the query and the time to live. Without it another query, limit or order under its name is
    ///     an error.
    ///   - timeToLive: seconds; nil, 0 or less: it stays. It begins again with each `subscribe`.
    ///   - includingLinkingObjects: key paths that end in `LinkingObjects`, whose objects come along too, with what they link to in their
    ///     turn. Any other path is misuse, which ends the program.
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
    /// All subscriptions, in query-based sync's form.
    public func legacySubscriptions() -> [QueryBasedSync.Subscription] {
        subscriptions.storage.committed.subscriptions.map { QueryBasedSync.Subscription(core: core, stored: $0) }
    }

    /// The subscription with a name, in query-based sync's form.
    public func legacySubscription(named name: String) -> QueryBasedSync.Subscription? {
        subscriptions.storage.committed.subscriptions.first { $0.name == name }
            .map { QueryBasedSync.Subscription(core: core, stored: $0) }
    }
}

extension ModelSchema {
    /// How deep links are followed.
    private static let linkDepth = 4

    /// The longest paths of links that begin here, no class twice.
    fileprivate var linkPaths: [String] { linkPaths(passed: [name], depth: ModelSchema.linkDepth) }

    /// A path that has to end in inverse links, and on from its end the longest paths of links.
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
            guard !passed.contains(next.name) else { return [property.name] }
            let further = next.linkPaths(passed: passed.union([next.name]), depth: depth - 1)
            return further.isEmpty ? [property.name] : further.map { "\(property.name).\($0)" }
        }
    }
}
