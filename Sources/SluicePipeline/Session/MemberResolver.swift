import SluiceCore
import SluicePorts
import SluiceQuery
import Synchronization

/// Finds the current objects of limited queries and included links. Their keys become conditions of an ordinary view.
///
/// The session watches the changes that affect the keys, and finds them again after such a change (`MemberWatch`). Between a change
/// and the new keys, the view shows the earlier members in their newest state.
struct MemberResolver {
    let snapshots: any SnapshotStore
    let fanout: Fanout
    let environment: any Environment
    let schema: Schema
    /// The connection of the client. Its end ends the search.
    let channel: (any SessionChannel)?
    /// The objects of a class that the session may read.
    let readable: (Int) throws(SluiceError) -> Predicate

    /// The objects that one query adds to a view.
    struct Members {
        /// The keys of the query's own objects; nil if the query has no limit.
        var own: Set<Value>?
        /// The keys of included objects, by class.
        var included: [Int: Set<Value>] = [:]
        /// The conditions whose changes affect the keys, by class.
        var watched: [(type: Int, predicate: Predicate)] = []
    }

    /// Reads the keys of the query's objects and of its included objects.
    /// - Throws: `queryLimit` beyond `Limits.inListValues` objects of one path; `CancellationError` if the client is gone.
    func resolve(_ query: MemberQuery) async throws -> Members {
        var members = Members()
        members.watched.append((query.type, query.predicate))
        // Hidden objects of these classes count as null, so their changes do not matter.
        for link in query.first?.links ?? [] where !members.watched.contains(where: { $0.predicate == link.readable }) {
            if let type = schema.index(of: link.target.name) { members.watched.append((type, link.readable)) }
        }
        let needs = Needs(query.includes.compactMap(\.first), keys: query.first != nil)
        let root = try await read(query.type, query.predicate, query.first, needs)
        if query.first != nil { members.own = root.keys }
        for path in query.includes { try await follow(path[...], root, &members) }
        return members
    }

    /// The values of objects that the next step of a path needs.
    private struct Needs: Sendable {
        var keys: Bool
        var links: Set<Int> = []

        init(_ steps: [MemberQuery.Step], keys: Bool = false) {
            self.keys = keys
            for step in steps {
                switch step {
                case .forward(let property, _): links.insert(property)
                case .backward: self.keys = true
                }
            }
        }
    }

    /// The keys of objects, and the keys that their links lead to, by property.
    private struct Found: Sendable {
        var keys: Set<Value> = []
        var links: [Int: Set<Value>] = [:]

        var isTooMuch: Bool { keys.count > Limits.inListValues || links.values.contains { $0.count > Limits.inListValues } }
    }

    private func follow(_ path: ArraySlice<MemberQuery.Step>, _ from: Found, _ members: inout Members) async throws {
        guard let step = path.first else { return }
        if channel?.isClosed == true { throw CancellationError() }
        let rest = path.dropFirst()
        let needs = Needs(rest.first.map { [$0] } ?? [])
        switch step {
        case .forward(let property, let target):
            // All keys are included: an object that does not exist yet, or is not readable yet, belongs to the view once it is.
            let keys = from.links[property] ?? []
            members.included[target, default: []].formUnion(keys)
            if rest.isEmpty { return }
            let visible = Predicate.and(try Self.keys(keys, of: schema.types[target]), try readable(target))
            members.watched.append((target, visible))
            try await follow(rest, try await read(target, visible, nil, needs), &members)
        case .backward(let origin, let property):
            let allowed = try readable(origin)
            // Any object of the class may link later, so the watch covers the class.
            members.watched.append((origin, allowed))
            let visible = Predicate.and(linking(origin, property, to: from.keys), allowed)
            var all = needs
            all.keys = true
            let found = try await read(origin, visible, nil, all)
            members.included[origin, default: []].formUnion(found.keys)
            try await follow(rest, found, &members)
        }
    }

    private func linking(_ origin: Int, _ property: Int, to keys: Set<Value>) -> Predicate {
        let type = schema.types[origin]
        guard case .link(let target) = type.properties[property].type else { return .false(type) }
        return .any(of: keys.map { .link(type: target, key: $0) }, in: property, of: type)
    }

    /// Returns the condition for the objects with these keys.
    /// - Throws: `queryLimit` for more than `Limits.inListValues` keys.
    static func keys(_ keys: Set<Value>, of type: ObjectType) throws(SluiceError) -> Predicate {
        guard let key = type.primaryKey else { return .false(type) }
        guard keys.count <= Limits.inListValues else { throw tooMany(type.name) }
        return .any(of: Array(keys), in: key, of: type)
    }

    private static func tooMany(_ type: String) -> SluiceError {
        SluiceError(
            .queryLimit, "More than \(Limits.inListValues) objects of class \(type) are included by links, or have such links.",
            fix: "Narrow the query, or subscribe to the linked class itself.")
    }

    private func read(_ type: Int, _ predicate: Predicate, _ first: ObjectChoice?, _ needs: Needs) async throws -> Found {
        guard needs.keys || !needs.links.isEmpty else { return Found() }
        let query = SnapshotQuery(type: schema.types[type], predicate: predicate, first: first)
        return try await SnapshotPatience.retry(environment) { try await attempt(query, needs, $0) }
    }

    /// Reads one snapshot.
    /// - Returns: nil if the snapshot misses a transaction that the fan-out has delivered. The watch would not see it again.
    private func attempt(_ query: SnapshotQuery, _ needs: Needs, _ patience: SnapshotPatience) async throws -> Found? {
        guard let key = query.type.primaryKey else { return Found() }
        let sink = MemberSink(fanout: fanout, mark: await fanout.mark, type: query.type.name, key: key, needs: needs, patience: patience)
        return try await snapshots.read([query], into: sink) == nil ? nil : sink.found
    }

    /// Collects keys and links of the rows of one snapshot.
    private final class MemberSink: SnapshotSink {
        private let fanout: Fanout
        private let mark: DeliveredTransactions.Mark
        private let type: String
        private let key: Int
        private let needs: Needs
        private let patience: SnapshotPatience
        private let state = Mutex(Found())

        init(fanout: Fanout, mark: DeliveredTransactions.Mark, type: String, key: Int, needs: Needs, patience: SnapshotPatience) {
            (self.fanout, self.mark, self.type, self.key, self.needs, self.patience) = (fanout, mark, type, key, needs, patience)
        }

        var found: Found { state.withLock { $0 } }

        func begin(_ start: SnapshotStart) async throws -> Bool {
            guard patience.accepts(start) else { return false }
            return await !fanout.contradicts(start.snapshot, at: mark)
        }

        func take(_ rows: [RowRef], of buffer: RowBuffer, query: Int, isInOrder: Bool) async throws {
            let isTooMuch = state.withLock { found in
                for row in rows { buffer.withView(row) { MemberResolver.note($0, key, needs, &found) } }
                return found.isTooMuch
            }
            if isTooMuch { throw MemberResolver.tooMany(type) }
        }
    }

    private static func note(_ row: RowView, _ key: Int, _ needs: Needs, _ found: inout Found) {
        if needs.keys, let value = row.value(key) { found.keys.insert(value) }
        for property in needs.links {
            switch row.value(property) {
            case .list(let keys)?: found.links[property, default: []].formUnion(keys.lazy.filter { !$0.isNull }.map(bare))
            case .null?, nil: break
            case let key?: found.links[property, default: []].insert(bare(key))
            }
        }
    }

    /// Returns the key of a link.
    private static func bare(_ value: Value) -> Value { if case .link(_, let key) = value { key } else { value } }
}
