import SluiceCore

/// Finds the place at which a tree is too deep for its canonical text to parse.
///
/// A text can be flatter than its tree, because precedence replaces parentheses that the canonical text contains. The check counts the
/// levels of the canonical text, so that the canonical text of every query is a query.
enum DepthCheck {
    /// Returns the position of the first level beyond `Limits.nestingDepth`, or nil.
    static func excess(in tree: SyntaxTree) -> SourcePosition? { excess(in: tree.root, 0) }

    private static func excess(in query: SyntaxQuery, _ depth: Int) -> SourcePosition? {
        switch query.kind {
        case .constant: return nil
        case .and(let parts), .or(let parts):
            for part in parts {
                switch part.kind {
                case .and, .or: if let place = inside(part, depth) { return place }
                case .constant, .not, .compare: if let place = excess(in: part, depth) { return place }
                }
            }
            return nil
        case .not(let inner): return inside(inner, depth)
        case .compare(let comparison): return excess(in: comparison.left, depth) ?? excess(in: comparison.right, depth)
        }
    }

    private static func inside(_ query: SyntaxQuery, _ depth: Int) -> SourcePosition? {
        depth < Limits.nestingDepth ? excess(in: query, depth + 1) : query.position
    }

    private static func excess(in operand: SyntaxOperand, _ depth: Int) -> SourcePosition? {
        switch operand.kind {
        case .arithmetic(let left, _, let right):
            guard depth < Limits.nestingDepth else { return operand.position }
            for part in [left, right] {
                var level = depth
                if case .arithmetic = part.kind { level += 1 }
                if let place = excess(in: part, level) { return place }
            }
            return nil
        case .subqueryCount(_, _, let inner): return inside(inner, depth)
        case .literal, .argument, .path, .list, .aggregate, .object, .shape, .rowKey: return nil
        }
    }
}
