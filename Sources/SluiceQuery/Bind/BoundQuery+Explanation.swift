import SluiceCore

extension BoundQuery {
    /// The bound condition as an indented tree, for people: every comparison with the types of its sides and its means of evaluation.
    package var explanation: String {
        let explanation = Explanation(schema: schema, types: [type])
        return (explanation.lines(condition, "") + suffixes.map(explanation.line)).joined(separator: "\n")
    }
}

private struct Explanation {
    let schema: Schema
    /// The class of the row, then those of the enclosing SUBQUERYs.
    let types: [ObjectType]

    func line(_ suffix: BoundSuffix) -> String {
        switch suffix {
        case .sort(let keys):
            "sort by " + keys.map { "\(text($0.path)) \($0.ascending ? "ascending" : "descending")" }.joined(separator: ", ")
        case .distinct(let paths): "distinct by " + paths.map { text($0) }.joined(separator: ", ")
        case .limit(let count): "limit \(count)"
        }
    }

    func lines(_ condition: BoundCondition, _ indent: String) -> [String] {
        switch condition {
        case .constant(let value): return [indent + (value ? "true" : "false")]
        case .and(let parts): return [indent + "and"] + parts.flatMap { lines($0, indent + "  ") }
        case .or(let parts): return [indent + "or"] + parts.flatMap { lines($0, indent + "  ") }
        case .not(let inner): return [indent + "not"] + lines(inner, indent + "  ")
        case .compare(let comparison):
            let variable = types.count - 1
            let isOnRow = condition.predicate(on: types[variable], variable: variable) != nil
            let head = "\(indent)\(text(comparison)), \(way(comparison, isOnRow: isOnRow))"
            return [head] + inner(comparison.left.operand, indent) + inner(comparison.right.operand, indent)
        case .fullText(let side, let search, _):
            let words = search.terms.map {
                ($0.isExcluded ? "-" : "") + String(decoding: $0.word, as: UTF8.self) + ($0.isPrefix ? "*" : "")
            }
            return ["\(indent)\(text(side)) contains the words \(words.joined(separator: " "))"]
        case .within(let side, let geometry): return ["\(indent)\(text(side)) is within \(geometry.kind)"]
        }
    }

    private func way(_ comparison: BoundComparison, isOnRow: Bool) -> String {
        switch comparison.meaning {
        case .values: isOnRow ? "on the row" : "over the graph"
        case .types: "by the names of types"
        case .pairs: "pair by pair"
        }
    }

    private func text(_ comparison: BoundComparison) -> String {
        "\(text(comparison.left)) \(comparison.test.syntax.rawValue)\(comparison.foldsCase ? "[c]" : "") \(text(comparison.right))"
    }

    /// The conditions of the subqueries in an operand.
    private func inner(_ operand: BoundOperand, _ indent: String) -> [String] {
        switch operand {
        case .subqueryCount(let path, let depth, let condition):
            guard case .value(.link(let name)) = path.type, let type = schema[name] else { return [] }
            let inner = Explanation(schema: schema, types: types + [type])
            return ["\(indent)  where $\(depth) is each \(name)"] + inner.lines(condition, indent + "    ")
        case .arithmetic(let left, _, let right): return inner(left, indent) + inner(right, indent)
        case .constant, .constants, .path, .aggregate: return []
        }
    }

    // MARK: Operands

    private func text(_ side: BoundSide) -> String {
        let operand =
            if side.type == .typeName, case .constant(.int(let mask)) = side.operand {
                TypeMask(rawValue: mask).name
            } else {
                text(side.operand)
            }
        return "\(side.isMany ? "\(side.quantifier.rawValue) " : "")\(operand) (\(side.type.name))"
    }

    private func text(_ operand: BoundOperand) -> String {
        switch operand {
        case .constant(let value): "\(value)"
        case .constants(let values): "{\(values.map { "\($0)" }.joined(separator: ", "))}"
        case .path(let path): text(path)
        case .aggregate(let aggregate):
            text(aggregate.collection) + (aggregate.element.map { element(of: aggregate.collection, $0) } ?? "")
                + ".\(aggregate.function.rawValue)"
        case .arithmetic(let left, let arithmetic, let right): "(\(text(left)) \(arithmetic.rawValue) \(text(right)))"
        case .subqueryCount(let path, let depth, _): "count of $\(depth) in \(text(path))"
        }
    }

    private func element(of collection: BoundPath, _ element: BoundPath) -> String {
        guard case .value(.link(let name)) = collection.type, let type = schema[name] else { return "" }
        return text(element.steps, from: type)
    }

    private func text(_ path: BoundPath) -> String {
        let result =
            switch path.result {
            case .values: ""
            case .size, .objectCount, .incomingCount: ".@count"
            case .types: ".@type"
            }
        guard case .variable(let depth)? = path.steps.first, depth < types.count else { return result }
        return (depth == 0 ? types[0].name : "$\(depth)") + text(path.steps.dropFirst(), from: types[depth]) + result
    }

    private func text(_ steps: some Sequence<BoundStep>, from start: ObjectType) -> String {
        var (text, type) = ("", start)
        for step in steps {
            switch step {
            case .variable, .link: break
            case .property(let index): text += ".\(type.properties[index].name)"
            case .follow(let index):
                type = schema.types[index]
                text += "→\(type.name)"
            case .embedded(let index):
                type = schema.types[index]
                text += "⊃\(type.name)"
            case .incoming(let index, let property):
                type = schema.types[index]
                text += "←\(type.name).\(type.properties[property].name)"
            case .every: text += "[*]"
            case .keys: text += ".@keys"
            case .index(let index): text += "[\(index)]"
            case .first: text += "[FIRST]"
            case .last: text += "[LAST]"
            case .key(let key): text += "['\(key)']"
            case .length: text += ".length"
            }
        }
        return text
    }
}

extension Geometry {
    fileprivate var kind: String {
        switch self {
        case .box: "a box"
        case .circle: "a circle"
        case .polygon(let loops): loops.count > 1 ? "a polygon with \(loops.count - 1) holes" : "a polygon"
        }
    }
}
