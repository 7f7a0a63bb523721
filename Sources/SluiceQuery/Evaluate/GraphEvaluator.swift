package import SluiceCore

/// The reference evaluation of a query of the whole language. Tests compare every other evaluation with it.
struct GraphEvaluator {
    let schema: Schema
    let graph: any ObjectGraph

    /// - Parameter objects: The row, then the objects of the enclosing SUBQUERYs.
    func holds(_ condition: BoundCondition, _ objects: [GraphObject]) -> Bool {
        switch condition {
        case .constant(let value): return value
        case .and(let parts): return parts.allSatisfy { holds($0, objects) }
        case .or(let parts): return parts.contains { holds($0, objects) }
        case .not(let inner): return !holds(inner, objects)
        case .compare(let comparison): return holds(comparison, objects)
        case .fullText(let side, let search, _):
            return quantified(side.quantifier, values(side.operand, objects)) { value in
                if case .string(let text) = value { search.matches(text) } else { false }
            }
        case .within(let side, let geometry):
            guard case .path(let path) = side.operand else { return false }
            return quantified(side.quantifier, nodes(path, objects)) { node in
                guard case .object(let object) = node, let place = object.place else { return false }
                return geometry.contains(place)
            }
        }
    }

    private func quantified<T>(_ quantifier: Quantifier, _ elements: [T], _ holds: (T) -> Bool) -> Bool {
        switch quantifier {
        case .any: elements.contains(where: holds)
        case .all: elements.allSatisfy(holds)
        case .none: !elements.contains(where: holds)
        }
    }

    private func holds(_ comparison: BoundComparison, _ objects: [GraphObject]) -> Bool {
        let left = values(comparison.left.operand, objects)
        let right = values(comparison.right.operand, objects)
        let test = PairTest(comparison)
        if case .pairs(_, let isSet) = comparison.meaning {
            return isSet ? holdsPairwise(test, SortOrder.set(left), SortOrder.set(right)) : holdsPairwise(test, left, right)
        }
        return quantified(comparison.left.quantifier, left) { l in
            quantified(comparison.right.quantifier, right) { r in test.holds(l, r) }
        }
    }

    private func holdsPairwise(_ test: PairTest, _ left: [Value], _ right: [Value]) -> Bool {
        if left.count != right.count { return test.comparison == .notEqual }
        return zip(left, right).allSatisfy { test.holds($0, $1) }
    }

    // MARK: Values

    func values(_ operand: BoundOperand, _ objects: [GraphObject]) -> [Value] {
        switch operand {
        case .constant(let value): return [value]
        case .constants(let values): return values
        case .path(let path): return values(path, objects)
        case .aggregate(let aggregate): return values(aggregate, objects)
        case .arithmetic(let left, let arithmetic, let right):
            let right = values(right, objects)
            return values(left, objects).flatMap { l in right.map { Calculation.apply(arithmetic, l, $0) } }
        case .subqueryCount(let path, let depth, let condition):
            let count = nodes(path, objects).count { node in
                guard case .object(let object) = node else { return false }
                return holds(condition, Array(objects.prefix(depth)) + [object])
            }
            return [.int(Int64(count))]
        }
    }

    func values(_ path: BoundPath, _ objects: [GraphObject]) -> [Value] {
        let nodes = nodes(path, objects)
        switch path.result {
        case .values: return nodes.map(\.value)
        case .size: return nodes.map(\.size)
        case .types: return nodes.map { .int($0.types.rawValue) }
        case .objectCount:
            // `list.@count` counts every element. Other paths do not count null.
            let count = path.steps.last == .every ? nodes.count : nodes.count { !$0.value.isNull }
            return [.int(Int64(count))]
        case .incomingCount: return [.int(nodes.reduce(0) { $0 + incomingCount($1) })]
        }
    }

    private func incomingCount(_ node: GraphNode) -> Int64 {
        guard case .object(let object) = node else { return 0 }
        switch object.content {
        case .row(let key, _), .view(let key, _): return Int64(graph.incomingCount(to: key, of: object.type))
        case .embedded: return 1
        }
    }

    private func values(_ aggregate: BoundAggregate, _ objects: [GraphObject]) -> [Value] {
        let nodes = nodes(aggregate.collection, objects)
        guard let element = aggregate.element else {
            return nodes.map { Aggregation.apply(aggregate.function, $0.members.map(\.value), of: aggregate.type) }
        }
        let values = nodes.flatMap { node in nodes_(element.steps, [node], many: true).map(\.value) }
        return [Aggregation.apply(aggregate.function, values, of: aggregate.type)]
    }

    // MARK: Steps

    func nodes(_ path: BoundPath, _ objects: [GraphObject]) -> [GraphNode] {
        guard case .variable(let index)? = path.steps.first, index < objects.count else { return [] }
        return nodes_(Array(path.steps.dropFirst()), [.object(objects[index])], many: false)
    }

    private func nodes_(_ steps: [BoundStep], _ start: [GraphNode], many: Bool) -> [GraphNode] {
        var nodes = start
        var many = many
        for step in steps {
            nodes = nodes.flatMap { next($0, step, many: many) }
            many = many || step.isMany
        }
        return nodes
    }

    /// - Parameter many: `true` if the path has passed several things. A null link then yields nothing instead of null.
    private func next(_ node: GraphNode, _ step: BoundStep, many: Bool) -> [GraphNode] {
        let missing: [GraphNode] = many ? [] : [.value(.null)]
        switch step {
        case .variable: return [node]
        case .property(let index):
            guard case .object(let object) = node else { return [.value(.null)] }
            return [.stored(object.value(index), of: object, property: index)]
        case .follow(let type):
            let target = schema.types[type]
            guard !node.value.isNull, let row = graph.row(node.value, of: target) else { return missing }
            return [.object(GraphObject(type: target, content: .row(key: node.value, row)))]
        case .embedded(let type):
            guard case .stored(.dictionary(let values), let owner, let property) = node else { return missing }
            return [.object(GraphObject(type: schema.types[type], content: .embedded(values, owner: owner, property: property)))]
        case .incoming(let type, let property): return incoming(node, schema.types[type], property)
        case .link(let type): return node.value.isNull ? missing : [.value(.link(type: type, key: node.value))]
        case .every: return node.members
        case .keys:
            guard case .dictionary(let pairs) = node.value else { return [] }
            return pairs.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { .value(.string($0)) }
        case .index, .first, .last, .key: return [node.member(step)]
        case .length: return [.value(node.value.isNull ? .null : node.size)]
        }
    }

    private func incoming(_ node: GraphNode, _ source: ObjectType, _ property: Int) -> [GraphNode] {
        guard case .object(let object) = node else { return [] }
        switch object.content {
        case .embedded(_, let owner, let own):
            return owner.type.name == source.name && own == property ? [.object(owner)] : []
        case .row(let key, _), .view(let key, _):
            return graph.incoming(to: key, of: object.type, from: source, property: property).compactMap { owner in
                graph.row(owner, of: source).map { .object(GraphObject(type: source, content: .row(key: owner, $0))) }
            }
        }
    }
}

extension GraphObject {
    /// The place of an object in GeoJSON's form, or nil if it is not a point.
    var place: Geometry.Place? {
        guard let type = type.index(of: "type"), let coordinates = self.type.index(of: "coordinates") else { return nil }
        return Geometry.Place(type: value(type), coordinates: value(coordinates))
    }
}

extension Value {
    /// The place of an embedded object in GeoJSON's form, or nil if it is not a point.
    package var place: Geometry.Place? {
        guard case .dictionary(let values) = self else { return nil }
        return Geometry.Place(type: values["type"], coordinates: values["coordinates"])
    }
}

extension Geometry.Place {
    fileprivate init?(type: Value?, coordinates: Value?) {
        guard type == .string("Point"), case .list(let numbers)? = coordinates, numbers.count >= 2,
            case .double(let longitude) = numbers[0], case .double(let latitude) = numbers[1]
        else { return nil }
        self.init(longitude: longitude, latitude: latitude)
    }
}
