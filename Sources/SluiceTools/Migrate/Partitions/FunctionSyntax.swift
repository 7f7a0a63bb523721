/// An expression of a function.
indirect enum FunctionExpression: Hashable {
    case name(String)
    case string(String)
    case number(Double)
    case template([String], [FunctionExpression])
    case array([FunctionExpression])
    case object([String: FunctionExpression])
    case member(FunctionExpression, String)
    case element(FunctionExpression, FunctionExpression)
    case call(FunctionExpression, [FunctionExpression])
    case not(FunctionExpression)
    case negative(FunctionExpression)
    /// A binary operator with its mark.
    case binary(String, FunctionExpression, FunctionExpression)
    case choice(FunctionExpression, FunctionExpression, FunctionExpression)
    /// A function with its parameters, as an argument of a call.
    case lambda([String], [FunctionStatement])
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

    struct Case: Hashable {
        var label: FunctionExpression?
        var body: [FunctionStatement]
    }
}

/// The names that a declaration gives to a value or its parts.
enum FunctionPattern: Hashable {
    case name(String)
    case members([(member: String, name: String)])
    case elements([String?])

    static func == (left: FunctionPattern, right: FunctionPattern) -> Bool { "\(left)" == "\(right)" }
    func hash(into hasher: inout Hasher) { hasher.combine("\(self)") }
}

/// A function of App Services: its parameters and statements.
struct FunctionBody: Hashable {
    var parameters: [String]
    var statements: [FunctionStatement]
}
