public import Foundation
import SluiceCore
import SluiceReplica

/// The options of a subscription besides its query. Atlas Flexible Sync had only the name; query-based sync had all of them.
public struct SyncSubscriptionOptions: Hashable, Sendable {
    /// The name. If nil, the subscription is identified by its class, query, limit, order, DISTINCTs and includes.
    public var name: String?
    /// Replaces the query and the time to live of an existing subscription with the name. Default `false`.
    ///
    /// If `false`, another query under the name is an error, and an existing subscription keeps its time to live, restarted now.
    /// A subscription of another class is never replaced.
    public var overwriteExisting: Bool
    /// The seconds from the last subscribing until the subscription expires. If nil, 0 or less, it does not expire.
    /// Changes of its objects do not extend it.
    public var timeToLive: TimeInterval?

    /// The most objects, in the order of `sort` and then of their primary keys; 0, the default, means all. At most 10,000.
    /// The server maintains it: if one object leaves, the next one enters.
    public var limit: Int
    /// The order that `limit` counts in, the most significant property first. Null and values that the user may not read sort first.
    /// A key path may follow up to four links to one object each, such as `owner.name`.
    /// If empty, the order of the results that are subscribed to.
    public var sort: [SortDescriptor]
    /// Key paths as in `sort`. Of the objects that are equal in all of them, only the first is in the subscription. Requires `limit`.
    /// If empty, the key paths of the results' own `distinct`.
    public var distinct: [String]
    /// Key paths of links, lists and sets of links, and `LinkingObjects`, such as `owner.team`.
    /// Their objects are included, as are those on the way. `limit` does not count them. At most 10,000 per class.
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

    /// The options with the names in the file. Traps if a path does not exist.
    /// - Throws: `subscriptionFailed` for a DISTINCT without a limit, and for more keys or longer paths than the server accepts.
    func stored(for schema: ModelSchema) throws(Realm.Error) -> SubscriptionOptions {
        var options = SubscriptionOptions(limit: max(limit, 0), includes: includes.map { schema.linkPath($0) })
        options.sort = sort.map { .init(path: schema.orderPath($0.keyPath), isDescending: !$0.ascending) }
        if !distinct.isEmpty {
            options.distinct = [.init(paths: distinct.map { schema.orderPath($0) }, sort: options.sort)]
        }
        // A duration beyond the clock's range means that it does not expire.
        if let timeToLive, timeToLive > 0 { options.timeToLive = UInt64(exactly: (timeToLive * 1_000).rounded()) }
        try options.checkOrder(of: schema.name)
        return options
    }
}

extension ModelSchema {
    /// A key path of links in the server's form: stored names, and `@links.Class.property` for linking objects.
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

    /// Returns a key path through single links, with stored names. Traps if the path does not exist.
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

    /// `true` if the committed set has the subscription, by name and query.
    /// Without a name, the first subscription with the query must have none either.
    func holds(name: String?, _ options: SubscriptionOptions = SubscriptionOptions(), type: String, text: String) -> Bool {
        let now = Date().timestamp
        let alive = committed.subscriptions.filter { !$0.hasExpired(by: now) }
        let found = alive.first { (name == nil || $0.name == name) && $0.asks(type, text, options) }
        return found.map { $0.name == name } ?? false
    }

    /// The reason why the subscription cannot be added; nil if it can.
    /// - Parameter stored: The options with the names in the file.
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
    /// - Parameter keepsTime: `true` if an existing subscription keeps its time to live, which restarts.
    /// - Returns: Its index in the set. A new subscription receives its id when the set is stored.
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

    /// Removes a subscription. The last one takes its index.
    func erase(at index: Int) { writable.erase(at: index) }

    func erase(onlyFirst: Bool = false, where isErased: (StoredSubscription) -> Bool) {
        writable.erase(onlyFirst: onlyFirst, where: isErased)
    }

    func eraseExpired() { writable.eraseExpired() }
}

extension StoredSubscription {
    /// `true` if the subscription sends the same request to the server: class, query, limit and includes.
    /// With a limit, the order and the DISTINCTs must be equal too.
    func asks(_ type: String, _ query: String, _ options: SubscriptionOptions) -> Bool {
        self.type == type && self.query == query && self.options.limit == options.limit && self.options.includes == options.includes
            && (options.limit == 0 || self.options.sort == options.sort && self.options.distinct == options.distinct)
    }
}
