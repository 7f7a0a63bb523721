import SluiceCore
import SluiceQuery
import SluiceWire

/// Parses the limit, order and DISTINCTs of a query, and drops the paths that the user may not read.
///
/// A property that the user may not read is null in every object, and so is a property behind such a link. Neither orders nor
/// distinguishes objects.
struct MemberChoice {
    let schema: Schema
    /// The class of the query.
    let type: Int
    /// The indices of a class's properties that count as null.
    let hidden: (ObjectType) -> Set<Int>
    /// The objects of a class that the user may read.
    let readable: (Int) throws(SluiceError) -> Predicate

    /// Returns the choice of the query.
    /// - Throws: A query error for a limit, an order or a DISTINCT that the class cannot have.
    func choice(_ query: PBQuery) throws(SluiceError) -> ObjectChoice {
        guard query.limit > 0 else {
            throw SluiceError(.queryDistinct, "Class \(schema.types[type].name) has a DISTINCT without a limit.", fix: "Give a limit.")
        }
        guard query.limit <= Limits.inListValues else {
            throw SluiceError(
                .queryLimit, "A limit of \(query.limit) is more than the \(Limits.inListValues) objects that one can have.")
        }
        try checkSize(query)
        var distinct: [ObjectChoice.Distinct] = []
        for part in query.distinct {
            guard !part.paths.isEmpty else {
                throw SluiceError(
                    .queryDistinct, "A DISTINCT on class \(schema.types[type].name) names no property.", fix: "Name at least one.")
            }
            var paths: [ObjectChoice.Path] = []
            for path in part.paths {
                if let path = try visible(try Self.parse(path, from: type, schema, .queryDistinct)) { paths.append(path) }
            }
            distinct.append(ObjectChoice.Distinct(paths: paths, order: try keys(part.sort)))
        }
        return ObjectChoice(limit: Int(query.limit), order: try keys(query.sort), distinct: distinct)
    }

    private func keys(_ sort: [PBSortKey]) throws(SluiceError) -> [ObjectChoice.Key] {
        var keys: [ObjectChoice.Key] = []
        for key in sort {
            guard let path = try visible(try Self.parse(key.path, from: type, schema, .querySort)) else { continue }
            keys.append(ObjectChoice.Key(path: path, isDescending: key.descending))
        }
        return keys
    }

    /// Checks the number of keys, since every object's value is read for each.
    /// - Throws: `queryTooLarge` beyond `Limits.orderKeys`.
    private func checkSize(_ query: PBQuery) throws(SluiceError) {
        let count = query.distinct.reduce(query.sort.count) { $0 + max($1.paths.count, 1) + $1.sort.count }
        guard count <= Limits.orderKeys else {
            throw SluiceError(
                .queryTooLarge,
                "A limit on class \(schema.types[type].name) counts by \(count) sort keys and paths of DISTINCT; the limit is \(Limits.orderKeys)."
            )
        }
    }

    /// Returns the path with the rules of its classes, or nil if its value is null in every object.
    private func visible(_ path: NamedPath) throws(SluiceError) -> ObjectChoice.Path? {
        var current = schema.types[type]
        var links: [ObjectChoice.Link] = []
        for (property, target) in path.links {
            if hidden(current).contains(property) { return nil }
            current = schema.types[target]
            links.append(ObjectChoice.Link(property: property, target: current, readable: try readable(target)))
        }
        return hidden(current).contains(path.property) ? nil : ObjectChoice.Path(links: links, property: path.property)
    }

    // MARK: Paths

    /// A path by indices of the schema.
    private struct NamedPath {
        var links: [(property: Int, target: Int)] = []
        var property: Int
    }

    /// Returns the classes that the order and the DISTINCTs of a query pass through, by index.
    /// - Throws: A query error for a path that the classes do not have.
    static func classes(_ query: PBQuery, from type: Int, _ schema: Schema) throws(SluiceError) -> Set<Int> {
        var classes: Set<Int> = []
        guard query.limit > 0 else { return classes }
        for key in query.sort + query.distinct.flatMap(\.sort) {
            classes.formUnion(try parse(key.path, from: type, schema, .querySort).links.map(\.target))
        }
        for path in query.distinct.flatMap(\.paths) {
            classes.formUnion(try parse(path, from: type, schema, .queryDistinct).links.map(\.target))
        }
        return classes
    }

    /// Parses a path of property names.
    /// - Parameter code: The code of the error for a property without an order.
    private static func parse(_ text: String, from type: Int, _ schema: Schema, _ code: ErrorCode) throws(SluiceError) -> NamedPath {
        let names = text.split(separator: ".", maxSplits: Limits.orderLinks + 1, omittingEmptySubsequences: false)
        guard names.count <= Limits.orderLinks + 1 else {
            throw SluiceError(
                .queryTooLarge, "The path \(text.prefix(200)) goes through more than \(Limits.orderLinks) links.",
                fix: "Copy the value into a property of a nearer class.")
        }
        var path = NamedPath(property: 0)
        var current = type
        for (place, name) in names.enumerated() {
            let objectType = schema.types[current]
            guard let index = objectType.index(of: String(name)) else {
                throw SluiceError(
                    .queryUnknownProperty,
                    "Class \(objectType.name) has no property \(name.prefix(200)), which the limit uses as a sort key.")
            }
            let property = objectType.properties[index]
            if place == names.count - 1 {
                guard property.ordersLimits else {
                    throw SluiceError(
                        code, "Property \(objectType.name).\(property.name) is \(property.typeText): a limit cannot count by it.",
                        fix: "Name a property with a single value, neither data nor mixed.")
                }
                path.property = index
                return path
            }
            guard property.collection == .none, case .link(let target) = property.type, let next = schema.index(of: target) else {
                throw SluiceError(
                    .queryLinkPath, "In the path \(text.prefix(200)), \(objectType.name).\(property.name) is \(property.typeText).",
                    fix: "Name links to one object each.")
            }
            path.links.append((index, next))
            current = next
        }
        return path
    }
}
