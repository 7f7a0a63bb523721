import SluiceCore

/// Runs a compiled query. Values are produced one by one, and the walk ends with the first that decides.
struct GraphMachine<Graph: ObjectGraph> {
    let graph: Graph
    let schema: Schema

    func run(_ code: GraphCode, _ objects: [GraphObject]) -> Bool {
        var next = code.entry
        while next >= 0 {
            let instruction = code.instructions[next]
            next = holds(instruction.test, objects) ? instruction.onTrue : instruction.onFalse
        }
        return next == GraphCode.accept
    }

    private func holds(_ test: GraphInstruction.Test, _ objects: [GraphObject]) -> Bool {
        switch test {
        case .program(let program, let predicate): return holds(program, predicate, objects[objects.count - 1])
        case .compare(let left, let outer, let test, let inner, let right):
            // The right side is evaluated once; the left one only as far as needed.
            let others = values(right, objects)
            return quantified(outer) { body in
                each(left, objects) { l in body(quantified(inner) { each(others, test, l, $0) }) }
            }
        case .pairs(let left, let test, let right, let isSet):
            var (l, r) = (values(left, objects), values(right, objects))
            if isSet { (l, r) = (SortOrder.set(l), SortOrder.set(r)) }
            if l.count != r.count { return test.comparison == .notEqual }
            for index in l.indices where !test.holds(l[index], r[index]) { return false }
            return true
        case .fullText(let operand, let quantifier, let search):
            return quantified(quantifier) { body in
                each(operand, objects) { value in if case .string(let text) = value { body(search.matches(text)) } else { body(false) } }
            }
        case .within(let path, let quantifier, let geometry):
            return quantified(quantifier) { body in
                walk(path, objects) { node in
                    guard case .object(let object) = node, let place = object.place else { return body(false) }
                    return body(geometry.contains(place))
                }
            }
        }
    }

    private func holds(_ program: Program, _ predicate: Predicate, _ object: GraphObject) -> Bool {
        switch object.content {
        case .view(_, let row): return program.matches(row)
        // A row that the graph does not contain is evaluated as a tree.
        case .row(let key, let row): return graph.withView(key, of: object.type) { program.matches($0) } ?? predicate.matches(row)
        case .embedded: return TreeEvaluator.evaluate(predicate.bound, in: predicate.type) { object.value($0) }
        }
    }

    /// - Parameter run: Calls its argument for every element until that returns `false`.
    private func quantified(_ quantifier: Quantifier, _ run: ((Bool) -> Bool) -> Void) -> Bool {
        // The first `true` decides ANY and NONE, the first `false` decides ALL.
        let decides = quantifier != .all
        var isDecided = false
        run { holds in
            isDecided = holds == decides
            return !isDecided
        }
        return isDecided == (quantifier == .any)
    }

    private func each(_ values: [Value], _ test: PairTest, _ left: Value, _ body: (Bool) -> Bool) {
        for value in values where !body(test.holds(left, value)) { return }
    }

    // MARK: Values

    /// Calls `body` with each value until it returns `false`.
    private func each(_ operand: CompiledOperand, _ objects: [GraphObject], _ body: (Value) -> Bool) {
        switch operand {
        case .constants(let values): for value in values where !body(value) { return }
        case .path(let path): each(path, objects, body)
        case .aggregate(let aggregate): each(aggregate, objects, body)
        case .arithmetic(let left, let arithmetic, let right):
            let others = values(right, objects)
            each(left, objects) { l in
                for r in others where !body(Calculation.apply(arithmetic, l, r)) { return false }
                return true
            }
        case .subqueryCount(let path, let depth, let code):
            var count: Int64 = 0
            walk(path, objects) { node in
                guard case .object(let object) = node else { return true }
                if run(code, Array(objects.prefix(depth)) + [object]) { count += 1 }
                return true
            }
            _ = body(.int(count))
        }
    }

    private func values(_ operand: CompiledOperand, _ objects: [GraphObject]) -> [Value] {
        if case .constants(let values) = operand { return values }
        var values: [Value] = []
        each(operand, objects) {
            values.append($0)
            return true
        }
        return values
    }

    private func each(_ path: BoundPath, _ objects: [GraphObject], _ body: (Value) -> Bool) {
        switch path.result {
        case .values: walk(path, objects) { body($0.value) }
        case .size: walk(path, objects) { body($0.size) }
        case .types: walk(path, objects) { body(.int($0.types.rawValue)) }
        case .objectCount:
            var count: Int64 = 0
            let countsNull = path.steps.last == .every
            walk(path, objects) { node in
                if countsNull || !node.value.isNull { count += 1 }
                return true
            }
            _ = body(.int(count))
        case .incomingCount:
            var count = 0
            walk(path, objects) { node in
                guard case .object(let object) = node else { return true }
                switch object.content {
                case .row(let key, _), .view(let key, _): count += graph.incomingCount(to: key, of: object.type)
                case .embedded: count += 1
                }
                return true
            }
            _ = body(.int(Int64(count)))
        }
    }

    private func each(_ aggregate: BoundAggregate, _ objects: [GraphObject], _ body: (Value) -> Bool) {
        guard let element = aggregate.element else {
            return walk(aggregate.collection, objects) { node in
                var members: [Value] = []
                _ = walk(.every, node, many: true) { member in
                    members.append(member.value)
                    return true
                }
                return body(Aggregation.apply(aggregate.function, members, of: aggregate.type))
            }
        }
        var values: [Value] = []
        walk(aggregate.collection, objects) { node in
            walk(element.steps[...], node, many: true) {
                values.append($0.value)
                return true
            }
        }
        _ = body(Aggregation.apply(aggregate.function, values, of: aggregate.type))
    }

    // MARK: Steps

    private func walk(_ path: BoundPath, _ objects: [GraphObject], _ body: (GraphNode) -> Bool) {
        guard case .variable(let index)? = path.steps.first, index < objects.count else { return }
        _ = walk(path.steps.dropFirst(), .object(objects[index]), many: false, body)
    }

    /// - Returns: `false` if `body` has ended the walk.
    private func walk(_ steps: ArraySlice<BoundStep>, _ node: GraphNode, many: Bool, _ body: (GraphNode) -> Bool) -> Bool {
        guard let step = steps.first else { return body(node) }
        let rest = steps.dropFirst()
        let next = many || step.isMany
        return walk(step, node, many: many) { walk(rest, $0, many: next, body) }
    }

    private func walk(_ step: BoundStep, _ node: GraphNode, many: Bool, _ body: (GraphNode) -> Bool) -> Bool {
        switch step {
        case .variable: return body(node)
        case .property(let index):
            guard case .object(let object) = node else { return body(.value(.null)) }
            return body(.stored(object.value(index), of: object, property: index))
        case .follow(let type):
            let (key, target) = (node.value, schema.types[type])
            if !key.isNull, let row = graph.row(key, of: target) {
                return body(.object(GraphObject(type: target, content: .row(key: key, row))))
            }
        case .embedded(let type):
            if case .stored(.dictionary(let values), let owner, let property) = node {
                return body(
                    .object(GraphObject(type: schema.types[type], content: .embedded(values, owner: owner, property: property))))
            }
        case .link(let type):
            if !node.value.isNull { return body(.value(.link(type: type, key: node.value))) }
        case .incoming(let type, let property): return incoming(node, schema.types[type], property, body)
        case .every:
            for member in node.members where !body(member) { return false }
            return true
        case .keys:
            guard case .dictionary(let pairs) = node.value else { return true }
            for key in pairs.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) where !body(.value(.string(key))) {
                return false
            }
            return true
        case .index, .first, .last, .key: return body(node.member(step))
        case .length: return body(.value(node.value.isNull ? .null : node.size))
        }
        // A null link yields nothing among several things, and one null alone.
        return many || body(.value(.null))
    }

    private func incoming(_ node: GraphNode, _ source: ObjectType, _ property: Int, _ body: (GraphNode) -> Bool) -> Bool {
        guard case .object(let object) = node else { return true }
        switch object.content {
        case .embedded(_, let owner, let own):
            guard owner.type.name == source.name, own == property else { return true }
            return body(.object(owner))
        case .row(let key, _), .view(let key, _):
            for owner in graph.incoming(to: key, of: object.type, from: source, property: property) {
                guard let row = graph.row(owner, of: source) else { continue }
                guard body(.object(GraphObject(type: source, content: .row(key: owner, row)))) else { return false }
            }
            return true
        }
    }
}
