import SluiceCore

/// Binds queries of the whole language: names over links, collections and embedded objects, types, and all rules of comparison.
struct QueryBinder {
    let schema: Schema
    let arguments: [QueryArgument]
    let aliases: QueryAliases
    let diagnostic: QueryDiagnostic
    /// The row itself, then the objects of the enclosing SUBQUERYs, from the outside.
    private(set) var scopes: [Scope]

    struct Scope {
        var variable: String?
        var type: ObjectType
    }

    init(schema: Schema, type: ObjectType, arguments: [QueryArgument], aliases: QueryAliases, diagnostic: QueryDiagnostic) {
        self.schema = schema
        self.arguments = arguments
        self.aliases = aliases
        self.diagnostic = diagnostic
        scopes = [Scope(variable: nil, type: type)]
    }

    /// The object of names without a variable.
    var innermost: Scope { scopes[scopes.count - 1] }

    func bind(_ query: SyntaxQuery) throws(SluiceError) -> BoundCondition {
        switch query.kind {
        case .constant(let value): return .constant(value)
        case .and(let parts): return .and(try parts.map { part throws(SluiceError) in try bind(part) })
        case .or(let parts): return .or(try parts.map { part throws(SluiceError) in try bind(part) })
        case .not(let inner): return .not(try bind(inner))
        case .compare(let comparison): return try bind(comparison)
        }
    }

    // MARK: SUBQUERY

    func subqueryCount(
        _ path: SyntaxPath, variable: SyntaxName, _ query: SyntaxQuery, at position: SourcePosition
    ) throws(SluiceError) -> BoundOperand {
        if scopes.contains(where: { $0.variable == variable.text }) {
            throw mismatch(
                "Unable to create a subquery expression with variable '\(variable.text)' since an identical variable already exists in "
                    + "this context", at: variable.position)
        }
        guard path.suffix == nil, path.quantifier == nil, let (collection, type) = try objects(path) else {
            throw mismatch("A subquery must operate on a list property or backlinks, but '\(written(path))' is none", at: path.position)
        }
        // The binder is a value, so the inner scope ends with this call.
        var inner = self
        inner.scopes.append(Scope(variable: variable.text, type: type))
        return .subqueryCount(collection, depth: scopes.count, try inner.bind(query))
    }

    // MARK: Suffixes

    func suffixes(_ suffixes: [QuerySuffix]) throws(SluiceError) -> [BoundSuffix] {
        try suffixes.map { suffix throws(SluiceError) in
            switch suffix.kind {
            case .limit(let count): return .limit(Int(clamping: count))
            case .distinct(let paths): return .distinct(try paths.map { path throws(SluiceError) in try ordered(path, "distinct on") })
            case .sort(let keys):
                return .sort(
                    try keys.map { key throws(SluiceError) in
                        BoundSuffix.Key(path: try ordered(key.path, "sort on"), ascending: key.ascending)
                    })
            }
        }
    }

    /// Returns a path to exactly one ordered value.
    private func ordered(_ path: SyntaxPath, _ verb: String) throws(SluiceError) -> BoundPath {
        let bound = try self.path(path)
        guard !bound.isMany, bound.result == .values, case .value(let type) = bound.type, type.isOrdered else {
            throw mismatch("Cannot \(verb) '\(written(path))': it is not a single value with an order", at: path.position)
        }
        return bound
    }

    // MARK: Errors

    func unsupported(_ what: String, at position: SourcePosition) -> SluiceError {
        diagnostic.error(.queryUnsupported, "\(what) is not supported in a query on '\(scopes[0].type.name)'", at: position)
    }

    func mismatch(_ sentence: String, at position: SourcePosition) -> SluiceError {
        diagnostic.error(.queryTypeMismatch, sentence, at: position)
    }

    func unknown(_ name: String, in type: ObjectType, at position: SourcePosition) -> SluiceError {
        let suggestion = Suggestion.nearest(to: name, in: type.properties.map(\.name))
        return diagnostic.error(
            .queryUnknownProperty, "'\(type.name)' has no property '\(name)'", at: position, fix: suggestion.map { "Did you mean '\($0)'?" }
        )
    }

    func unknownClass(_ name: String, at position: SourcePosition) -> SluiceError {
        let suggestion = Suggestion.nearest(to: name, in: schema.types.map(\.name))
        return diagnostic.error(
            .queryUnknownProperty, "There is no class '\(name)'", at: position, fix: suggestion.map { "Did you mean '\($0)'?" })
    }

    /// Returns the index of a class. Its name may begin with `class_`.
    func typeIndex(_ name: String, at position: SourcePosition) throws(SluiceError) -> Int {
        let name = aliases.classes[name] ?? name
        if let index = schema.index(of: name) { return index }
        if name.utf8.starts(with: "class_".utf8), let index = schema.index(of: String(name.dropFirst(6))) { return index }
        throw unknownClass(name, at: position)
    }

    func written(_ path: SyntaxPath) -> String {
        var plain = path
        plain.quantifier = nil
        return CanonicalPrinter.print(SyntaxOperand(kind: .path(plain), position: path.position))
    }
}
