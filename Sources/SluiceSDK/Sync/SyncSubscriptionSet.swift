public import Foundation
import SluiceCore
import SluiceReplica

/// The state of a subscription set.
public enum SyncSubscriptionState: Equatable {
    /// The server has accepted the set, and all objects that matched it at that time have arrived.
    case complete
    /// The server has rejected the set. The previous set stays active.
    case error(any Error)
    /// The server has not answered yet.
    case pending
    /// A newer set has replaced it.
    case superseded

    public static func == (lhs: SyncSubscriptionState, rhs: SyncSubscriptionState) -> Bool {
        switch (lhs, rhs) {
        case (.complete, .complete), (.pending, .pending), (.superseded, .superseded): true
        case (.error(let l), .error(let r)): l == r
        default: false
        }
    }
}

/// The subscriptions of a Realm, which determine the objects that the server sends.
/// A handle on one version of the set. Only `update` changes it.
public struct SyncSubscriptionSet: Sequence {
    /// The state shared by copies of the handle.
    final class Storage {
        let file: OpenFile
        /// The Realm of the handle. Weak because: a handle keeps the file open, not the Realm.
        private weak let core: RealmCore?
        /// The committed set that the handle shows.
        var committed: StoredSubscriptionSet
        /// The reason why the set could not be read. Such a set cannot be changed.
        let unreadable: (any Error)?
        /// The set under construction in `update`; nil outside of it.
        var draft: [StoredSubscription]?

        init(file: OpenFile, core: RealmCore?, committed: StoredSubscriptionSet, unreadable: (any Error)? = nil) {
            self.file = file
            self.core = core
            self.committed = committed
            self.unreadable = unreadable
        }

        /// The draft. Traps outside of `update`.
        var writable: [StoredSubscription] {
            get {
                guard let draft else {
                    throwRealmException("Can only add, remove, or update subscriptions within a write subscription block.")
                }
                return draft
            }
            set { draft = newValue }
        }

        /// Advances the handle's Realm, so that it shows the objects of a complete set.
        /// - Parameter isolation: The caller's actor, if known.
        func showNewest(_ isolation: (any Actor)? = nil) { core?.observations.showNewest(isolation, completeSet: committed.version) }

        /// `true` if the handle's Realm does not show the objects of a complete set yet, and will do so by itself.
        var isBehind: Bool { core?.observations.isBehind(completeSet: committed.version) ?? false }

        /// Shows a set that has been committed.
        func stored(_ set: StoredSubscriptionSet) {
            committed = set
            file.session?.log(.info, .session, "The subscription set \(set.version) is committed, of \(set.subscriptions.count).")
        }

        /// Checks that the set can be changed now. Traps in an update or a write transaction, since waiting for the writer would deadlock.
        /// - Throws: The error if the set could not be read.
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

    /// Creates the replacement of a set that cannot be read: empty, with the error as its state, and not changeable.
    init(file: OpenFile, unreadable error: any Error) {
        let empty = StoredSubscriptionSet(version: 0, state: .pending, subscriptions: [])
        storage = Storage(file: file, core: nil, committed: empty, unreadable: error)
    }

    // MARK: Reading

    /// The number of subscriptions.
    public var count: Int { storage.committed.subscriptions.count }
    /// `true` if there are no subscriptions.
    public var isEmpty: Bool { count == 0 }

    /// The current state of this version of the set.
    ///
    /// Reading `complete` advances the Realm to show the new objects, unless the app has to call `refresh()`.
    /// For a Realm of an actor other than the main actor it is `pending` until a turn of the actor has advanced the Realm.
    public var state: SyncSubscriptionState {
        if let error = storage.unreadable { return .error(error) }
        do throws(SluiceError) {
            switch try storage.file.replica.subscriptionSet(version: storage.committed.version).state {
            case .pending, .bootstrapping: return .pending
            case .complete:
                storage.showNewest()
                return storage.isBehind ? .pending : .complete
            case .superseded: return .superseded
            case .error(_, let message): return .error(SyncError(.invalidFlexibleSyncSubscriptions, message))
            }
        } catch {
            return .error(Realm.Error(error))
        }
    }

    /// The reason why the server rejected the set; nil if it did not.
    public var error: (any Error)? { if case .error(let error) = state { error } else { nil } }

    private func handle(_ subscription: StoredSubscription) -> SyncSubscription {
        SyncSubscription(stored: subscription, set: storage)
    }

    /// The subscription with a name; nil if there is none.
    public func first(named name: String) -> SyncSubscription? {
        storage.committed.subscriptions.first { $0.name == name }.map { handle($0) }
    }

    /// The first subscription with a query; nil if there is none.
    public func first<T: Object>(ofType type: T.Type, where query: (Query<T>) -> Query<Bool>) -> SyncSubscription? {
        first(T.className(), QuerySubscription<T>(query: query).text)
    }

    /// The first subscription with a query; nil if there is none. Traps if the predicate is invalid.
    public func first<T: Object>(ofType type: T.Type, where predicateFormat: String, _ args: Any...) -> SyncSubscription? {
        first(T.className(), subscriptionText(predicateFormat, args, .object(ModelSchema.of(T.self))))
    }

    /// The first subscription with a query; nil if there is none. Traps if the predicate is invalid.
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

    /// The first subscription; nil if the set is empty.
    public var first: SyncSubscription? { storage.committed.subscriptions.first.map { handle($0) } }
    /// The last subscription; nil if the set is empty.
    public var last: SyncSubscription? { storage.committed.subscriptions.last.map { handle($0) } }

    public func makeIterator() -> AnyIterator<SyncSubscription> {
        AnyIterator(storage.committed.subscriptions.map { handle($0) }.makeIterator())
    }

    // MARK: Changing

    /// Runs the app's block on a draft of the set that the handle shows, and commits the draft as a new version.
    /// - Returns: The version.
    func commit(_ block: () -> Void) throws -> UInt64 {
        try storage.requireChangeable()
        // Based on the shown set: a concurrent update is replaced. `change` is based on the newest set instead.
        storage.draft = storage.committed.subscriptions
        storage.eraseExpired()
        block()
        let draft = storage.writable
        storage.draft = nil
        if let stored = try asRealmError({ try storage.file.replica.changeSubscriptionSet { _ in draft } }) { storage.stored(stored) }
        return storage.committed.version
    }

    /// Changes the newest set in one transaction, so that concurrent subscribers see each other's subscriptions.
    /// - Parameter change: Reads the committed set and builds the draft. It runs on the writer and must not block. `false` stores nothing.
    /// - Returns: The version; nil if nothing was stored.
    @discardableResult
    func change(_ change: (Storage) throws -> Bool) throws -> UInt64? {
        try storage.requireChangeable()
        // The replica's closure cannot throw, so the error leaves it through this variable.
        var failure: (any Error)?
        let stored = try asRealmError {
            try storage.file.replica.changeSubscriptionSet { newest in
                // From here on the handle shows the newest set, even if nothing is stored.
                storage.committed = newest
                storage.draft = newest.subscriptions
                // An error in `change` must not leave the handle in an update.
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

    /// Changes the set in the block and sends it to the server. Traps in a write transaction.
    /// - Parameter onComplete: Called on an arbitrary thread once the server has answered, with nil or the error.
    ///   Called before the return, on the caller's thread, if the set cannot be committed.
    public func update(_ block: () -> Void, onComplete: (@Sendable ((any Error)?) -> Void)? = nil) {
        let version: UInt64
        do {
            version = try commit(block)
        } catch {
            onComplete?(error)
            return
        }
        guard let onComplete else { return }
        // Not the file: it would stay open until there is an answer.
        let (replica, session) = (storage.file.replica, storage.file.session)
        _Concurrency.Task {  // Unstructured because: the caller has no task; the answer, or closing the file, ends it.
            do {
                try await OpenFile.waitForSubscriptionSet(version, replica, session)
                onComplete(nil)
            } catch {
                onComplete(error)
            }
        }
    }

    /// Changes the set in the block, sends it to the server and waits until its objects have arrived. Traps in a write transaction.
    /// - Throws: `Realm.Error.subscriptionFailed` if the server rejects the set, or the error that ended the session.
    public func update(_ block: () -> Void, _isolation: isolated (any Actor)? = #isolation) async throws {
        let version = try commit(block)
        try await storage.file.waitForSubscriptionSet(version)
        storage.showNewest(_isolation)
    }

    /// Adds subscriptions, inside of `update`. A name that exists traps.
    /// An unnamed one that exists is renewed instead: `updatedAt` is set anew, and its time to live, if any, restarts.
    public func append<T: Object>(_ subscriptions: QuerySubscription<T>...) {
        for subscription in subscriptions {
            if let name = subscription.name, storage.writable.contains(where: { $0.name == name }) {
                throwRealmException(
                    "A subscription named '\(name)' already exists. If you meant to update the existing subscription please use the `update` method."
                )
            }
            storage.put(name: subscription.name, keepsTime: true, type: T.className(), text: subscription.text)
        }
    }

    /// Adds a subscription with options beyond RealmSwift's, inside of `update`. The options' name takes precedence over the query's.
    /// - Throws: `Realm.Error.subscriptionFailed` if the name exists with another class, or with another query and no `overwriteExisting`.
    ///   The same for a DISTINCT without a limit, and for an order that the server does not support.
    public func append<T: Object>(_ subscription: QuerySubscription<T>, options: SyncSubscriptionOptions) throws {
        var options = options
        options.name = options.name ?? subscription.name
        let (type, text) = (T.className(), subscription.text)
        let stored = try options.stored(for: ModelSchema.of(T.self))
        if let refusal = storage.refusal(of: options, stored, type: type, text: text) { throw refusal }
        storage.put(name: options.name, stored, keepsTime: !options.overwriteExisting, type: type, text: text)
    }

    /// Removes the first match from the draft, if the committed set has one.
    private func remove(_ type: String, _ text: String) {
        // Traps outside of `update`, even if there is nothing to remove.
        _ = storage.writable
        guard first(type, text) != nil else { return }
        storage.erase(onlyFirst: true) { $0.type == type && $0.query == text }
    }

    /// Removes the subscription with a query, inside of `update`. Does nothing if there is none.
    public func remove<T: Object>(ofType type: T.Type, _ query: @escaping (Query<T>) -> Query<Bool>) {
        remove(T.className(), QuerySubscription<T>(query: query).text)
    }

    /// Removes the subscription with a query, inside of `update`. Does nothing if there is none.
    public func remove<T: Object>(ofType type: T.Type, where predicateFormat: String, _ args: Any...) {
        remove(T.className(), subscriptionText(predicateFormat, args, .object(ModelSchema.of(T.self))))
    }

    /// Removes the subscription with a query, inside of `update`. Does nothing if there is none.
    public func remove<T: Object>(ofType type: T.Type, where predicate: NSPredicate) {
        remove(T.className(), subscriptionText(predicate, .object(ModelSchema.of(T.self))))
    }

    /// Removes the subscription with the query of another, inside of `update`. Not in RealmSwift; some documentation uses this form.
    public func remove<T: Object>(_ subscription: () -> QuerySubscription<T>) {
        remove(T.className(), subscription().text)
    }

    /// Removes subscriptions, inside of `update`.
    public func remove(_ subscriptions: SyncSubscription...) {
        for subscription in subscriptions { storage.erase { $0.id == subscription.stored.id } }
    }

    /// Removes the subscription with a name, inside of `update`. Does nothing if there is none.
    public func remove(named name: String) {
        // Traps outside of `update`, even if there is nothing to remove.
        _ = storage.writable
        guard first(named: name) != nil else { return }
        storage.erase { $0.name == name }
    }

    /// Removes all subscriptions, inside of `update`.
    /// - Parameter unnamedOnly: `true` to keep the named ones.
    public func removeAll(unnamedOnly: Bool = false) {
        if unnamedOnly { storage.erase { $0.name == nil } } else { storage.writable.removeAll() }
    }

    /// Removes all subscriptions of a class, inside of `update`.
    public func removeAll<T: Object>(ofType type: T.Type) { storage.erase { $0.type == T.className() } }
}

@available(*, unavailable)
extension SyncSubscriptionSet: Sendable {}

/// One subscription of a set.
public struct SyncSubscription {
    let stored: StoredSubscription
    let set: SyncSubscriptionSet.Storage

    public var name: String? { stored.name }
    /// The creation time by this device's clock.
    public var createdAt: Date { Date(stored.created) }
    /// The time of the last change of its query, by this device's clock.
    public var updatedAt: Date { Date(stored.updated) }
    /// The seconds from the last update until it expires; nil if it does not expire.
    public var timeToLive: TimeInterval? { stored.options.timeToLive.map { Double($0) / 1_000 } }
    /// The time at which it expires, by this device's clock; nil if it does not expire.
    /// If the file is closed at that time, it expires at the next opening.
    public var expiresAt: Date? { stored.expires.map { Date($0) } }

    /// Replaces the query, inside of `update`. If `query` is nil, all objects of the class match. Traps if the class differs.
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
    /// The newest version of the Realm's subscriptions. Traps if the Realm is not synced.
    /// If the file cannot be read, the set is empty, its `state` is the error, and updates fail with it.
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
