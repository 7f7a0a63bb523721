import SluiceCore

extension CompiledQuery {
    /// Indices of the properties of the row itself that the condition reads, so that nothing else needs to be read of a row that is lent;
    /// nil when that cannot be told: a path comes back to the row from something embedded in it.
    package var ownProperties: Set<Int>? {
        var reads = RowReads()
        reads.take(code, isRow: true)
        return reads.isKnown ? reads.properties : nil
    }

    /// Whether the condition reads anything but the row itself.
    package var needsGraph: Bool { program == nil }
}

private struct RowReads {
    var properties: Set<Int> = []
    var isKnown = true

    /// - Parameter isRow: whether the innermost object is the row.
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
            // What a SUBQUERY stands on may be embedded in the row.
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
