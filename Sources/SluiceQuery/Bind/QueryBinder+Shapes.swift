import SluiceCore

/// TEXT and GEOWITHIN.
extension QueryBinder {
    func fullText(_ comparison: SyntaxComparison) throws(SluiceError) -> BoundCondition {
        guard case .bound(let side) = try side(comparison.left), case .value(.string) = side.type, case .path = side.operand else {
            throw mismatch("TEXT searches a string property", at: comparison.left.position)
        }
        guard case .constant(.string(let text), _) = try self.side(comparison.right) else {
            throw mismatch("TEXT takes the words to search as a string", at: comparison.right.position)
        }
        let search = TextSearch(text)
        if search.isEmpty { throw mismatch("Missing search token: TEXT takes at least one word", at: comparison.right.position) }
        return .fullText(side, search, comparison.position)
    }

    func within(_ comparison: SyntaxComparison) throws(SluiceError) -> BoundCondition {
        guard case .path(let path) = comparison.left.kind, path.suffix == nil else {
            throw mismatch("GEOWITHIN takes the path of a point on its left", at: comparison.left.position)
        }
        var walk = PathWalk(binder: self, path: path)
        try walk.walk()
        guard try walk.enterObject(), let type = walk.objectType, type.isPoint else {
            throw mismatch(
                "'\(written(path))' links to data in the wrong format for GEOWITHIN: a point has the properties type (string) and "
                    + "coordinates (list of doubles)", at: path.position)
        }
        if let quantifier = path.quantifier, !walk.reachesMany {
            throw mismatch(
                "The keypath following '\(quantifier.rawValue)' must contain a list. Found '\(written(path))'", at: path.position)
        }
        let bound = BoundPath(
            steps: walk.steps, result: .values, type: .value(.embedded(type.name)), isMany: walk.reachesMany, sequence: .none)
        let side = BoundSide(
            operand: .path(bound), quantifier: path.quantifier ?? .any, isQuantified: path.quantifier != nil, type: bound.type,
            isMany: bound.isMany, position: path.position)
        return .within(side, try ShapeBinder(diagnostic: diagnostic, arguments: arguments).geometry(comparison.right))
    }
}
