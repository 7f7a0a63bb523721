import SluiceCore
import SluiceQuery
import SluiceReplica
import TestSupport
import Testing

/// A subscription of a device: the objects that a query lets through, or the first of them in an order, with those that come along.
struct OracleQuery: Hashable {
    let type: String
    let text: String
    var options = SubscriptionOptions()

    init(type: String, text: String, options: SubscriptionOptions) { (self.type, self.text, self.options) = (type, text, options) }

    /// Some have a limit, some bring linked objects along, some end by themselves.
    init(_ type: ObjectType, in app: OracleApp, _ random: inout SplitMix64) {
        self.type = type.name
        let isLimited = random.chance(20)
        // With a limit only what PostgreSQL can decide alone is taken.
        text = isLimited ? app.plainQuery(&random) : app.query(&random, on: type)
        if isLimited {
            options.limit = 1 + random.below(5)
            let paths = Self.orderPaths(from: type, app)
            options.sort = Self.keys(paths, &random)
            if random.chance(40) {
                options.distinct = (0...random.below(2)).map { _ in
                    .init(paths: (0...random.below(2)).map { _ in random.pick(paths) }, sort: Self.keys(paths, &random))
                }
            }
        }
        if random.chance(30) { options.includes = Self.paths(from: type, app).filter { _ in random.chance(60) } }
        if random.chance(20) { options.timeToLive = UInt64(1 + random.below(200)) * 1_000 }
    }

    private static func keys(_ paths: [String], _ random: inout SplitMix64) -> [SubscriptionOptions.SortKey] {
        paths.shuffled(using: &random).prefix(random.below(3)).map { .init(path: $0, isDescending: random.chance(50)) }
    }

    /// The paths that a limit can count by: own properties, and those of linked objects.
    private static func orderPaths(from type: ObjectType, _ app: OracleApp) -> [String] {
        var (paths, prefix, current) = ([String](), "", type)
        for _ in 0..<3 {
            paths += current.properties.filter(\.ordersLimits).map { prefix + $0.name }
            guard case .link(let target)? = current["peer"]?.type, let next = app.schema[target] else { break }
            (prefix, current) = (prefix + "peer.", next)
        }
        return paths
    }

    private static func paths(from type: ObjectType, _ app: OracleApp) -> [String] {
        var paths: [String] = []
        for origin in app.classes {
            guard case .link(let target)? = origin["peer"]?.type else { continue }
            if origin.name == type.name {
                paths.append("peer")
                if app.schema[target]?["peer"] != nil { paths.append("peer.peer") }
            }
            if target == type.name { paths.append("@links.\(origin.name).peer") }
        }
        return paths
    }
}

/// What subscriptions show: every object that a user may see, and those of them that are asked for.
struct OracleView {
    let schema: Schema
    /// With null for what the user does not see.
    let visible: [String: [Value: Row]]
    let graph: MemoryGraph
    /// The fields that the user does not see, by class.
    let masked: [String: Set<String>]

    /// The keys by class.
    func shown(_ queries: [OracleQuery]) throws -> [String: Set<Value>] {
        var shown: [String: Set<Value>] = [:]
        for query in queries {
            let roots = try first(query)
            shown[query.type, default: []].formUnion(roots)
            for path in query.options.includes {
                var (type, keys) = (query.type, roots)
                var names = path.split(separator: ".").map(String.init)[...]
                while let name = names.popFirst() {
                    if name == "@links", let origin = names.popFirst(), let property = names.popFirst() {
                        if masked[origin]?.contains(property) == true { break }
                        (type, keys) = (origin, linking(origin, property, to: keys))
                    } else {
                        guard masked[type]?.contains(name) != true, case .link(let target)? = schema[type]?[name]?.type else { break }
                        (type, keys) = (target, linked(type, name, from: keys))
                    }
                    shown[type, default: []].formUnion(keys)
                }
            }
        }
        return shown
    }

    private func first(_ query: OracleQuery) throws -> Set<Value> {
        let type = try #require(schema[query.type])
        let bound = try Query.parse(query.text).bind(to: type, in: schema)
        let found = (visible[query.type] ?? [:]).filter { bound.matches($0.value, key: $0.key, in: graph) }.map(\.key)
        guard query.options.limit > 0 else { return Set(found) }
        // Hidden objects are missing, and hidden properties are null.
        let rows = visible.flatMap { type, rows in rows.values.map { (type: type, row: $0) } }
        let parts = query.options.distinct.map { part in
            "SORT(_id ASC)\(Self.sort(part.sort)) DISTINCT(\(part.paths.joined(separator: ", ")))"
        }
        let limit = "SORT(_id ASC)\(Self.sort(query.options.sort)) LIMIT(\(query.options.limit))"
        let text = "\(query.text) \(parts.joined(separator: " ")) \(limit)"
        return Set(try Query.parse(text).bind(to: type, in: schema).run(over: MemoryGraph(schema: schema, rows: rows)))
    }

    private static func sort(_ keys: [SubscriptionOptions.SortKey]) -> String {
        keys.isEmpty ? "" : " SORT(\(keys.map { "\($0.path) \($0.isDescending ? "DESC" : "ASC")" }.joined(separator: ", ")))"
    }

    private func linked(_ type: String, _ property: String, from keys: Set<Value>) -> Set<Value> {
        guard let objectType = schema[type], let index = objectType.index(of: property),
            case .link(let target) = objectType.properties[index].type
        else { return [] }
        return Set(keys.compactMap { visible[type]?[$0]?[index] }.map(Self.key)).intersection((visible[target] ?? [:]).keys)
    }

    private func linking(_ origin: String, _ property: String, to keys: Set<Value>) -> Set<Value> {
        guard let index = schema[origin]?.index(of: property) else { return [] }
        return Set((visible[origin] ?? [:]).filter { $0.value[index].map { keys.contains(Self.key($0)) } == true }.keys)
    }

    private static func key(_ link: Value) -> Value { if case .link(_, let key) = link { key } else { link } }
}
