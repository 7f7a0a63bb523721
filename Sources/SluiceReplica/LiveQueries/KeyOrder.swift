import SluiceCore
import SluiceQuery

/// The order of objects by the values of key paths. Ties follow the order of the table or of a given list. Reads object by object.
struct KeyOrder {
    struct Position {
        var values: [Value]
        var number: Int64
    }

    private let query: ReplicaQuery
    private let keys: [BoundSuffix.Key]
    private let paths: [BoundPath]
    private let graph: ReplicaGraph
    private let store: RowStore
    /// The objects' indices in a list; nil for the table's order.
    private let places: [Value: Int64]?
    /// The properties if all key paths are the object's own; nil if a path follows links.
    private let own: [Int]?
    private var known: [Value: Position] = [:]

    init(_ query: ReplicaQuery, by keys: [BoundSuffix.Key], places: [Value: Int64]?, graph: ReplicaGraph, store: RowStore) {
        (self.query, self.keys, self.places, self.graph, self.store) = (query, keys, places, graph, store)
        paths = keys.map(\.path)
        own = KeyOrder.ownProperties(paths)
    }

    private static func ownProperties(_ paths: [BoundPath]) -> [Int]? {
        var properties: [Int] = []
        for path in paths {
            guard path.result == .values, path.steps.count == 2, path.steps[0] == .variable(0), case .property(let index) = path.steps[1]
            else { return nil }
            properties.append(index)
        }
        return properties
    }

    /// - Parameter isKept: `true` to cache the position for later calls.
    mutating func position(of key: Value, isKept: Bool) throws(SluiceError) -> Position {
        if let position = known[key] { return position }
        let number = if let places { places[key] } else { try store.rowid(type: query.type, key: key) }
        // An object without a place comes last.
        let position = Position(values: try values(of: key), number: number ?? .max)
        if isKept { known[key] = position }
        return position
    }

    private func values(of key: Value) throws(SluiceError) -> [Value] {
        if keys.isEmpty { return [] }
        guard let own else {
            let values = query.bound.values(of: paths, at: key, in: graph)
            try graph.check()
            return values
        }
        var values = [Value](repeating: .null, count: own.count)
        let selection = RowSelection(type: query.type, key: key, properties: Set(own).sorted(), isOrdered: false)
        try store.visit(selection) { _, row in
            values = own.map { row.value($0) ?? .null }
            return false
        }
        return values
    }

    func precedes(_ left: Position, _ right: Position) -> Bool {
        for (index, key) in keys.enumerated() {
            switch SortOrder.compare(left.values[index], right.values[index]) {
            case .less: return key.ascending
            case .greater: return !key.ascending
            case .equal: continue
            }
        }
        return left.number < right.number
    }

    /// Returns `true` if the first `count` values of two objects are equal.
    mutating func agree(_ left: Value, _ right: Value, in count: Int) throws(SluiceError) -> Bool {
        let (left, right) = (try position(of: left, isKept: false), try position(of: right, isKept: false))
        return zip(left.values, right.values).prefix(count).allSatisfy { SortOrder.compare($0, $1) == .equal }
    }
}
