import SluiceCore

/// One step over a link between objects. Classes are indices into the schema.
package enum LinkHop: Hashable, Sendable {
    /// From objects of class `from` to those of class `to` that a property leads to, directly, in a collection or through embedded objects.
    case forward(from: Int, property: Int, to: Int)
    /// From objects of class `to` to those of class `from` that link to them by a property.
    case backward(to: Int, from: Int, property: Int)
}

/// All paths over links from a row to the objects that a query reads.
package struct LinkWays: Hashable, Sendable {
    /// The objects at the end of a path.
    package struct Place: Hashable, Sendable {
        /// The class of the objects.
        package let type: Int
        /// The previous place, which precedes this one in `places`, and the step from there. Nil for the row itself.
        package let origin: Origin?
    }

    package struct Origin: Hashable, Sendable {
        package let place: Int
        package let hop: LinkHop
    }

    /// The places, with the row itself first.
    package private(set) var places: [Place]

    init(of type: Int) { places = [Place(type: type, origin: nil)] }

    /// `true` if the query follows no link.
    package var isEmpty: Bool { places.count == 1 }

    package var types: Set<Int> { Set(places.map(\.type)) }
    package var hops: Set<LinkHop> { Set(places.compactMap { $0.origin?.hop }) }

    /// Returns the index of the place that a step leads to, and adds it if it is new.
    mutating func follow(_ hop: LinkHop, from place: Int) -> Int {
        let type =
            switch hop {
            case .forward(from: _, property: _, let to): to
            case .backward(to: _, let from, property: _): from
            }
        let next = Place(type: type, origin: Origin(place: place, hop: hop))
        if let known = places.firstIndex(of: next) { return known }
        places.append(next)
        return places.count - 1
    }
}

extension BoundQuery {
    /// The paths of condition and suffixes. Only changes of objects at these places affect the selection and its order.
    package var ways: LinkWays { ways(condition, suffixes) }

    /// The paths of the suffixes alone.
    package var waysOfArrangement: LinkWays { ways(.constant(true), suffixes) }

    private func ways(_ condition: BoundCondition, _ suffixes: [BoundSuffix]) -> LinkWays {
        var reader = WayReader(schema: schema, type: schema.index(of: type.name) ?? 0)
        reader.take(condition)
        for suffix in suffixes {
            switch suffix {
            case .sort(let keys): for key in keys { reader.take(key.path) }
            case .distinct(let paths): for path in paths { reader.take(path) }
            case .limit: break
            }
        }
        return reader.ways
    }
}

private struct WayReader {
    /// The current position of a path.
    struct Stand {
        var place: Int
        /// The property of the object that leads to an embedded object or a value.
        var property: Int?
        var isEmbedded = false
    }

    let schema: Schema
    private(set) var ways: LinkWays
    /// The positions of the row, then of the objects of the enclosing SUBQUERYs.
    private var scopes: [Stand]

    init(schema: Schema, type: Int) {
        self.schema = schema
        ways = LinkWays(of: type)
        scopes = [Stand(place: 0)]
    }

    mutating func take(_ condition: BoundCondition) {
        switch condition {
        case .constant: break
        case .and(let parts), .or(let parts): for part in parts { take(part) }
        case .not(let inner): take(inner)
        case .compare(let comparison):
            take(comparison.left.operand)
            take(comparison.right.operand)
        case .fullText(let side, _, _), .within(let side, _): take(side.operand)
        }
    }

    private mutating func take(_ operand: BoundOperand) {
        switch operand {
        case .constant, .constants: break
        case .path(let path): take(path)
        case .aggregate(let aggregate):
            let collected = take(aggregate.collection)
            if let element = aggregate.element { _ = walk(element.steps, from: collected) }
        case .arithmetic(let left, _, let right):
            take(left)
            take(right)
        case .subqueryCount(let path, let depth, let condition):
            let outer = scopes
            scopes = scopes.prefix(depth) + [take(path)]
            take(condition)
            scopes = outer
        }
    }

    @discardableResult
    mutating func take(_ path: BoundPath) -> Stand {
        guard case .variable(let number)? = path.steps.first, scopes.indices.contains(number) else { return scopes[0] }
        let end = walk(path.steps.dropFirst(), from: scopes[number])
        // An embedded object has exactly one link to it, from its owner.
        if path.result == .incomingCount, !end.isEmbedded { followAllBack(from: end.place) }
        return end
    }

    private mutating func walk(_ steps: some Sequence<BoundStep>, from start: Stand) -> Stand {
        var stand = start
        for step in steps {
            switch step {
            case .property(let index): if !stand.isEmbedded { stand.property = index }
            case .embedded: stand.isEmbedded = true
            case .follow(let target):
                guard let property = stand.property else { continue }
                let hop = LinkHop.forward(from: ways.places[stand.place].type, property: property, to: target)
                stand = Stand(place: ways.follow(hop, from: stand.place))
            case .incoming(let source, let property):
                if stand.isEmbedded {
                    // Returns to the container of the embedded object, which is part of the same object.
                    stand.isEmbedded = schema.types[source].kind == .embedded
                    if !stand.isEmbedded { stand.property = nil }
                } else {
                    let hop = LinkHop.backward(to: ways.places[stand.place].type, from: source, property: property)
                    stand = Stand(place: ways.follow(hop, from: stand.place))
                }
            case .variable, .link, .every, .keys, .index, .first, .last, .key, .length: break
            }
        }
        return stand
    }

    /// Adds the steps to everything that may link to the objects of a place.
    private mutating func followAllBack(from place: Int) {
        let target = ways.places[place].type
        let walk = LinkWalk(schema: schema)
        for (source, type) in schema.types.enumerated() where type.kind == .topLevel {
            for (index, property) in type.properties.enumerated() where walk.canLink(property, to: schema.types[target].name) {
                _ = ways.follow(.backward(to: target, from: source, property: index), from: place)
            }
        }
    }
}
