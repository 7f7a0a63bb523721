public import Foundation
import SluiceCore
import SluiceReplica

/// The conditions under which `Results.subscribe` waits for the server.
public enum WaitForSyncMode: UInt, Sendable {
    /// Waits if the subscription or its query is new.
    case onCreation = 0
    /// Waits in each call, which therefore needs a connection.
    case always = 1
    /// Returns once the subscription is stored.
    case never = 2
}

extension Results where Element: Object {
    /// Subscribes to the query, so that the server sends its objects. Traps if the results are not a plain query on a class.
    /// - Parameters:
    ///   - name: The name of the subscription. An existing subscription with the name receives this query.
    ///     A subscription that is stored again keeps its time to live, if any, which restarts.
    ///   - timeout: The longest wait in seconds. If nil, the wait is unbounded. After a timeout the subscription stays.
    /// - Returns: These results.
    /// - Throws: `Realm.Error.subscriptionFailed` if the server rejects the query; `ETIMEDOUT`.
    @discardableResult
    public func subscribe(
        name: String? = nil, waitForSync: WaitForSyncMode = .onCreation, timeout: TimeInterval? = nil,
        _isolation: isolated (any Actor)? = #isolation
    ) async throws -> Results<Element> {
        try await put(name, SubscriptionOptions(), keepsTime: true, timeout) { [text = subscriptionText] set in
            waitForSync == .onCreation && set.holds(name: name, type: Element.className(), text: text) ? nil : waitForSync
        }
    }

    /// Subscribes to the query with options beyond RealmSwift's.
    /// - Parameter timeout: The longest wait in seconds. If nil, the wait is unbounded. After a timeout the subscription stays.
    /// - Returns: These results.
    /// - Throws: `Realm.Error.subscriptionFailed` if the server rejects the query, or if the name belongs to another class.
    ///   The same if the name has another query that may not be overwritten. The same if the server does not support the order of a
    ///   limit, or if a DISTINCT has no limit.
    ///   `ETIMEDOUT` after the timeout.
    @discardableResult
    public func subscribe(
        options: SyncSubscriptionOptions, waitForSync: WaitForSyncMode = .onCreation, timeout: TimeInterval? = nil,
        _isolation: isolated (any Actor)? = #isolation
    ) async throws -> Results<Element> {
        let (text, type) = (subscriptionText, Element.className())
        let stored = try stored(options)
        return try await put(options.name, stored, keepsTime: !options.overwriteExisting, timeout) { set in
            if let refusal = set.refusal(of: options, stored, type: type, text: text) { throw refusal }
            // An existing subscription is stored again too, which restarts its time to live.
            let isThere = set.holds(name: options.name, stored, type: type, text: text)
            return isThere && waitForSync == .onCreation ? .never : waitForSync
        }
    }

    /// The options with the names in the file. With a limit, a missing sort order or DISTINCT is taken from the results.
    func stored(_ options: SyncSubscriptionOptions) throws(Realm.Error) -> SubscriptionOptions {
        let schema = ModelSchema.of(Element.self)
        var stored = try options.stored(for: schema)
        guard stored.limit > 0, stored.sort.isEmpty || stored.distinct.isEmpty else { return stored }
        let (hasOrder, hasDistinct) = (!stored.sort.isEmpty, !stored.distinct.isEmpty)
        let own = try storage.query.subscriptionOrder(withSorts: !hasOrder, withDistincts: !hasDistinct)
        if !hasOrder { stored.sort = own.sort }
        if !hasDistinct { stored.distinct = own.distinct }
        // An explicit order applies to each DISTINCT as well.
        if hasOrder || hasDistinct { for index in stored.distinct.indices { stored.distinct[index].sort = stored.sort } }
        try stored.checkOrder(of: schema.name)
        return stored
    }

    /// Stores the subscription in the newest set and waits as the mode requires.
    /// - Parameter mode: The mode for a given set; nil if the subscription exists and nothing is to be stored.
    private func put(
        _ name: String?, _ options: SubscriptionOptions, keepsTime: Bool, _ timeout: TimeInterval?,
        _isolation: isolated (any Actor)? = #isolation, mode: (SyncSubscriptionSet.Storage) throws -> WaitForSyncMode?
    ) async throws -> Results<Element> {
        let text = subscriptionText
        let set = storage.core.subscriptions
        // Most apps subscribe to existing subscriptions at each start: they must not wait for the writer.
        guard var chosen = try mode(set.storage) else { return self }
        var index = 0
        let version = try set.change { set in
            // Again under the writer: another subscriber may have stored it since.
            guard let now = try mode(set) else { return false }
            chosen = now
            index = set.put(name: name, options, keepsTime: keepsTime, type: Element.className(), text: text)
            return true
        }
        guard let version else { return self }
        storage.subscription = set.storage.committed.subscriptions[index].id
        if chosen == .never { return self }
        try await storage.core.file.waitForSubscriptionSet(version, seconds: timeout)
        storage.core.observations.refreshBeforeNotifying(toCompleteSet: version)
        return self
    }

    /// Removes the subscription that `subscribe` created, or else the unnamed one with this query.
    /// Once the server has answered, its objects leave the device unless another subscription covers them.
    ///
    /// As in RealmSwift, a named subscription that `subscribe` has only found stays, as after a relaunch. Remove it by name in `update`.
    public func unsubscribe() {
        // An error leaves the subscription in place, and the session reports the cause.
        _ = try? end()
    }

    /// Removes the subscription and waits until objects that no other subscription covers have left the device.
    /// - Parameters:
    ///   - waitForSync: `never` does not wait; the other modes do.
    ///   - timeout: The longest wait in seconds. If nil, the wait is unbounded. After a timeout the subscription stays removed.
    public func unsubscribe(
        waitForSync: WaitForSyncMode, timeout: TimeInterval? = nil, _isolation: isolated (any Actor)? = #isolation
    ) async throws {
        guard let version = try end(), waitForSync != .never else { return }
        try await storage.core.file.waitForSubscriptionSet(version, seconds: timeout)
        storage.core.observations.refreshBeforeNotifying(toCompleteSet: version)
    }

    /// Removes the subscription.
    /// - Returns: The version of the set without it; nil if there is none to remove.
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

    /// The query text with the names in the file, which the server uses too.
    var subscriptionText: String {
        guard case .table = storage.origin, storage.rest.isEmpty else {
            throwRealmException(
                "Only results of a class can be subscribed to, without block predicates and diacritic insensitive comparisons.")
        }
        return storage.query.text
    }
}
