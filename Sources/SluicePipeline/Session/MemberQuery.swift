import SluiceCore
import SluiceQuery
import SluiceWire

/// A query of which not all objects are in the view, or whose objects bring others along.
struct MemberQuery {
    /// One link of a path.
    enum Step {
        case forward(property: Int, target: Int)
        /// From the target to those that link to it.
        case backward(origin: Int, property: Int)
    }

    var type: Int
    /// Asked for, and readable.
    var predicate: Predicate
    /// Nil: all of them.
    var first: SnapshotQuery.First?
    var includes: [[Step]]

    /// Whether the query is one.
    static func isNeeded(_ query: PBQuery) -> Bool { query.limit > 0 || !query.include.isEmpty }

    /// - Parameter hidden: indices of the properties of a class that count as null: nothing is ordered by them, no link leads out of them.
    /// - Throws: an error of the query language for an order or a path that the classes do not have.
    init(
        _ query: PBQuery, type: Int, predicate: Predicate, schema: Schema, hidden: (ObjectType) -> Set<Int>
    ) throws(SluiceError) {
        self.type = type
        self.predicate = predicate
        let objectType = schema.types[type]
        if query.limit > 0 {
            guard query.limit <= Limits.inListValues else {
                throw SluiceError(
                    .queryLimit, "A limit of \(query.limit) is more than the \(Limits.inListValues) objects that one can have.")
            }
            var order: [(property: Int, isDescending: Bool)] = []
            for key in query.sort { order.append((try Self.sortable(key.property, objectType), key.descending)) }
            let unseen = hidden(objectType)
            first = SnapshotQuery.First(limit: Int(query.limit), order: order.filter { !unseen.contains($0.property) })
        }
        includes = []
        for path in query.include { includes.append(try Self.steps(path, from: type, schema)) }
        includes = includes.map { Self.seen($0, from: type, schema, hidden) }
    }

    /// The classes of which objects come along.
    /// - Throws: an error of the query language for a path that the classes do not have.
    static func classes(_ query: PBQuery, from type: Int, _ schema: Schema) throws(SluiceError) -> Set<Int> {
        var classes: Set<Int> = []
        for path in query.include {
            for step in try steps(path, from: type, schema) {
                switch step {
                case .forward(_, let target): classes.insert(target)
                case .backward(let origin, _): classes.insert(origin)
                }
            }
        }
        return classes
    }

    /// The part of a path that a user can follow.
    private static func seen(_ path: [Step], from type: Int, _ schema: Schema, _ hidden: (ObjectType) -> Set<Int>) -> [Step] {
        var current = type
        let end = path.firstIndex { step in
            switch step {
            case .forward(let property, let target):
                defer { current = target }
                return hidden(schema.types[current]).contains(property)
            case .backward(let origin, let property):
                current = origin
                return hidden(schema.types[origin]).contains(property)
            }
        }
        return Array(path[..<(end ?? path.count)])
    }

    private static func sortable(_ name: String, _ type: ObjectType) throws(SluiceError) -> Int {
        guard let index = type.index(of: name) else {
            throw SluiceError(.queryUnknownProperty, "Class \(type.name) has no property \(name) to sort by.")
        }
        let property = type.properties[index]
        let isScalar: Bool =
            switch property.type {
            case .bool, .int, .float, .double, .decimal, .string, .timestamp, .objectId, .uuid: property.collection == .none
            case .binary, .mixed, .link, .embedded: false
            }
        guard isScalar else {
            throw SluiceError(.querySort, "Property \(type.name).\(name) is \(property.typeText): a limit cannot sort by it.")
        }
        return index
    }

    private static func steps(_ path: String, from type: Int, _ schema: Schema) throws(SluiceError) -> [Step] {
        var steps: [Step] = []
        var names = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)[...]
        var current = type
        while let name = names.popFirst() {
            if name == "@links" {
                guard let origin = names.popFirst(), let property = names.popFirst() else {
                    throw SluiceError(.queryLinkPath, "In the path \(path), @links is not followed by a class and a property.")
                }
                current = try backward(origin, property, to: current, path, schema, &steps)
            } else {
                current = try forward(name, from: current, path, schema, &steps)
            }
        }
        return steps
    }

    private static func forward(
        _ name: String, from type: Int, _ path: String, _ schema: Schema, _ steps: inout [Step]
    ) throws(SluiceError) -> Int {
        let objectType = schema.types[type]
        guard let index = objectType.index(of: name) else {
            throw SluiceError(.queryUnknownProperty, "In the path \(path), class \(objectType.name) has no property \(name).")
        }
        let property = objectType.properties[index]
        guard case .link(let target) = property.type, property.collection != .dictionary, let next = schema.index(of: target) else {
            throw SluiceError(
                .queryLinkPath, "In the path \(path), \(objectType.name).\(name) is \(property.typeText).",
                fix: "Name links, and lists and sets of links.")
        }
        steps.append(.forward(property: index, target: next))
        return next
    }

    private static func backward(
        _ origin: String, _ name: String, to type: Int, _ path: String, _ schema: Schema, _ steps: inout [Step]
    ) throws(SluiceError) -> Int {
        guard let next = schema.index(of: origin), let index = schema.types[next].index(of: name) else {
            throw SluiceError(.queryUnknownProperty, "In the path \(path), there is no property \(origin).\(name).")
        }
        let property = schema.types[next].properties[index]
        guard property.type == .link(to: schema.types[type].name), property.collection != .dictionary else {
            throw SluiceError(.queryLinkPath, "In the path \(path), \(origin).\(name) does not link to \(schema.types[type].name).")
        }
        steps.append(.backward(origin: next, property: index))
        return next
    }
}
