import SluiceCore
import SluiceQuery
import SluiceReplica

/// Finds objects from which a changed object is reachable over at most four links.
struct DeepChanges {
    /// The greatest number of links between an element and a changed object.
    private static let depth = 4

    private let schema: SluiceCore.Schema
    private let type: Int
    /// The classes reachable over n + 1 links, at index n.
    private let reached: [Set<Int>]

    init(_ schema: SluiceCore.Schema, _ type: Int) {
        self.schema = schema
        self.type = type
        var reached: [Set<Int>] = []
        var last: Set<Int> = [type]
        for _ in 0..<DeepChanges.depth {
            // Embedded objects are part of their owner's row and cost no link.
            last = last.reduce(into: []) { $0.formUnion(DeepChanges.targets(of: schema.types[$1], schema, [])) }
            reached.append(last)
        }
        self.reached = reached
    }

    private static func targets(of type: ObjectType, _ schema: SluiceCore.Schema, _ outer: Set<String>) -> Set<Int> {
        var targets: Set<Int> = []
        for property in type.properties {
            switch property.type {
            case .link(let name): if let index = schema.index(of: name) { targets.insert(index) }
            case .mixed: targets.formUnion(schema.types.indices)
            case .embedded(let name):
                // A class that embeds itself would recurse without end.
                guard !outer.contains(name), let embedded = schema[name] else { continue }
                targets.formUnion(DeepChanges.targets(of: embedded, schema, outer.union([name])))
            default: continue
            }
        }
        return targets
    }

    /// `true` if the change concerns a reachable class.
    func concerns(_ change: ReplicaChange) -> Bool { reached.contains { $0.contains { change.types[$0] != nil } } }

    /// The number of objects that a backward search may visit in any collection. Longer collections may visit one per element.
    private static let fewElements = 1_000

    /// Finds the objects that reach a changed object, by following links backwards. O(objects found on the way).
    /// - Parameter count: The number of elements of the collection.
    /// - Returns: nil if more objects than the limit are found, or if the change does not name its objects. Then `walk` is cheaper.
    func candidates(_ change: ReplicaChange, of count: Int, on store: RowStore) throws(SluiceError) -> Set<Value>? {
        // Beyond this the walk from each element costs less.
        let limit = max(DeepChanges.fewElements, count)
        let concerned = reached.reduce(into: Set([type])) { $0.formUnion($1) }
        var last: [Int: Set<Value>] = [:]
        for (type, changed) in change.types where concerned.contains(type) {
            // `isWhole`: the class changed without a list of keys, so nothing can be traced back.
            if changed.isWhole || changed.keys.count > limit { return nil }
            last[type] = changed.keys
        }
        var seen = last
        for step in 1...DeepChanges.depth where !last.isEmpty {
            // The classes from which the elements' class is still within reach.
            let left = DeepChanges.depth - step
            let classes = reached.prefix(left).reduce(into: Set([type])) { $0.formUnion($1) }
            var next: [Int: Set<Value>] = [:]
            for origin in classes where !DeepChanges.targets(of: schema.types[origin], schema, []).isDisjoint(with: last.keys) {
                guard let linking = try store.linking(origin, to: last, limit: limit) else { return nil }
                // Each object is expanded once, so cycles end.
                let found = linking.subtracting(seen[origin] ?? [])
                if found.isEmpty { continue }
                next[origin] = found
                seen[origin, default: []].formUnion(found)
            }
            last = next
        }
        return seen[type] ?? []
    }

    func walk(_ change: ReplicaChange, _ core: RealmCore) -> Walk { Walk(schema, type, change, core) }

    /// Answers for one change. Each object is visited once per distance.
    final class Walk {
        private let schema: SluiceCore.Schema
        private let type: Int
        private let change: ReplicaChange
        private let core: RealmCore
        private let links: LinkWalk
        private var known: [Visit: Bool] = [:]

        private struct Visit: Hashable {
            var type: Int
            var key: Value
            var rest: Int
        }

        init(_ schema: SluiceCore.Schema, _ type: Int, _ change: ReplicaChange, _ core: RealmCore) {
            self.schema = schema
            self.type = type
            self.change = change
            self.core = core
            links = LinkWalk(schema: schema)
        }

        func hasChanged(_ key: Value) -> Bool { hasChanged(Visit(type: type, key: key, rest: DeepChanges.depth)) }

        private func hasChanged(_ visit: Visit) -> Bool {
            if change.types[visit.type]?.contains(visit.key) ?? false { return true }
            if visit.rest == 0 { return false }
            // The remaining distance is part of the visit: an object out of reach over one way may be in reach over another.
            if let answer = known[visit] { return answer }
            // Stays false if the object is not in the Realm.
            known[visit] = false
            // An absent object ends the search: its links are not on the device.
            guard let row = core.reading.row(visit.type, visit.key) else { return false }
            var answer = false
            links.visit(row.values.map { $0 ?? .null }, of: schema.types[visit.type]) { name, key, _ in
                guard !answer, let target = schema.index(of: name) else { return }
                answer = hasChanged(Visit(type: target, key: key, rest: visit.rest - 1))
            }
            known[visit] = answer
            return answer
        }
    }
}
