import SluiceCore

extension BoundQuery {
    /// The sorting by the row's own values, the most significant first: all that the suffixes do, or nil when they do anything else.
    package var ownSortKeys: [(property: Int, ascending: Bool)]? {
        var keys: [(property: Int, ascending: Bool)] = []
        for suffix in suffixes {
            guard case .sort(let next) = suffix else { return nil }
            var own: [(property: Int, ascending: Bool)] = []
            for key in next {
                guard key.path.result == .values, key.path.steps.count == 2, key.path.steps[0] == .variable(0),
                    case .property(let index) = key.path.steps[1]
                else { return nil }
                own.append((index, key.ascending))
            }
            keys = own + keys
        }
        return keys
    }

    /// Indices of the types whose rows decide what the query selects and in what order; nil: all may.
    package var readTypes: Set<Int>? {
        var reads = TypeReads()
        if let index = schema.index(of: type.name) { reads.types.insert(index) }
        reads.take(condition)
        for suffix in suffixes {
            switch suffix {
            case .sort(let keys): for key in keys { reads.take(key.path) }
            case .distinct(let paths): for path in paths { reads.take(path) }
            case .limit: break
            }
        }
        return reads.isKnown ? reads.types : nil
    }
}

private struct TypeReads {
    var types: Set<Int> = []
    var isKnown = true

    mutating func take(_ condition: BoundCondition) {
        switch condition {
        case .constant: break
        case .and(let parts), .or(let parts): for part in parts { take(part) }
        case .not(let inner): take(inner)
        case .compare(let comparison, _):
            take(comparison.left.operand)
            take(comparison.right.operand)
        case .fullText(let side, _), .within(let side, _): take(side.operand)
        }
    }

    private mutating func take(_ operand: BoundOperand) {
        switch operand {
        case .constant, .constants: break
        case .path(let path): take(path)
        case .aggregate(let aggregate):
            take(aggregate.collection)
            if let element = aggregate.element { take(element) }
        case .arithmetic(let left, _, let right):
            take(left)
            take(right)
        case .subqueryCount(let path, depth: _, let condition):
            take(path)
            take(condition)
        }
    }

    mutating func take(_ path: BoundPath) {
        if path.result == .incomingCount { isKnown = false }
        for step in path.steps {
            switch step {
            case .follow(let type), .incoming(let type, property: _): types.insert(type)
            default: break
            }
        }
    }
}
