import SluiceCore
import SluiceQuery
import SluiceWire

/// A query with a limit or with included links.
struct MemberQuery {
    /// One link of a path.
    enum Step {
        case forward(property: Int, target: Int)
        /// The objects of class `origin` that link to the current object by `property`.
        case backward(origin: Int, property: Int)
    }

    var type: Int
    /// The condition of the query within the rules.
    var predicate: Predicate
    /// The limit and its order; nil for all objects.
    var first: ObjectChoice?
    var includes: [[Step]]

    /// `true` if the query has a limit, a DISTINCT or included links.
    static func isNeeded(_ query: PBQuery) -> Bool { query.limit > 0 || !query.distinct.isEmpty || !query.include.isEmpty }

    /// Creates the query.
    /// - Parameters:
    ///   - hidden: The indices of a class's properties that count as null. They order nothing, and their links are not followed.
    ///   - readable: The objects of a class that an order may pass through. The values of other objects count as null.
    /// - Throws: A query error for an order or a path that the classes do not have.
    init(
        _ query: PBQuery, type: Int, predicate: Predicate, schema: Schema, hidden: @escaping (ObjectType) -> Set<Int>,
        readable: @escaping (Int) throws(SluiceError) -> Predicate
    ) throws(SluiceError) {
        self.type = type
        self.predicate = predicate
        if query.limit > 0 || !query.distinct.isEmpty {
            first = try MemberChoice(schema: schema, type: type, hidden: hidden, readable: readable).choice(query)
        }
        includes = []
        for path in query.include { includes.append(try Self.steps(path, from: type, schema)) }
        includes = includes.map { Self.seen($0, from: type, schema, hidden) }
    }

    /// Returns the included classes, by index.
    /// - Throws: A query error for a path that the classes do not have.
    static func classes(_ query: PBQuery, from type: Int, _ schema: Schema) throws(SluiceError) -> Set<Int> {
        guard query.include.count <= Limits.includePaths else {
            throw SluiceError(
                .queryTooLarge,
                "A subscription to class \(schema.types[type].name) includes links by \(query.include.count) paths; the limit is "
                    + "\(Limits.includePaths).",
                fix: "Include fewer links, or subscribe to the linked classes themselves.")
        }
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

    /// Returns the path up to the first link that the user may not read.
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

    /// Checks the number of queries and paths of a set, before any of them is read.
    /// - Throws: `queryTooLarge` beyond `Limits.setQueries` and `Limits.setIncludePaths`.
    static func checkSize(ofSet queries: [PBQuery]) throws(SluiceError) {
        guard queries.count <= Limits.setQueries else {
            throw SluiceError(.queryTooLarge, "The set has \(queries.count) queries; the limit is \(Limits.setQueries).")
        }
        let paths = queries.reduce(0) { $0 + $1.include.count }
        guard paths <= Limits.setIncludePaths else {
            throw SluiceError(
                .queryTooLarge, "The set includes links by \(paths) paths; the limit is \(Limits.setIncludePaths).",
                fix: "Include fewer links, or subscribe to the linked classes themselves.")
        }
    }

    private static func steps(_ text: String, from type: Int, _ schema: Schema) throws(SluiceError) -> [Step] {
        var steps: [Step] = []
        // A backward link has three names. What exceeds the bound stays in the last one.
        var names = text.split(separator: ".", maxSplits: 3 * Limits.includeLinks, omittingEmptySubsequences: false).map(String.init)[...]
        let path = text.utf8.count <= 200 ? text : "\(text.prefix(200))…"
        var current = type
        while let name = names.popFirst() {
            guard steps.count < Limits.includeLinks else {
                throw SluiceError(
                    .queryTooLarge, "The path \(path) has more than \(Limits.includeLinks) links.",
                    fix: "Include fewer links, or subscribe to the linked class itself.")
            }
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
