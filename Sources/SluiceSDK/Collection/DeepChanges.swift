import SluiceCore
import SluiceQuery
import SluiceReplica

/// Finds out whether objects that an object leads to have changed: those up to four links away.
struct DeepChanges {
    /// As RealmSwift has it: the object itself is the first of four.
    private static let depth = 4

    private let schema: SluiceCore.Schema
    private let type: Int
    /// The classes that can be reached with so many links, from 1 on.
    private let reached: [Set<Int>]

    init(_ schema: SluiceCore.Schema, _ type: Int) {
        self.schema = schema
        self.type = type
        var reached: [Set<Int>] = []
        var last: Set<Int> = [type]
        for _ in 0..<DeepChanges.depth {
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
                guard !outer.contains(name), let embedded = schema[name] else { continue }
                targets.formUnion(DeepChanges.targets(of: embedded, schema, outer.union([name])))
            default: continue
            }
        }
        return targets
    }

    /// Whether a change is of a class that can be reached.
    func concerns(_ change: ReplicaChange) -> Bool { reached.contains { $0.contains { change.types[$0] != nil } } }

    /// As many objects are looked for in any collection; in a longer one as many as it has elements.
    private static let fewElements = 1_000

    /// The objects that lead to something that has changed, found by going the links backwards. O(objects found on the way).
    /// - Parameter count: of the elements that are asked about.
    /// - Returns: nil when there are more than these, or it is not known what has changed: then looking at each costs less.
    func candidates(_ change: ReplicaChange, of count: Int, on store: RowStore) throws(SluiceError) -> Set<Value>? {
        let limit = max(DeepChanges.fewElements, count)
        let concerned = reached.reduce(into: Set([type])) { $0.formUnion($1) }
        var last: [Int: Set<Value>] = [:]
        for (type, changed) in change.types where concerned.contains(type) {
            if changed.isWhole || changed.keys.count > limit { return nil }
            last[type] = changed.keys
        }
        var seen = last
        for step in 1...DeepChanges.depth where !last.isEmpty {
            // The classes from which so many links are left to go on to the elements'.
            let left = DeepChanges.depth - step
            let classes = reached.prefix(left).reduce(into: Set([type])) { $0.formUnion($1) }
            var next: [Int: Set<Value>] = [:]
            for origin in classes where !DeepChanges.targets(of: schema.types[origin], schema, []).isDisjoint(with: last.keys) {
                guard let linking = try store.linking(origin, to: last, limit: limit) else { return nil }
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

    /// The answers for one change; each object is looked at once for every distance.
    final class Walk {
        private let schema: SluiceCore.Schema
        private let type: Int
        private let change: ReplicaChange
        private let core: RealmCore
        private let links: LinkWalk
        private var known: [Place: Bool] = [:]

        private struct Place: Hashable {
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

        func hasChanged(_ key: Value) -> Bool { hasChanged(Place(type: type, key: key, rest: DeepChanges.depth)) }

        private func hasChanged(_ place: Place) -> Bool {
            if change.types[place.type]?.contains(place.key) ?? false { return true }
            if place.rest == 0 { return false }
            if let answer = known[place] { return answer }
            known[place] = false
            guard let row = core.row(place.type, place.key) else { return false }
            var answer = false
            links.visit(row.values.map { $0 ?? .null }, of: schema.types[place.type]) { name, key, _ in
                guard !answer, let target = schema.index(of: name) else { return }
                answer = hasChanged(Place(type: target, key: key, rest: place.rest - 1))
            }
            known[place] = answer
            return answer
        }
    }
}
