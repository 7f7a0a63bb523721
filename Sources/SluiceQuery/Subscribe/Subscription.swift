package import SluiceCore

/// The checks of subscription queries (docs/query-language.md).
package enum Subscription {
    /// Checks a query as the subscription of a class and binds it.
    ///
    /// The cost is a few walks over the query, which `Limits` bounds: `queryBytes`, `queryLeaves`, `inListValues`, `queryListValues`,
    /// `shapeVertices`, `patternBytes`, `queryPatternBytes`. `checkSize` bounds the whole set.
    /// - Throws: `queryAsymmetric`, `queryEmbedded`, `queryTooLarge`, `queryNotQueryable`, `queryIndexedFieldMissing`, or the errors of
    ///   `Query.predicate`. For a construct that subscriptions do not support, its code (320 to 336).
    package static func check(
        type: ObjectType, query: Query, arguments: [Value] = [], in schema: Schema, fields: QueryableFields
    ) throws(SluiceError) -> Predicate {
        let check = SubscriptionCheck(
            type: type, schema: schema, fields: fields, arguments: arguments, diagnostic: QueryDiagnostic(source: query.source))
        try check.checkType()
        // The bounds are checked before binding, which is the costly step.
        try SubscriptionCost.check(query, arguments, of: type)
        try check.checkShape(query)
        let predicate = try query.predicate(on: type, in: schema, arguments: arguments)
        try SubscriptionCost.check(predicate)
        try check.checkPin(query.tree.root)
        return predicate
    }

    /// Checks that the texts of a whole set are within `Limits.queryBytes` together.
    /// - Throws: `queryTooLarge`.
    package static func checkSize(ofSet texts: some Sequence<String>) throws(SluiceError) {
        let size = texts.reduce(0) { $0 + $1.utf8.count }
        guard size <= Limits.queryBytes else {
            throw SluiceError(.queryTooLarge, "The subscription set has \(size) bytes of query text; the limit is \(Limits.queryBytes).")
        }
    }

    /// Returns the names of a query's properties in the order of their first use. Development mode makes them queryable.
    package static func names(in query: Query) -> [String] {
        var names: [String] = []
        var seen: Set<SyntaxName> = []
        query.tree.root.visitComparisons { comparison in
            for operand in [comparison.left, comparison.right] {
                if case .path(let path) = operand.kind, case .name(let name)? = path.steps.first?.kind,
                    seen.insert(SyntaxName(name)).inserted
                {
                    names.append(name)
                }
            }
        }
        return names
    }
}

extension SyntaxQuery {
    /// Calls `body` with all comparisons in the order of the text, except those inside a SUBQUERY.
    func visitComparisons(_ body: (SyntaxComparison) -> Void) {
        switch kind {
        case .constant: break
        case .and(let parts), .or(let parts): for part in parts { part.visitComparisons(body) }
        case .not(let inner): inner.visitComparisons(body)
        case .compare(let comparison): body(comparison)
        }
    }
}

extension Property {
    /// `true` if the limit of a subscription can sort and distinguish objects by the property. It is a single value that PostgreSQL orders.
    package var ordersLimits: Bool {
        switch type {
        case .bool, .int, .float, .double, .decimal, .string, .timestamp, .objectId, .uuid: collection == .none
        case .binary, .mixed, .link, .embedded: false
        }
    }
}
