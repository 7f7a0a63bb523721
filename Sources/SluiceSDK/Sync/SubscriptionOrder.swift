import SluiceCore
import SluiceQuery
import SluiceReplica

extension ReplicaQuery {
    /// Returns the SORTs and DISTINCTs in the server's form. Each DISTINCT carries the order of the objects before it.
    /// - Parameters:
    ///   - withSorts: `false` omits the SORTs.
    ///   - withDistincts: `false` omits the DISTINCTs.
    /// - Throws: `subscriptionFailed` for a LIMIT, for a path through an embedded object, and for a path to data or a mixed value.
    func subscriptionOrder(
        withSorts: Bool, withDistincts: Bool
    ) throws(Realm.Error) -> (sort: [SubscriptionOptions.SortKey], distinct: [SubscriptionOptions.Distinct]) {
        var sort: [SubscriptionOptions.SortKey] = []
        var distinct: [SubscriptionOptions.Distinct] = []
        for suffix in bound.suffixes {
            switch suffix {
            case .sort(let keys) where withSorts:
                var these: [SubscriptionOptions.SortKey] = []
                for key in keys {
                    let path = try subscriptionPath(key.path)
                    if !these.contains(where: { $0.path == path }) { these.append(.init(path: path, isDescending: !key.ascending)) }
                }
                // A later sort takes precedence and is stable.
                sort = these + sort.filter { key in !these.contains { $0.path == key.path } }
            case .distinct(let paths) where withDistincts:
                distinct.append(.init(paths: try paths.map { path throws(Realm.Error) in try subscriptionPath(path) }, sort: sort))
            case .limit:
                throw Realm.Error(
                    .subscriptionFailed,
                    "The results of \(bound.type.name) have a LIMIT of their own: remove it, and give the limit to subscribe.")
            case .sort, .distinct: continue
            }
        }
        return (sort, distinct)
    }

    /// Returns a path through single links, with stored names.
    /// - Throws: `subscriptionFailed` if the server cannot order by the path.
    private func subscriptionPath(_ path: BoundPath) throws(Realm.Error) -> String {
        var type = bound.type
        var names: [String] = []
        var isOrdered = path.result == .values
        for step in path.steps.dropFirst() {
            switch step {
            case .property(let index):
                names.append(type.properties[index].name)
                isOrdered = isOrdered && (type.properties[index].ordersLimits || type.properties[index].isLink)
            case .follow(let target): type = bound.schema.types[target]
            case .embedded(let target): (type, isOrdered) = (bound.schema.types[target], false)
            default: isOrdered = false
            }
        }
        guard isOrdered else {
            let written = names.joined(separator: ".")
            throw Realm.Error(
                .subscriptionFailed,
                "A limit on \(bound.type.name) cannot count by '\(written)': it leads through an embedded object, or to data or a mixed value. "
                    + "Sort the results after subscribing, or count by another property.")
        }
        return names.joined(separator: ".")
    }
}

extension SluiceCore.Property {
    fileprivate var isLink: Bool { if case .link = type { collection == .none } else { false } }
}

extension SubscriptionOptions {
    /// Checks the server's bounds on the device, since the server would reject the whole set.
    /// - Throws: `subscriptionFailed` for a DISTINCT without a limit, and for more keys or longer paths than the server accepts.
    func checkOrder(of type: String) throws(Realm.Error) {
        if limit == 0, !distinct.isEmpty {
            throw Realm.Error(.subscriptionFailed, "A subscription on \(type) has a DISTINCT without a limit: give a limit.")
        }
        let count = distinct.reduce(sort.count) { $0 + $1.paths.count + $1.sort.count }
        if count > Limits.orderKeys {
            throw Realm.Error(
                .subscriptionFailed,
                "A limit on \(type) counts by \(count) sort keys and paths of DISTINCT: name at most \(Limits.orderKeys).")
        }
        let paths = sort.map(\.path) + distinct.flatMap(\.paths) + distinct.flatMap(\.sort).map(\.path)
        if let path = paths.first(where: { $0.utf8.count { $0 == UInt8(ascii: ".") } > Limits.orderLinks }) {
            throw Realm.Error(
                .subscriptionFailed, "A limit on \(type) counts by '\(path)': the path may go through \(Limits.orderLinks) links at most.")
        }
    }
}
