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
        try await put(name, SubscriptionOptions(), timeout) { [text = subscriptionText] set in
            waitForSync == .onCreation && set.holds(name: name, type: Element.className(), text: text) ? nil : waitForSync
        }
    }

    /// Subscribes to the query with options that RealmSwift's `subscribe` does not have.
    /// - Parameter timeout: seconds to wait at most; nil: as long as it takes. The subscription stays when it is over.
    /// - Returns: these results.
    /// - Throws: `Realm.Error.subscriptionFailed` when the server refuses the query, or when there is a subscription with the name and
    ///   another query that is not to be overwritten, or of another class, or when a limit is to count in an order that the server does
    ///   not take, or a DISTINCT has no limit; `ETIMEDOUT`.
    @discardableResult
    public func subscribe(
        options: SyncSubscriptionOptions, waitForSync: WaitForSyncMode = .onCreation, timeout: TimeInterval? = nil,
        _isolation: isolated (any Actor)? = #isolation
    ) async throws -> Results<Element> {
        let (text, type) = (subscriptionText, Element.className())
        let stored = try stored(options)
        return try await put(options.name, stored, keepsTime: !options.overwriteExisting, timeout) { set in
            if let refusal = set.refusal(of: options, stored, type: type, text: text) { throw refusal }
            // Even one that is there is renewed: its time begins again.
            let isThere = set.holds(name: options.name, stored, type: type, text: text)
            return isThere && waitForSync == .onCreation ? .never : waitForSync
        }
    }

    /// The options with the names in the file. What they do not say of the order and of DISTINCTs the results say.
    func stored(_ options: SyncSubscriptionOptions) throws(Realm.Error) -> SubscriptionOptions {
        let schema = ModelSchema.of(Element.self)
        var stored = try options.stored(for: schema)
        guard stored.limit > 0, stored.sort.isEmpty || stored.distinct.isEmpty else { return stored }
        let (hasOrder, hasDistinct) = (!stored.sort.isEmpty, !stored.distinct.isEmpty)
        let own = try storage.query.subscriptionOrder(withSorts: !hasOrder, withDistincts: !hasDistinct)
        if !hasOrder { stored.sort = own.sort }
        if !hasDistinct { stored.distinct = own.distinct }
        // One order given for all counts for each DISTINCT as well.
        if hasOrder || hasDistinct { for index in stored.distinct.indices { stored.distinct[index].sort = stored.sort } }
        try stored.checkOrder(of: schema.name)
        return stored
    }

    /// Stores the subscription in the newest set and waits as the mode says.
    /// - Parameter mode: by what is in a set; nil: the subscription is there, and nothing is to be stored.
    private func put(
        _ name: String?, _ options: SubscriptionOptions, keepsTime: Bool = false, _ timeout: TimeInterval?,
        _isolation: isolated (any Actor)? = #isolation, mode: (SyncSubscriptionSet.Storage) throws -> WaitForSyncMode?
    ) async throws -> Results<Element> {
        let text = subscriptionText
        let set = storage.core.subscriptions
        // Most apps subscribe to what is there at each start: they need not wait for the writer.
        guard var chosen = try mode(set.storage) else { return self }
        var index = 0
        let version = try set.change { set in
            guard let now = try mode(set) else { return false }
            chosen = now
            index = set.put(name: name, options, keepsTime: keepsTime, type: Element.className(), text: text)
            return true
        }
        guard let version else { return self }
        storage.subscription = set.storage.committed.subscriptions[index].id
        if chosen == .never { return self }
        try await storage.core.file.waitForSubscriptionSet(version, seconds: timeout)
        storage.core.moveOn()
        return self
    }

    /// Removes the subscription that `subscribe` made, or else the unnamed one with this query. Its objects leave the device
    /// when the server has answered, unless another subscription covers them.
    ///
    /// As in RealmSwift, a named subscription that `subscribe` has found, as in a later launch, stays: remove it by its name, in `update`.
    public func unsubscribe() {
        // As in `update`, what fails is told to nobody here: the subscription is still there, and the session says why.
        _ = try? end()
    }

    /// The same, and waits until the objects that no other subscription covers have left the device.
    /// - Parameters:
    ///   - waitForSync: `never` does not wait; the others do.
    ///   - timeout: seconds to wait at most; nil: as long as it takes. The subscription is gone all the same.
    public func unsubscribe(
        waitForSync: WaitForSyncMode, timeout: TimeInterval? = nil, _isolation: isolated (any Actor)? = #isolation
    ) async throws {
        guard let version = try end(), waitForSync != .never else { return }
        try await storage.core.file.waitForSubscriptionSet(version, seconds: timeout)
        storage.core.moveOn()
    }

    /// - Returns: the version of the set without the subscription; nil when there is none to end.
    private func end() throws -> UInt64? {
        let set = storage.core.subscriptions
        guard subscriptionToEnd(in: set.storage) != nil else { return nil }
        return try set.change { set in
            guard let id = subscriptionToEnd(in: set) else { return false }
            set.erase { $0.id == id }
            return true
        }
    }

    private func subscriptionToEnd(in set: SyncSubscriptionSet.Storage) -> UInt64? {
        let all = set.committed.subscriptions
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
