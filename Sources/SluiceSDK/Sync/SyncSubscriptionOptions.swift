public import Foundation
import SluiceCore
import SluiceReplica

/// What a subscription can have beside its query. Flexible Sync had none of it but the name; query-based sync did.
public struct SyncSubscriptionOptions: Hashable, Sendable {
    /// Nil: the subscription is known by its class and query, with limit, order and what comes along.
    public var name: String?
    /// Gives the subscription that is there another query and time to live. Otherwise a name that has another query is refused, and what
    /// is there goes on with the time to live that it has, from now. One of another class is never overwritten.
    public var overwriteExisting: Bool
    /// Seconds from when it was last subscribed until it goes away by itself; nil, 0 or less: it stays. Changes of its objects do not count.
    public var timeToLive: TimeInterval?

    /// No more than the first so many objects, in the order of `sort` and then of their primary keys; 0: all. The server keeps them the
    /// first: when one leaves, the next comes. At most 10,000.
    public var limit: Int
    /// What decides which are the first: properties, the most significant first, also through links to one object each, four deep:
    /// `owner.name`. Null comes before everything, and so does what the user may not read. Empty: the order of the results that are subscribed to.
    public var sort: [SortDescriptor]
    /// Key paths as in `sort`. Of the objects that are equal in all of them the first counts, and no other comes; only with `limit`. Empty:
    /// those by which the results that are subscribed to are distinct.
    public var distinct: [String]
    /// Key paths of links, lists and sets of links, and `LinkingObjects`, whose objects come along, those on the way too: `owner.team`. They
    /// are not counted by `limit`. At most 10,000 of a class.
    public var includes: [String]

    public init(
        name: String? = nil, overwriteExisting: Bool = false, timeToLive: TimeInterval? = nil, limit: Int = 0,
        sort: [SortDescriptor] = [], distinct: [String] = [], includes: [String] = []
    ) {
        self.name = name
        self.overwriteExisting = overwriteExisting
        self.timeToLive = timeToLive
        self.limit = limit
        self.sort = sort
        self.distinct = distinct
        self.includes = includes
    }

    /// With the names in the file. A path that leads nowhere is misuse, which ends the program.
    /// - Throws: `subscriptionFailed` for a DISTINCT without a limit, and for more keys or longer paths than the server takes.
    func stored(for schema: ModelSchema) throws(Realm.Error) -> SubscriptionOptions {
        var options = SubscriptionOptions(limit: max(limit, 0), includes: includes.map { schema.linkPath($0) })
        options.sort = sort.map { .init(path: schema.orderPath($0.keyPath), isDescending: !$0.ascending) }
        if !distinct.isEmpty {
            options.distinct = [.init(paths: distinct.map { schema.orderPath($0) }, sort: options.sort)]
        }
        // A time that no clock reaches is no time.
        if let timeToLive, timeToLive > 0 { options.timeToLive = UInt64(exactly: (timeToLive * 1_000).rounded()) }
        try options.checkOrder(of: schema.name)
        return options
    }
}

extension ModelSchema {
    /// A key path of links as the server reads it: stored names, `@links.Class.property` for linking objects.
    fileprivate func linkPath(_ path: String) -> String {
        var schema = self
        var parts: [String] = []
        for name in path.split(separator: ".", omittingEmptySubsequences: false) {
            guard let slot = schema.slot(of: String(name)), let target = schema.properties[slot].kind.target else {
                throwRealmException("Invalid key path '\(path)': '\(schema.name).\(name)' is no link.")
            }
            let (property, next) = (schema.properties[slot], ModelSchema.of(target))
            if let origin = property.origin {
                let column = next.slot(of: origin).map { next.properties[$0].column } ?? origin
                parts += ["@links", next.name, column]
            } else {
                parts.append(property.column)
            }
            schema = next
        }
        return parts.joined(separator: ".")
    }

    /// A key path through links to one object each, with stored names.
    fileprivate func orderPath(_ path: String) -> String {
        var schema = self
        var parts: [String] = []
        let names = path.split(separator: ".", omittingEmptySubsequences: false)
        for (place, name) in names.enumerated() {
            guard let slot = schema.slot(of: String(name)), !schema.properties[slot].kind.isComputed else {
                let fault = names.count == 1 ? "it has no such property" : "'\(schema.name)' has no property '\(name)'"
                throwRealmException("Cannot sort a subscription on '\(self.name)' by '\(path)': \(fault).")
            }
            let property = schema.properties[slot]
            parts.append(property.column)
            if place == names.count - 1 { break }
            guard case .link = property.kind.type, property.kind.collection == .none, let target = property.kind.target else {
                throwRealmException(
                    "Cannot sort a subscription on '\(self.name)' by '\(path)': '\(schema.name).\(name)' is no link to one object.")
            }
            schema = ModelSchema.of(target)
        }
        return parts.joined(separator: ".")
    }
}

extension SyncSubscriptionSet.Storage {
    // MARK: Looking

    /// Whether the set that is shown has the subscription: by name and query, or, without a name, when the first with the query has none.
    func holds(name: String?, _ options: SubscriptionOptions = SubscriptionOptions(), type: String, text: String) -> Bool {
        let now = Date().timestamp
        let alive = committed.subscriptions.filter { !$0.hasExpired(by: now) }
        let found = alive.first { (name == nil || $0.name == name) && $0.asks(type, text, options) }
        return found.map { $0.name == name } ?? false
    }

    /// Why the subscription cannot be added; nil when it can.
    /// - Parameter stored: the options with the names in the file.
    func refusal(
        of options: SyncSubscriptionOptions, _ stored: SubscriptionOptions, type: String, text: String
    ) -> Realm.Error? {
        guard let name = options.name, let found = (draft ?? committed.subscriptions).first(where: { $0.name == name }) else { return nil }
        if found.type != type {
            return Realm.Error(.subscriptionFailed, "An existing subscription exists with the name '\(name)' but for class \(found.type).")
        }
        if found.asks(type, text, stored) || options.overwriteExisting { return nil }
        let difference = found.query == text ? "limit, order, DISTINCT or links that come along" : "query: \(found.query)"
        return Realm.Error(
            .subscriptionFailed,
            "An existing subscription exists with the name '\(name)' but with a different \(difference). Set overwriteExisting to change it."
        )
    }

    // MARK: Changing

    /// Adds a subscription, or replaces the query of the one with its name.
    /// - Parameter keepsTime: one that is there keeps its time to live, which begins again.
    /// - Returns: where in the set it is. A new one gets its number when the set is stored.
    @discardableResult
    func put(
        name: String?, _ options: SubscriptionOptions = SubscriptionOptions(), keepsTime: Bool = false, type: String, text: String
    ) -> Int {
        let now = Date().timestamp
        let index = writable.firstIndex { name == nil ? $0.name == nil && $0.asks(type, text, options) : $0.name == name }
        if let index {
            writable[index].type = type
            writable[index].query = text
            writable[index].updated = now
            let time = keepsTime ? writable[index].options.timeToLive : options.timeToLive
            writable[index].options = options
            writable[index].options.timeToLive = time
            return index
        }
        writable.append(
            StoredSubscription(
                id: StoredSubscription.unnumbered, name: name, type: type, query: text, created: now, updated: now, options: options))
        return writable.count - 1
    }

    /// Takes one out; the last takes its place.
    func erase(at index: Int) { writable.erase(at: index) }

    func erase(onlyFirst: Bool = false, where isErased: (StoredSubscription) -> Bool) {
        writable.erase(onlyFirst: onlyFirst, where: isErased)
    }

    func eraseExpired() { writable.eraseExpired() }
}

extension StoredSubscription {
    /// Whether the server is asked for just that.
    func asks(_ type: String, _ query: String, _ options: SubscriptionOptions) -> Bool {
        self.type == type && self.query == query && self.options.limit == options.limit && self.options.includes == options.includes
            && (options.limit == 0 || self.options.sort == options.sort && self.options.distinct == options.distinct)
    }
}
