import SluiceCore

/// Finds constructs that subscriptions do not support and fields that are not queryable, in the order of the text.
struct SubscriptionCheck {
    let type: ObjectType
    let schema: Schema
    let fields: QueryableFields
    let arguments: [Value]
    let diagnostic: QueryDiagnostic

    /// The kind of a permitted operand.
    private enum Role { case constant, list, scalar, elements }

    func checkType() throws(SluiceError) {
        switch type.kind {
        case .topLevel: break
        case .asymmetric:
            throw SluiceError(.queryAsymmetric, "\"\(type.name)\" is an asymmetric type: its objects can be created, not subscribed to.")
        case .embedded:
            throw SluiceError(.queryEmbedded, "\"\(type.name)\" is an embedded type: it has no objects of its own to subscribe to.")
        }
    }

    func checkShape(_ query: Query) throws(SluiceError) {
        try checkShape(query.tree.root)
        guard let suffix = query.tree.suffixes.first else { return }
        let code: ErrorCode =
            switch suffix.kind {
            case .sort: .querySort
            case .distinct: .queryDistinct
            case .limit: .queryLimit
            }
        throw refused(code, suffix.keyword, at: suffix.position)
    }

    private func checkShape(_ query: SyntaxQuery) throws(SluiceError) {
        switch query.kind {
        case .constant: break
        case .and(let parts), .or(let parts): for part in parts { try checkShape(part) }
        case .not(let inner): try checkShape(inner)
        case .compare(let comparison): try check(comparison)
        }
    }

    private func check(_ comparison: SyntaxComparison) throws(SluiceError) {
        switch comparison.comparison {
        case .fullText: throw refused(.queryFullText, "TEXT", at: comparison.position)
        case .geoWithin: return try checkPoint(comparison)
        default: break
        }
        // The other operand can make a link an error, so operands are checked before the fields.
        for operand in [comparison.left, comparison.right] { try checkValue(operand) }
        switch (try role(comparison.left), try role(comparison.right)) {
        case (.scalar, .scalar), (.scalar, .elements), (.elements, .scalar):
            throw refused(.queryTwoFields, "comparing two fields", at: comparison.position)
        case (.elements, .elements), (.elements, .list), (.list, .elements):
            throw refused(.queryTwoLists, "comparing two lists", at: comparison.position)
        default: break
        }
    }

    /// Checks GEOWITHIN, the only permitted use of an embedded object: a single GeoJSON point of the row itself.
    private func checkPoint(_ comparison: SyntaxComparison) throws(SluiceError) {
        guard case .path(let path) = comparison.left.kind, let property = try firstProperty(path), path.steps.count == 1 else { return }
        guard path.suffix == nil, schema.isPoint(property) else {
            throw refused(
                .queryGeospatial, "GEOWITHIN on \"\(property.name)\", which is not one point of GeoJSON,", at: comparison.position)
        }
        guard fields.contains(property.name, of: type.name) else {
            throw diagnostic.error(.queryNotQueryable, text("key \"\(property.name)\" is not a queryable field"), at: path.position)
        }
    }

    // MARK: Operands

    private func checkValue(_ operand: SyntaxOperand) throws(SluiceError) {
        switch operand.kind {
        case .literal, .path: break
        case .argument(let number, _):
            if arguments.indices.contains(number), case .link = arguments[number] { throw link(operand) }
        case .list(let members, _): for member in members { try checkValue(member) }
        case .object, .rowKey: throw link(operand)
        case .aggregate(let path, let aggregate, _):
            throw refused(.queryAggregate, aggregate.rawValue, at: path.suffixPosition)
        case .arithmetic: throw refused(.queryArithmetic, "arithmetic", at: operand.position)
        case .subqueryCount: throw refused(.querySubquery, "SUBQUERY", at: operand.position)
        case .shape: break
        }
    }

    private func link(_ operand: SyntaxOperand) -> SluiceError { refused(.queryLinkValue, "comparing links", at: operand.position) }

    private func role(_ operand: SyntaxOperand) throws(SluiceError) -> Role {
        switch operand.kind {
        case .list: return .list
        case .argument(let number, _):
            if arguments.indices.contains(number), case .list = arguments[number] { return .list }
            return .constant
        case .path(let path):
            guard let property = try field(path) else { return .constant }
            return property.collection == .none || path.suffix == .count ? .scalar : .elements
        default: return .constant
        }
    }

    // MARK: Paths

    /// - Returns: The queryable field that a path names. Nil for a path that the binder rejects with a better message, such as an unknown
    ///   name.
    private func field(_ path: SyntaxPath) throws(SluiceError) -> Property? {
        let property = try firstProperty(path)
        if path.suffix == .type { throw refused(.queryValueType, "@type", at: path.suffixPosition) }
        guard let property, path.steps.count == 1 else { return nil }
        let name = property.name
        if path.suffix == .count, !property.isCountable {
            throw refused(.queryCount, "@count of \"\(name)\", which is no list of scalars,", at: path.suffixPosition)
        }
        guard property.isSubscribable else {
            throw diagnostic.error(
                .queryNotQueryable, text("key \"\(name)\" is not a queryable field: it is \(property.reasonAgainst)"), at: path.position,
                fix: "Subscribe by scalar fields or lists of scalars, and filter the rest locally.")
        }
        guard fields.contains(name, of: type.name) else {
            throw diagnostic.error(.queryNotQueryable, text("key \"\(name)\" is not a queryable field"), at: path.position)
        }
        return property
    }

    /// Returns the property that a path begins with, or nil for a path that the binder rejects.
    private func firstProperty(_ path: SyntaxPath) throws(SluiceError) -> Property? {
        for step in path.steps {
            switch step.kind {
            case .argument: throw refused(.queryPathArgument, "a path given as an argument", at: step.position)
            case .backlinks: throw refused(.queryBacklinks, "@links", at: step.position)
            case .keys, .values, .index, .first, .last, .every, .key, .keyArgument, .name: break
            }
        }
        guard case .name(let name)? = path.steps.first?.kind else {
            throw refused(.queryElement, "a path that begins with @keys or @values", at: path.position)
        }
        let property = type[name]
        guard path.steps.count > 1 else { return property }
        let place = path.steps[1].position
        switch (property?.type, property?.collection) {
        case (.link, .some(.none)), (.link, .list), (.link, .set), (.embedded, .some(.none)), (.embedded, .list), (.embedded, .set):
            throw refused(.queryLinkPath, "a path through \"\(name)\", which is \(property?.reasonAgainst ?? ""),", at: place)
        case (nil, _): return nil
        default: break
        }
        if case .name = path.steps[1].kind, property?.collection == CollectionKind.none, property?.type != .mixed { return property }
        throw refused(.queryElement, "looking at one element of \"\(name)\"", at: place)
    }

    private func text(_ reason: String) -> String { "Invalid query: unsupported query for table \"\(type.name)\": \(reason)" }

    private func refused(_ code: ErrorCode, _ what: String, at position: SourcePosition) -> SluiceError {
        diagnostic.error(code, text("\(what) is not allowed in a subscription"), at: position)
    }
}

// MARK: The indexed field

extension SubscriptionCheck {
    /// Checks that a query pins the indexed queryable field, if the class has it. The query must compare it with constants by `==` or IN,
    /// alone or joined by AND at the top level.
    func checkPin(_ root: SyntaxQuery) throws(SluiceError) {
        guard let indexed = fields.indexed, type.index(of: indexed) != nil, !pins(indexed, root) else { return }
        var use: SourcePosition?
        root.visitComparisons { comparison in
            for case .path(let path) in [comparison.left.kind, comparison.right.kind]
            where use == nil && path.steps.first == PathStep(.name(indexed)) {
                use = path.position
            }
        }
        throw diagnostic.error(
            .queryIndexedFieldMissing,
            text(
                "it must compare the indexed queryable field \"\(indexed)\" with constants by == or IN, joined by AND at the top level, and "
                    + (use == nil ? "does not name it" : "uses it in another way")),
            at: use ?? root.position, fix: "Add `\(indexed) == value AND (…)` or `\(indexed) IN {…} AND (…)` in front.")
    }

    private func pins(_ field: String, _ query: SyntaxQuery) -> Bool {
        switch query.kind {
        case .and(let parts): parts.contains { pins(field, $0) }
        case .compare(let comparison): pins(field, comparison)
        // Below OR and NOT a comparison does not restrict the whole query.
        case .constant, .or, .not: false
        }
    }

    private func pins(_ field: String, _ comparison: SyntaxComparison) -> Bool {
        guard !comparison.foldsCase else { return false }
        switch comparison.comparison {
        case .equal:
            return isField(field, comparison.left, quantifier(of: comparison.right))
                || isField(field, comparison.right, quantifier(of: comparison.left))
        case .isIn: return isField(field, comparison.left, quantifier(of: comparison.right))
        default: return false
        }
    }

    private func isField(_ field: String, _ operand: SyntaxOperand, _ quantifier: Quantifier?) -> Bool {
        guard quantifier == nil || quantifier == .any, case .path(let path) = operand.kind else { return false }
        return path.steps == [PathStep(.name(field))] && path.suffix == nil && path.quantifier == nil
            && type[field]?.collection == CollectionKind.none
    }

    private func quantifier(of operand: SyntaxOperand) -> Quantifier? {
        switch operand.kind {
        case .list(_, let quantifier), .argument(_, let quantifier): quantifier
        default: nil
        }
    }
}

extension Property {
    /// `true` if a subscription may compare the property: a scalar, or a list or set of scalars.
    fileprivate var isSubscribable: Bool { reasonAgainst.isEmpty }

    fileprivate var isCountable: Bool { isSubscribable && collection != .none }

    fileprivate var reasonAgainst: String {
        switch type {
        case .link: "a link"
        case .embedded: "an embedded object"
        case .mixed: "of type mixed"
        default: collection == .dictionary ? "a dictionary" : ""
        }
    }
}
