package import SluiceCore

/// What a client may subscribe to (`QL-*`, `QF-*`, `IQF-5`).
package enum Subscription {
    /// Checks a query as the subscription of a type and binds it.
    ///
    /// Costs one walk over the query. Limits: `Limits.queryBytes` of text, `Limits.queryLeaves` comparisons, `Limits.inListValues`
    /// per list. The limit of a whole set is the caller's to count.
    /// - Throws: `queryAsymmetric`, `queryTooLarge`, `queryUnsupported`, `queryUnknownProperty`, `queryNotQueryable`,
    ///   `queryTypeMismatch`, `queryArgument` or `queryIndexedFieldMissing`.
    package static func check(
        type: ObjectType, query: Query, arguments: [Value] = [], fields: QueryableFields
    ) throws(SluiceError) -> Predicate {
        let check = SubscriptionCheck(type: type, fields: fields, diagnostic: QueryDiagnostic(source: query.source))
        try check.checkType()
        try check.checkSize(query, arguments)
        try check.checkShape(query)
        let predicate = try query.bind(to: type, arguments: arguments)
        try check.checkBound(predicate.bound)
        if let indexed = fields.indexed, type.index(of: indexed) != nil, !check.pins(indexed, query.tree.root) {
            throw SluiceError(
                .queryIndexedFieldMissing,
                "Invalid query: unsupported query for table \"\(type.name)\": it must compare the indexed queryable field \"\(indexed)\" "
                    + "with constants by == or IN, joined by AND at the top level.",
                fix: "Add `\(indexed) == value AND (…)` or `\(indexed) IN {…} AND (…)` in front.")
        }
        return predicate
    }

    /// The names of properties that a query uses, in the order of their first use: what development mode makes queryable (QF-4).
    package static func names(in query: Query) -> [String] {
        var names: [String] = []
        var seen: Set<String> = []
        SubscriptionCheck.visit(query.tree.root) { comparison in
            for operand in [comparison.left, comparison.right] {
                if case .path(let path) = operand.kind, case .name(let name)? = path.steps.first?.kind, seen.insert(name).inserted {
                    names.append(name)
                }
            }
        }
        return names
    }
}

struct SubscriptionCheck {
    let type: ObjectType
    let fields: QueryableFields
    let diagnostic: QueryDiagnostic

    func checkType() throws(SluiceError) {
        switch type.kind {
        case .topLevel: break
        case .asymmetric:
            throw SluiceError(.queryAsymmetric, "\"\(type.name)\" is an asymmetric type: its objects can be created, not subscribed to.")
        case .embedded:
            throw SluiceError(
                .queryUnsupported, "\"\(type.name)\" is an embedded type: it has no objects of its own to subscribe to.",
                fix: "Subscribe to the type that contains it.")
        }
    }

    func checkSize(_ query: Query, _ arguments: [Value]) throws(SluiceError) {
        let bytes = query.source.utf8.count
        if bytes > Limits.queryBytes {
            throw tooLarge("the query for \"\(type.name)\" has \(bytes) bytes, over the limit of \(Limits.queryBytes)")
        }
        for case .list(let values) in arguments where values.count > Limits.inListValues { throw tooManyValues(values.count) }
        var leaves = 0
        var longest = 0
        SubscriptionCheck.visit(query.tree.root) { comparison in
            leaves += 1
            for operand in [comparison.left, comparison.right] {
                if case .list(let members, _) = operand.kind { longest = max(longest, members.count) }
            }
        }
        if longest > Limits.inListValues { throw tooManyValues(longest) }
        if leaves > Limits.queryLeaves { throw tooManyLeaves(leaves) }
    }

    /// A list under `!=` becomes a comparison for each of its values, so the bound form is counted too.
    func checkBound(_ bound: BoundPredicate) throws(SluiceError) {
        let leaves = bound.leafCount
        if leaves > Limits.queryLeaves { throw tooManyLeaves(leaves) }
    }

    private func tooManyValues(_ count: Int) -> SluiceError {
        tooLarge("a list in the query for \"\(type.name)\" has \(count) values, over the limit of \(Limits.inListValues)")
    }

    private func tooManyLeaves(_ count: Int) -> SluiceError {
        tooLarge("the query for \"\(type.name)\" has \(count) comparisons, over the limit of \(Limits.queryLeaves)")
    }

    private func tooLarge(_ what: String) -> SluiceError { SluiceError(.queryTooLarge, "Invalid query: \(what).") }

    static func visit(_ query: SyntaxQuery, _ body: (SyntaxComparison) -> Void) {
        switch query.kind {
        case .constant: break
        case .and(let parts), .or(let parts): for part in parts { visit(part, body) }
        case .not(let inner): visit(inner, body)
        case .compare(let comparison): body(comparison)
        }
    }

    // MARK: Shape

    /// Names, and constructs that subscriptions do not have.
    func checkShape(_ query: Query) throws(SluiceError) {
        if let suffix = query.tree.suffixes.first {
            throw SluiceError(
                .queryUnsupported,
                "Invalid query: unsupported query for table \"\(type.name)\": \(suffix.keyword) is not allowed in a subscription.",
                fix: "Remove it and sort or limit the local results.")
        }
        try checkShape(query.tree.root)
    }

    private func checkShape(_ query: SyntaxQuery) throws(SluiceError) {
        switch query.kind {
        case .constant: break
        case .and(let parts), .or(let parts): for part in parts { try checkShape(part) }
        case .not(let inner): try checkShape(inner)
        case .compare(let comparison):
            let isLeft = try checkOperand(comparison.left)
            let isRight = try checkOperand(comparison.right)
            if isLeft && isRight { throw unsupported("comparing two properties", at: comparison.position) }
            switch comparison.comparison {
            case .fullText: throw unsupported("TEXT", at: comparison.position)
            case .geoWithin: throw unsupported("GEOWITHIN", at: comparison.position)
            default: break
            }
        }
    }

    /// - Returns: whether the operand is a property.
    private func checkOperand(_ operand: SyntaxOperand) throws(SluiceError) -> Bool {
        switch operand.kind {
        case .literal, .argument, .list: return false
        case .path(let path):
            try checkPath(path)
            return true
        case .aggregate(_, let aggregate, _): throw unsupported(aggregate.rawValue, at: operand.position)
        case .arithmetic: throw unsupported("arithmetic", at: operand.position)
        case .subqueryCount: throw unsupported("SUBQUERY", at: operand.position)
        case .object: throw unsupported("comparing links", at: operand.position)
        case .shape: throw unsupported("GEOWITHIN", at: operand.position)
        case .rowKey: throw unsupported("comparing links", at: operand.position)
        }
    }

    private func checkPath(_ path: SyntaxPath) throws(SluiceError) {
        guard case .name(let name)? = path.steps.first?.kind else {
            throw unsupported(path.steps.first?.kind == .backlinks ? "@links" : "a path given as an argument", at: path.position)
        }
        // An unknown name is reported by the binder, with a suggestion.
        guard let property = type[name] else { return }
        guard path.steps.count == 1 else { throw unsupported("a path beyond the property \"\(name)\"", at: path.position) }
        guard property.isSubscribable else {
            throw diagnostic.error(
                .queryNotQueryable, text("key \"\(name)\" is not a queryable field: it is \(property.reasonAgainst)"), at: path.position,
                fix: "Subscribe by scalar fields or lists of scalars, and filter the rest locally.")
        }
        guard fields.contains(name, of: type.name) else {
            throw diagnostic.error(.queryNotQueryable, text("key \"\(name)\" is not a queryable field"), at: path.position)
        }
        if path.suffix == .type { throw unsupported("@type", at: path.position) }
        if path.suffix == .count, property.collection == .none {
            throw unsupported("@count of \"\(name)\", which is not an array,", at: path.position)
        }
    }

    private func text(_ reason: String) -> String { "Invalid query: unsupported query for table \"\(type.name)\": \(reason)" }

    private func unsupported(_ what: String, at position: SourcePosition) -> SluiceError {
        diagnostic.error(.queryUnsupported, text("\(what) is not allowed in a subscription"), at: position)
    }

    // MARK: The indexed field

    /// Whether a query compares the field with constants by == or IN, alone or joined by AND at the top level (IQF-5).
    func pins(_ field: String, _ query: SyntaxQuery) -> Bool {
        switch query.kind {
        case .and(let parts): parts.contains { pins(field, $0) }
        case .compare(let comparison): pins(field, comparison)
        case .constant, .or, .not: false
        }
    }

    private func pins(_ field: String, _ comparison: SyntaxComparison) -> Bool {
        guard !comparison.foldsCase else { return false }
        switch comparison.comparison {
        case .equal:
            return isField(field, comparison.left, quantifies(comparison.right))
                || isField(field, comparison.right, quantifies(comparison.left))
        case .isIn: return isField(field, comparison.left, quantifies(comparison.right))
        default: return false
        }
    }

    private func isField(_ field: String, _ operand: SyntaxOperand, _ quantifier: Quantifier?) -> Bool {
        guard quantifier == nil || quantifier == .any, case .path(let path) = operand.kind else { return false }
        return path.steps == [PathStep(.name(field))] && path.suffix == nil && path.quantifier == nil
            && type[field]?.collection == CollectionKind.none
    }

    private func quantifies(_ operand: SyntaxOperand) -> Quantifier? {
        switch operand.kind {
        case .list(_, let quantifier), .argument(_, let quantifier): quantifier
        default: nil
        }
    }
}

extension Property {
    /// Whether the property can be queryable at all: a scalar, or a list or set of scalars (QF-3).
    package var isSubscribable: Bool { reasonAgainst.isEmpty }

    fileprivate var reasonAgainst: String {
        switch type {
        case .link: "a link"
        case .embedded: "an embedded object"
        case .mixed: "of type mixed"
        default: collection == .dictionary ? "a dictionary" : ""
        }
    }
}
