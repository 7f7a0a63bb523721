/// An expression of a function.
indirect enum FunctionExpression: Hashable {
    case name(String)
    case string(String)
    case number(Double)
    case template([String], [FunctionExpression])
    case array([FunctionExpression])
    case object([String: FunctionExpression])
    /// A member by its name. With `?.` it is undefined if the value is null or undefined.
    case member(FunctionExpression, String, isOptional: Bool)
    case element(FunctionExpression, FunctionExpression)
    case call(FunctionExpression, [FunctionExpression])
    case await(FunctionExpression)
    case construct(FunctionExpression)
    case not(FunctionExpression)
    case negative(FunctionExpression)
    /// A binary operator with its mark.
    case binary(String, FunctionExpression, FunctionExpression)
    case choice(FunctionExpression, FunctionExpression, FunctionExpression)
    /// A function as an argument of a call.
    case lambda(FunctionBody)

    /// The id in `new BSON.ObjectId(id)`, which finds the document as the id does; the expression itself if it is another one.
    var identifier: FunctionExpression {
        switch self {
        case .construct(let inner): inner.identifier
        case .call(.member(.name("BSON"), let name, _), let arguments) where name.lowercased() == "objectid" && arguments.count == 1:
            arguments[0]
        default: self
        }
    }
}

/// A statement of a function.
indirect enum FunctionStatement: Hashable {
    case declare(FunctionPattern, FunctionExpression?)
    case assign(String, FunctionExpression)
    case result(FunctionExpression?)
    case condition(FunctionExpression, [FunctionStatement], [FunctionStatement])
    /// The cases with their labels; nil is `default`.
    case choose(FunctionExpression, [Case])
    case leave
    case evaluate(FunctionExpression)
    case fail
    /// The end of a block, with the names that exist in it only.
    case forget([String])

    struct Case: Hashable {
        var label: FunctionExpression?
        var body: [FunctionStatement]
    }

    /// The arguments of a call of `console`, which has no effect; nil for another statement.
    var logged: [FunctionExpression]? {
        guard case .evaluate(.call(.member(.name("console"), _, _), let arguments)) = self else { return nil }
        return arguments
    }

    /// Returns the statements of a case and those behind it, to `break` or `return`.
    static func body(_ cases: ArraySlice<Case>) -> [FunctionStatement] {
        var body: [FunctionStatement] = []
        for statement in cases.flatMap(\.body) {
            if statement == .leave { return body }
            body.append(statement)
            if case .result = statement { return body }
        }
        return body
    }

    /// `true` for a statement that permits nothing and has no effect.
    var denies: Bool {
        switch self {
        case .fail, .forget, .result(nil), .result(.name("false")): true
        default: logged != nil
        }
    }
}

/// The names that a declaration gives to a value or its parts.
enum FunctionPattern: Hashable {
    case name(String)
    case members([Member])
    case elements([String?])

    struct Member: Hashable {
        var member: String
        var name: String
    }

    var names: [String] {
        switch self {
        case .name(let name): [name]
        case .members(let members): members.map(\.name)
        case .elements(let names): names.compactMap { $0 }
        }
    }
}

/// A function: its parameters and statements.
struct FunctionBody: Hashable {
    var parameters: [String]
    var statements: [FunctionStatement]
    /// `true` if a call returns a promise.
    var isAsync: Bool
}
