public import Foundation
import SluiceCore
import SluiceReplica

/// What a subscription can have beside its query. Flexible Sync had none of it but the name; query-based sync did.
public struct SyncSubscriptionOptions: Hashable, Sendable {
    /// Nil: the subscription is known by its class and query.
    public var name: String?
    /// Gives the subscription with this name another query and time to live, instead of failing. One of another class is never overwritten.
    public var overwriteExisting: Bool
    /// Seconds from when it was last subscribed until it goes away by itself; nil, 0 or less: it stays. Changes of its objects do not count.
    public var timeToLive: TimeInterval?

    public init(name: String? = nil, overwriteExisting: Bool = false, timeToLive: TimeInterval? = nil) {
        self.name = name
        self.overwriteExisting = overwriteExisting
        self.timeToLive = timeToLive
    }

    var stored: SubscriptionOptions {
        guard let timeToLive, timeToLive > 0 else { return SubscriptionOptions() }
        // A time that no clock reaches is no time.
        return SubscriptionOptions(timeToLive: UInt64(exactly: (timeToLive * 1_000).rounded()))
    }
}

extension SyncSubscriptionSet.Storage {
    // MARK: Looking

    /// Whether the set that is shown has the subscription: by name and query, or, without a name, when the first with the query has none.
    func holds(name: String?, type: String, text: String) -> Bool {
        let now = Date().timestamp
        let alive = committed.subscriptions.filter { $0.expires.map { now < $0 } ?? true }
        let found = alive.first { (name == nil || $0.name == name) && $0.type == type && $0.query == text }
        return found.map { $0.name == name } ?? false
    }

    /// Why the subscription cannot be added; nil when it can.
    func refusal(of options: SyncSubscriptionOptions, type: String, text: String) -> Realm.Error? {
        guard let name = options.name, let found = (draft ?? committed.subscriptions).first(where: { $0.name == name }) else { return nil }
        if found.type != type {
            return Realm.Error(.subscriptionFailed, "An existing subscription exists with the name '\(name)' but for class \(found.type).")
        }
        if found.query == text || options.overwriteExisting { return nil }
        return Realm.Error(
            .subscriptionFailed,
            "An existing subscription exists with the name '\(name)' but with a different query: \(found.query). Set overwriteExisting to change it."
        )
    }

    var hasExpired: Bool {
        let now = Date().timestamp
        return committed.subscriptions.contains { $0.expires.map { $0 <= now } ?? false }
    }

    // MARK: Changing

    /// Adds a subscription, or replaces the query of the one with its name. - Returns: its id.
    @discardableResult
    func put(_ options: SyncSubscriptionOptions, type: String, text: String) -> UInt64 {
        let now = Date().timestamp
        let name = options.name
        let index = writable.firstIndex { name == nil ? $0.name == nil && $0.type == type && $0.query == text : $0.name == name }
        if let index {
            writable[index].type = type
            writable[index].query = text
            writable[index].updated = now
            writable[index].options = options.stored
            return writable[index].id
        }
        defer { nextID += 1 }
        writable.append(
            StoredSubscription(id: nextID, name: name, type: type, query: text, created: now, updated: now, options: options.stored))
        return nextID
    }

    /// Takes one out; the last takes its place.
    func erase(at index: Int) {
        let last = writable.removeLast()
        if index < writable.count { writable[index] = last }
    }

    func erase(onlyFirst: Bool = false, where isErased: (StoredSubscription) -> Bool) {
        var index = 0
        while index < writable.count {
            guard isErased(writable[index]) else {
                index += 1
                continue
            }
            erase(at: index)
            if onlyFirst { return }
        }
    }

    func eraseExpired() {
        let now = Date().timestamp
        erase { $0.expires.map { $0 <= now } ?? false }
    }
}
