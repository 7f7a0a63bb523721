public import Foundation
import SluiceCore
import SluiceReplica

/// When `Results.subscribe` waits for the server.
public enum WaitForSyncMode: UInt, Sendable {
    /// When the subscription is new, or its query is.
    case onCreation = 0
    /// Every time; it needs a connection every time.
    case always = 1
    case never = 2
}

extension Results where Element: Object {
    /// Subscribes to the query, so that the server sends its objects.
    /// - Parameters:
    ///   - name: of the subscription; one with the same name gets this query instead of its own.
    ///   - timeout: seconds to wait at most; nil: as long as it takes. The subscription stays when it is over.
    /// - Returns: these results.
    /// - Throws: `Realm.Error.subscriptionFailed` when the server refuses the query; `ETIMEDOUT`.
    @discardableResult
    public func subscribe(
        name: String? = nil, waitForSync: WaitForSyncMode = .onCreation, timeout: TimeInterval? = nil,
        _isolation: isolated (any Actor)? = #isolation
    ) async throws -> Results<Element> {
        let set = Realm(core: storage.core).subscriptions
        if waitForSync == .onCreation, set.storage.holds(name: name, type: Element.className(), text: subscriptionText) { return self }
        return try await commit(set, name, SubscriptionOptions(), waitForSync, timeout)
    }

    /// Subscribes to the query with options that RealmSwift's `subscribe` does not have.
    /// - Parameter timeout: seconds to wait at most; nil: as long as it takes. The subscription stays when it is over.
    /// - Returns: these results.
    /// - Throws: `Realm.Error.subscriptionFailed` when the server refuses the query, or when there is a subscription with the name and
    ///   another query that is not to be overwritten, or of another class, or when a limit is to count in an order through links or of
    ///   distinct results; `ETIMEDOUT`.
    @discardableResult
    public func subscribe(
        options: SyncSubscriptionOptions, waitForSync: WaitForSyncMode = .onCreation, timeout: TimeInterval? = nil,
        _isolation: isolated (any Actor)? = #isolation
    ) async throws -> Results<Element> {
        let set = Realm(core: storage.core).subscriptions
        let (text, type) = (subscriptionText, Element.className())
        let stored = try stored(options)
        if let refusal = set.storage.refusal(of: options, stored, type: type, text: text) { throw refusal }
        let isThere = set.storage.holds(name: options.name, stored, type: type, text: text)
        // Even one that is there is renewed: its time begins again.
        let mode = isThere && waitForSync == .onCreation ? .never : waitForSync
        return try await commit(set, options.name, stored, keepsTime: !options.overwriteExisting, mode, timeout)
    }

    /// The options with the names in the file, and the order that the results have where none is given.
    func stored(_ options: SyncSubscriptionOptions) throws(Realm.Error) -> SubscriptionOptions {
        var stored = options.stored(for: ModelSchema.of(Element.self))
        guard stored.limit > 0, stored.sort.isEmpty else { return stored }
        guard let order = storage.query.ownOrder else {
            throw Realm.Error(
                .subscriptionFailed,
                "A limit counts in the order of properties of \(Element.className()) itself: not through links, nor of distinct results.")
        }
        stored.sort = order
        return stored
    }

    private func commit(
        _ set: SyncSubscriptionSet, _ name: String?, _ options: SubscriptionOptions, keepsTime: Bool = false, _ mode: WaitForSyncMode,
        _ timeout: TimeInterval?, _isolation: isolated (any Actor)? = #isolation
    ) async throws -> Results<Element> {
        let text = subscriptionText
        let version = try set.commit {
            storage.subscription = set.storage.put(name: name, options, keepsTime: keepsTime, type: Element.className(), text: text)
        }
        if mode == .never { return self }
        try await storage.core.file.waitForSubscriptionSet(version, seconds: timeout)
        storage.core.refresh()
        return self
    }

    /// Removes the subscription that `subscribe` made, or else the unnamed one with this query. Its objects leave the device
    /// when the server has answered, unless another subscription covers them.
    public func unsubscribe() {
        let set = Realm(core: storage.core).subscriptions
        guard let id = subscriptionToEnd(in: set) else { return }
        set.update { set.storage.erase { $0.id == id } }
    }

    /// The same, and waits until the objects that no other subscription covers have left the device.
    /// - Parameters:
    ///   - waitForSync: `never` does not wait; the others do.
    ///   - timeout: seconds to wait at most; nil: as long as it takes. The subscription is gone all the same.
    public func unsubscribe(
        waitForSync: WaitForSyncMode, timeout: TimeInterval? = nil, _isolation: isolated (any Actor)? = #isolation
    ) async throws {
        let set = Realm(core: storage.core).subscriptions
        guard let id = subscriptionToEnd(in: set) else { return }
        let version = try set.commit { set.storage.erase { $0.id == id } }
        if waitForSync == .never { return }
        try await storage.core.file.waitForSubscriptionSet(version, seconds: timeout)
        storage.core.refresh()
    }

    private func subscriptionToEnd(in set: SyncSubscriptionSet) -> UInt64? {
        let all = set.storage.committed.subscriptions
        if let id = storage.subscription { return all.first { $0.id == id }?.id }
        let text = subscriptionText
        let found = all.first { $0.type == Element.className() && $0.query == text }
        return found?.name == nil ? found?.id : nil
    }

    /// The query with the file's names, which are the server's.
    var subscriptionText: String {
        guard case .table = storage.origin, storage.rest.isEmpty else {
            throwRealmException(
                "Only results of a class can be subscribed to, without block predicates and diacritic insensitive comparisons.")
        }
        return storage.query.text
    }
}
