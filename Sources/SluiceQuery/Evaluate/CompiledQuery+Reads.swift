import SluiceCore

extension CompiledQuery {
    /// The indices of the row's own properties that the condition reads, so that a caller lends only those. Nil if they are unknown because
    /// a path returns to the row from an object embedded in it.
    package var ownProperties: Set<Int>? {
        var reads = RowReads()
        reads.take(code, isRow: true)
        return reads.isKnown ? reads.properties : nil
    }

    /// `true` if the condition reads more than the row itself.
    package var needsGraph: Bool { program == nil }
}

private struct RowReads {
    var properties: Set<Int> = []
    var isKnown = true

    /// - Parameter isRow: `true` if the innermost object is the row.
    mutating func take(_ code: GraphCode, isRow: Bool) {
        for instruction in code.instructions {
            switch instruction.test {
            case .program(_, let predicate): if isRow { properties.formUnion(predicate.properties) }
            case .compare(let left, _, _, _, let right), .pairs(let left, _, let right, isSet: _):
                take(left)
                take(right)
            case .fullText(let operand, _, _): take(operand)
            case .within(let path, _, _): take(path)
            }
        }
    }

    private mutating func take(_ operand: CompiledOperand) {
        switch operand {
        case .constants: break
        case .path(let path): take(path)
        case .aggregate(let aggregate): take(aggregate.collection)
        case .arithmetic(let left, _, let right):
            take(left)
            take(right)
        case .subqueryCount(let path, depth: _, let code):
            take(path)
            take(code, isRow: false)
        }
    }

    private mutating func take(_ path: BoundPath) {
        guard path.steps.first == .variable(0) else {
            // The object of a SUBQUERY may be embedded in the row.
            if path.steps.contains(where: \.isIncoming) { isKnown = false }
            return
        }
        if case .property(let index)? = path.steps.dropFirst().first { properties.insert(index) }
        let isEmbedded = path.steps.contains { if case .embedded = $0 { true } else { false } }
        if isEmbedded, path.steps.contains(where: \.isIncoming) { isKnown = false }
    }
}

extension BoundStep {
    fileprivate var isIncoming: Bool { if case .incoming = self { true } else { false } }
}
