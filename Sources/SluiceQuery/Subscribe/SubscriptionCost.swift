import SluiceCore

/// The bounds of a subscription's time and memory for any text of a client. The parser bounds the depth.
enum SubscriptionCost {
    /// Checks the text and the arguments before binding.
    static func check(_ query: Query, _ arguments: [Value], of type: ObjectType) throws(SluiceError) {
        let bytes = arguments.reduce(query.source.utf8.count) { $0 + size($1) }
        guard bytes <= Limits.queryBytes else { throw tooLarge(type, "has \(bytes) bytes", Limits.queryBytes) }
        var count = Count(arguments: arguments)
        query.tree.root.visitComparisons { count.add($0) }
        if count.longestList > Limits.inListValues {
            throw tooLarge(type, "has a list of \(count.longestList) values", Limits.inListValues)
        }
        if count.values > Limits.queryListValues {
            throw tooLarge(type, "has lists of \(count.values) values together", Limits.queryListValues)
        }
        if count.longestPattern > Limits.patternBytes {
            throw tooLarge(type, "has a pattern of LIKE or CONTAINS with \(count.longestPattern) bytes", Limits.patternBytes)
        }
        if count.patterns > Limits.queryPatternBytes {
            throw tooLarge(type, "has patterns of LIKE and CONTAINS with \(count.patterns) bytes together", Limits.queryPatternBytes)
        }
        if count.vertices > Limits.shapeVertices {
            throw tooLarge(type, "has shapes of \(count.vertices) vertices together", Limits.shapeVertices)
        }
        try check(leaves: count.leaves, type)
    }

    /// Checks the result of binding: a list under `!=` becomes a comparison for each of its values.
    static func check(_ predicate: Predicate) throws(SluiceError) { try check(leaves: predicate.bound.leafCount, predicate.type) }

    private static func check(leaves: Int, _ type: ObjectType) throws(SluiceError) {
        if leaves > Limits.queryLeaves { throw tooLarge(type, "has \(leaves) comparisons", Limits.queryLeaves) }
    }

    private static func tooLarge(_ type: ObjectType, _ what: String, _ limit: Int) -> SluiceError {
        SluiceError(.queryTooLarge, "Invalid query: the query for \"\(type.name)\" \(what), over the limit of \(limit).")
    }

    private static func size(_ value: Value) -> Int {
        switch value {
        case .string(let text): text.utf8.count
        case .binary(let bytes): bytes.count
        case .list(let members): members.reduce(0) { $0 + size($1) }
        case .dictionary(let members): members.reduce(0) { $0 + $1.key.utf8.count + size($1.value) }
        case .link(_, let key): size(key)
        case .null, .bool, .int, .float, .double, .decimal, .timestamp, .objectId, .uuid: 1
        }
    }

    private struct Count {
        let arguments: [Value]
        var leaves = 0
        var longestList = 0
        var values = 0
        var longestPattern = 0
        var patterns = 0
        var vertices = 0

        mutating func add(_ comparison: SyntaxComparison) {
            leaves += 1
            let isPattern = comparison.comparison == .like || comparison.comparison == .contains
            for operand in [comparison.left, comparison.right] {
                if let count = listCount(operand) {
                    longestList = max(longestList, count)
                    values += count
                }
                if case .shape(let shape) = operand.kind { vertices += Count.vertices(shape) }
                if isPattern {
                    let bytes = patternBytes(operand)
                    longestPattern = max(longestPattern, bytes)
                    patterns += bytes
                }
            }
        }

        private static func vertices(_ shape: GeoShape) -> Int {
            switch shape {
            case .box, .circle: 4
            case .polygon(let loops): loops.reduce(0) { $0 + $1.count }
            }
        }

        private func argument(_ number: Int) -> Value? { arguments.indices.contains(number) ? arguments[number] : nil }

        private func listCount(_ operand: SyntaxOperand) -> Int? {
            switch operand.kind {
            case .list(let members, _): return members.count
            case .argument(let number, _): if case .list(let members)? = argument(number) { return members.count }
            default: break
            }
            return nil
        }

        private func patternBytes(_ operand: SyntaxOperand) -> Int {
            switch operand.kind {
            case .literal(.string(let text)): text.utf8.count
            case .literal(.bytes(let bytes)), .literal(.binary(let bytes)): bytes.count
            case .argument(let number, _): argument(number).map(SubscriptionCost.size) ?? 0
            default: 0
            }
        }
    }
}
