public import Foundation
import SluiceCore
import SluiceReplica

/// What became of a subscription set.
public enum SyncSubscriptionState: Equatable {
    /// The server has accepted the set and everything that matched it then is here.
    case complete
    /// The server has refused the set; the one before stays active.
    case error(any Error)
    /// Not answered yet.
    case pending
    /// A newer set has taken its place.
    case superseded

    public static func == (lhs: SyncSubscriptionState, rhs: SyncSubscriptionState) -> Bool {
        switch (lhs, rhs) {
        case (.complete, .complete), (.pending, .pending), (.superseded, .superseded): true
        case (.error(let l), .error(let r)): l == r
        default: false
        }
    }
}

/// The subscriptions of a Realm: what the server sends. A handle on one version of the set, changed in `update` only.
public struct SyncSubscriptionSet: Sequence {
    /// What copies of the handle share.
    final class Storage {
        let file: OpenFile
        /// Whose handle it is. Weak because: a handle keeps the file open, not the Realm.
        private weak let core: RealmCore?
        /// The committed set that the handle shows.
        var committed: StoredSubscriptionSet
        /// Why no set could be read; none is written then.
        let unreadable: (any Error)?
        /// The set being built by `update`.
        var draft: [StoredSubscription]?

        init(file: OpenFile, core: RealmCore?, committed: StoredSubscriptionSet, unreadable: (any Error)? = nil) {
            self.file = file
            self.core = core
            self.committed = committed
            self.unreadable = unreadable
        }

        var writable: [StoredSubscription] {
            get {
                guard let draft else {
                    throwRealmException("Can only add, remove, or update subscriptions within a write subscription block.")
                }
                return draft
            }
            set { draft = newValue }
        }

        /// Has the Realm of the handle show what a complete set brought.
        /// - Parameter isolation: of the caller, where that is known.
        func showNewest(_ isolation: (any Actor)? = nil) { core?.showNewest(isolation) }

        /// The file has a new set.
        func stored(_ set: StoredSubscriptionSet) {
            committed = set
            file.session?.log(.info, .session, "The subscription set \(set.version) is committed, of \(set.subscriptions.count).")
        }

        /// What keeps a set from being changed now. A write transaction has the only writer, which would be waited for without end.
        func requireChangeable() throws {
            if draft != nil {
                throwRealmException("Cannot initiate a write transaction on subscription set that is already being updated.")
            }
            if core?.isWriting == true {
                throwRealmException("Cannot update subscriptions within a write transaction of their Realm: commit it first.")
            }
            if let unreadable { throw unreadable }
        }
    }

    let storage: Storage

    init(file: OpenFile, core: RealmCore? = nil) throws {
        storage = Storage(file: file, core: core, committed: try asRealmError { try file.replica.currentSubscriptionSet() })
    }

    /// What stands for a set that cannot be read: it is empty, says why, and cannot be changed.
    init(file: OpenFile, unreadable error: any Error) {
        let empty = StoredSubscriptionSet(version: 0, state: .pending, subscriptions: [])
        storage = Storage(file: file, core: nil, committed: empty, unreadable: error)
    }

    // MARK: Reading

    /// The number of subscriptions.
    public var count: Int { storage.committed.subscriptions.count }
    /// Whether there are none.
    public var isEmpty: Bool { count == 0 }

    /// What became of this version of the set, as of now. When it is complete, the Realm shows what has come,
    /// unless it has to be refreshed by the app, or is that of an actor other than the main one, which shows it in its turn.
    public var state: SyncSubscriptionState {
        if let error = storage.unreadable { return .error(error) }
        do throws(SluiceError) {
            switch try storage.file.replica.subscriptionSet(version: storage.committed.version).state {
            case .pending, .bootstrapping: return .pending
            case .complete:
                storage.showNewest()
                return .complete
            case .superseded: return .superseded
            case .error(_, let message): return .error(SyncError(.invalidFlexibleSyncSubscriptions, message))
            }
        } catch {
            return .error(Realm.Error(error))
        }
    }

    /// Why the server refused the set; nil when it did not.
    public var error: (any Error)? { if case .error(let error) = state { error } else { nil } }

    private func handle(_ subscription: StoredSubscription) -> SyncSubscription {
        SyncSubscription(stored: subscription, set: storage)
    }

    /// The subscription with a name.
    public func first(named name: String) -> SyncSubscription? {
        storage.committed.subscriptions.first { $0.name == name }.map { handle($0) }
    }

    /// The first subscription with a query.
    public func first<T: Object>(ofType type: T.Type, where query: (Query<T>) -> Query<Bool>) -> SyncSubscription? {
        first(T.className(), QuerySubscription<T>(query: query).text)
    }

    /// The first subscription with a query.
    public func first<T: Object>(ofType type: T.Type, where predicateFormat: String, _ args: Any...) -> SyncSubscription? {
        first(T.className(), subscriptionText(predicateFormat, args, .object(ModelSchema.of(T.self))))
    }

    /// The first subscription with a query.
    public func first<T: Object>(ofType type: T.Type, where predicate: NSPredicate) -> SyncSubscription? {
        first(T.className(), subscriptionText(predicate, .object(ModelSchema.of(T.self))))
    }

    private func first(_ type: String, _ text: String) -> SyncSubscription? {
        storage.committed.subscriptions.first { $0.type == type && $0.query == text }.map { handle($0) }
    }

    public subscript(position: Int) -> SyncSubscription? {
        guard storage.committed.subscriptions.indices.contains(position) else {
            throwRealmException("Index \(position) is out of bounds (must be less than \(count)).")
        }
        return handle(storage.committed.subscriptions[position])
    }

    /// The first subscription.
    public var first: SyncSubscription? { storage.committed.subscriptions.first.map { handle($0) } }
    /// The last subscription.
    public var last: SyncSubscription? { storage.committed.subscriptions.last.map { handle($0) } }

    public func makeIterator() -> AnyIterator<SyncSubscription> {
        AnyIterator(storage.committed.subscriptions.map { handle($0) }.makeIterator())
    }

    // MARK: Changing

    /// Runs the app's block and stores the set that it makes of the one that is shown as a new version.
    /// - Returns: the version.
    func commit(_ block: () -> Void) throws -> UInt64 {
        try storage.requireChangeable()
        storage.draft = storage.committed.subscriptions
        storage.eraseExpired()
        block()
        let draft = storage.writable
        storage.draft = nil
        if let stored = try asRealmError({ try storage.file.replica.changeSubscriptionSet { _ in draft } }) { storage.stored(stored) }
        return storage.committed.version
    }

    /// Changes the newest set, whichever is shown, in one transaction: of several who subscribe at once each finds what the others stored.
    /// - Parameter change: looks at the committed set and makes the draft; it must not wait. False: nothing is to be stored.
    /// - Returns: the version; nil when nothing was stored.
    @discardableResult
    func change(_ change: (Storage) throws -> Bool) throws -> UInt64? {
        try storage.requireChangeable()
        var failure: (any Error)?
        let stored = try asRealmError {
            try storage.file.replica.changeSubscriptionSet { newest in
                storage.committed = newest
                storage.draft = newest.subscriptions
                defer { storage.draft = nil }
                storage.eraseExpired()
                do {
                    return try change(storage) ? storage.draft : nil
                } catch {
                    failure = error
                    return nil
                }
            }
        }
        if let failure { throw failure }
        if let stored { storage.stored(stored) }
        return stored?.version
    }

    /// Changes the set in the block and sends it to the server.
    /// - Parameter onComplete: called on no particular thread when the server has answered: nil, or why it refused the set.
    public func update(_ block: () -> Void, onComplete: (@Sendable ((any Error)?) -> Void)? = nil) {
        let version: UInt64
        do {
            version = try commit(block)
        } catch {
            onComplete?(error)
            return
        }
        guard let onComplete else { return }
        // Not the file, which would stay open for as long as there is no answer.
        let (replica, session) = (storage.file.replica, storage.file.session)
        // Unstructured because: the caller has no task; the answer, or closing the file, ends it.
        _Concurrency.Task {
            do {
                try await OpenFile.waitForSubscriptionSet(version, replica, session)
                onComplete(nil)
            } catch {
                onComplete(error)
            }
        }
    }

    /// Changes the set in the block, sends it to the server and waits until what it asks for is here.
    /// - Throws: `Realm.Error.subscriptionFailed` when the server refuses the set.
    public func update(_ block: () -> Void, _isolation: isolated (any Actor)? = #isolation) async throws {
        let version = try commit(block)
        try await storage.file.waitForSubscriptionSet(version)
        storage.showNewest(_isolation)
    }

    /// Adds subscriptions. An unnamed one that is there already is not added again.
    public func append<T: Object>(_ subscriptions: QuerySubscription<T>...) {
        for subscription in subscriptions {
            if let name = subscription.name, storage.writable.contains(where: { $0.name == name }) {
                throwRealmException(
                    "A subscription named '\(name)' already exists. If you meant to update the existing subscription please use the `update` method."
                )
            }
            storage.put(name: subscription.name, type: T.className(), text: subscription.text)
        }
    }

    /// Adds a subscription with options that RealmSwift's does not have, inside of `update`. The name of the options counts, or else the
    /// query's own.
    /// - Throws: `Realm.Error.subscriptionFailed` when there is a subscription with the name and another query that is not to be
    ///   overwritten, or of another class; when the options have a DISTINCT without a limit, or an order that the server does not take.
    public func append<T: Object>(_ subscription: QuerySubscription<T>, options: SyncSubscriptionOptions) throws {
        var options = options
        options.name = options.name ?? subscription.name
        let (type, text) = (T.className(), subscription.text)
        let stored = try options.stored(for: ModelSchema.of(T.self))
        if let refusal = storage.refusal(of: options, stored, type: type, text: text) { throw refusal }
        storage.put(name: options.name, stored, keepsTime: !options.overwriteExisting, type: type, text: text)
    }

    /// The first of the set that is shown decides whether there is one, the set being built loses it.
    private func remove(_ type: String, _ text: String) {
        _ = storage.writable
        guard first(type, text) != nil else { return }
        storage.erase(onlyFirst: true) { $0.type == type && $0.query == text }
    }

    /// Removes the subscription with a query.
    public func remove<T: Object>(ofType type: T.Type, _ query: @escaping (Query<T>) -> Query<Bool>) {
        remove(T.className(), QuerySubscription<T>(query: query).text)
    }

    /// Removes the subscription with a query.
    public func remove<T: Object>(ofType type: T.Type, where predicateFormat: String, _ args: Any...) {
        remove(T.className(), subscriptionText(predicateFormat, args, .object(ModelSchema.of(T.self))))
    }

    /// Removes the subscription with a query.
    public func remove<T: Object>(ofType type: T.Type, where predicate: NSPredicate) {
        remove(T.className(), subscriptionText(predicate, .object(ModelSchema.of(T.self))))
    }

    /// Removes the subscription with the query of another; ours, for pages of documentation that call it so.
    public func remove<T: Object>(_ subscription: () -> QuerySubscription<T>) {
        remove(T.className(), subscription().text)
    }

    /// Removes subscriptions.
    public func remove(_ subscriptions: SyncSubscription...) {
        for subscription in subscriptions { storage.erase { $0.id == subscription.stored.id } }
    }

    /// Removes the subscription with a name; does nothing when there is none.
    public func remove(named name: String) {
        _ = storage.writable
        guard first(named: name) != nil else { return }
        storage.erase { $0.name == name }
    }

    /// Removes all subscriptions.
    /// - Parameter unnamedOnly: keeps those that have a name.
    public func removeAll(unnamedOnly: Bool = false) {
        if unnamedOnly { storage.erase { $0.name == nil } } else { storage.writable.removeAll() }
    }

    /// Removes all subscriptions of a class.
    public func removeAll<T: Object>(ofType type: T.Type) { storage.erase { $0.type == T.className() } }
}

@available(*, unavailable)
extension SyncSubscriptionSet: Sendable {}

/// One subscription of a set.
public struct SyncSubscription {
    let stored: StoredSubscription
    let set: SyncSubscriptionSet.Storage

    public var name: String? { stored.name }
    /// When it was made, by this device's clock.
    public var createdAt: Date { Date(stored.created) }
    /// When its query was last set, by this device's clock.
    public var updatedAt: Date { Date(stored.updated) }
    /// Seconds from the last update until it goes away by itself; nil: it stays.
    public var timeToLive: TimeInterval? { stored.options.timeToLive.map { Double($0) / 1_000 } }
    /// When it goes away by itself, by this device's clock; nil: it stays. When the file is not open then, it goes when the file
    /// is opened next.
    public var expiresAt: Date? { stored.expires.map { Date($0) } }

    /// Replaces the query, inside of `update` of the set. Nil: all objects of the class.
    public func updateQuery<T: Object>(toType type: T.Type, where query: ((Query<T>) -> Query<Bool>)? = nil) {
        update(T.className(), query.map { QuerySubscription<T>(query: $0).text } ?? "TRUEPREDICATE")
    }

    /// Replaces the query, inside of `update` of the set.
    public func updateQuery(to predicateFormat: String, _ args: Any...) {
        update(stored.type, subscriptionText(predicateFormat, args, .named(stored.type)))
    }

    /// Replaces the query, inside of `update` of the set.
    public func updateQuery(to predicate: NSPredicate) { update(stored.type, subscriptionText(predicate, .named(stored.type))) }

    private func update(_ type: String, _ text: String) {
        guard type == stored.type else {
            throwRealmException("Updating a subscription query of a different Object Type is not allowed.")
        }
        if stored.name == nil {
            guard let index = set.writable.firstIndex(where: { $0.type == stored.type && $0.query == stored.query }) else {
                throwRealmException("Cannot update a non-existent subscription.")
            }
            set.erase(at: index)
        }
        set.put(name: stored.name, stored.options, type: type, text: text)
    }
}

extension Realm {
    /// The newest version of the Realm's subscriptions. When the file cannot be read it is an empty one whose `state` says why
    /// and whose updates fail with it.
    public var subscriptions: SyncSubscriptionSet { core.subscriptions }
}

extension RealmCore {
    var subscriptions: SyncSubscriptionSet {
        guard configuration.syncConfiguration != nil else {
            throwRealmException("This Realm was not configured with flexible sync")
        }
        do {
            return try SyncSubscriptionSet(file: file, core: self)
        } catch {
            return SyncSubscriptionSet(file: file, unreadable: error)
        }
    }
}
