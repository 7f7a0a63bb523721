/// Finds the condition under which a function returns a true value, by running it with the partition value and the user as unknowns.
///
/// - Branches become conditions. A function that throws denies.
/// - A document of the custom user data collection that belongs to the user is `%%user.custom_data`.
/// - Everything else that a function may do is a `FunctionProblem`.
struct FunctionMeaning {
    /// The most steps of a run. Branches double the rest of a function.
    private static let mostSteps = 10_000
    /// The deepest calls of other functions.
    private static let mostCalls = 8

    /// The sources of the app's functions by name.
    let sources: [String: String]
    let customData: CustomDataPlace?
    private var steps = 0
    private var calls = 0

    init(sources: [String: String], customData: CustomDataPlace?) {
        self.sources = sources
        self.customData = customData
    }

    /// Returns the condition under which a function permits.
    mutating func condition(of name: String, _ arguments: [FunctionTerm]) throws(FunctionProblem) -> FunctionCondition {
        truth(try call(name, arguments))
    }

    private mutating func call(_ name: String, _ arguments: [FunctionTerm]) throws(FunctionProblem) -> FunctionTerm {
        guard let source = sources[name] else { throw FunctionProblem("its source is not in the export") }
        calls += 1
        defer { calls -= 1 }
        guard calls <= Self.mostCalls else { throw FunctionProblem("functions call each other without end") }
        let body = try FunctionParser.function(in: source)
        var scope: [String: FunctionTerm] = ["context": .context]
        for (index, parameter) in body.parameters.enumerated() {
            scope[parameter] = index < arguments.count ? arguments[index] : .absent
        }
        return .condition(try run(body.statements[...], scope))
    }

    // MARK: Statements

    /// Runs statements to the end of the function.
    private mutating func run(
        _ statements: ArraySlice<FunctionStatement>, _ scope: [String: FunctionTerm]
    ) throws(FunctionProblem) -> FunctionCondition {
        var scope = scope
        var rest = statements
        while let statement = rest.popFirst() {
            steps += 1
            guard steps < Self.mostSteps else { throw FunctionProblem("it has too many branches") }
            switch statement {
            case .declare(let pattern, let value):
                try declare(pattern, try value.map { value throws(FunctionProblem) in try term(value, scope) } ?? .absent, &scope)
            case .assign(let name, let value): scope[name] = try term(value, scope)
            case .result(let value):
                return try value.map { value throws(FunctionProblem) in truth(try term(value, scope)) } ?? .constant(false)
            case .fail: return .constant(false)
            case .leave: throw FunctionProblem("'break' outside of 'switch' is not understood")
            case .evaluate(let value): try evaluate(value, scope)
            case .condition(let test, let then, let otherwise):
                let condition = truth(try term(test, scope))
                if condition == .constant(true) { return try run((then + rest)[...], scope) }
                if condition == .constant(false) { return try run((otherwise + rest)[...], scope) }
                return .branch(condition, try run((then + rest)[...], scope), try run((otherwise + rest)[...], scope))
            case .choose(let subject, let cases): return try choose(try term(subject, scope), cases, rest, scope)
            }
        }
        return .constant(false)
    }

    /// Runs an expression whose value is not used. Only logging has no effect.
    private func evaluate(_ value: FunctionExpression, _ scope: [String: FunctionTerm]) throws(FunctionProblem) {
        guard case .call(.member(.name("console"), _), _) = value else { throw FunctionProblem("it does more than decide") }
    }

    private mutating func choose(
        _ subject: FunctionTerm, _ cases: [FunctionStatement.Case], _ rest: ArraySlice<FunctionStatement>, _ scope: [String: FunctionTerm]
    ) throws(FunctionProblem) -> FunctionCondition {
        // Without a default, the statements behind the switch follow.
        var result = try run(rest, scope)
        if let index = cases.firstIndex(where: { $0.label == nil }) { result = try run((Self.body(cases, from: index) + rest)[...], scope) }
        for (index, item) in cases.enumerated().reversed() {
            guard let label = item.label else { continue }
            let condition = FunctionCondition.equal(subject, try term(label, scope))
            result = .branch(condition, try run((Self.body(cases, from: index) + rest)[...], scope), result)
        }
        return result
    }

    /// Returns the statements from a case to `break` or `return`.
    private static func body(_ cases: [FunctionStatement.Case], from index: Int) -> [FunctionStatement] {
        var body: [FunctionStatement] = []
        for statement in cases[index...].flatMap(\.body) {
            if statement == .leave { return body }
            body.append(statement)
            if case .result = statement { return body }
        }
        return body
    }

    private func declare(_ pattern: FunctionPattern, _ value: FunctionTerm, _ scope: inout [String: FunctionTerm]) throws(FunctionProblem) {
        switch pattern {
        case .name(let name): scope[name] = value
        case .members(let members): for (member, name) in members { scope[name] = try self.member(value, member) }
        case .elements(let names):
            for (index, name) in names.enumerated() { if let name { scope[name] = try element(value, .number(Double(index))) } }
        }
    }

    // MARK: Expressions

    private mutating func terms(
        _ expressions: [FunctionExpression], _ scope: [String: FunctionTerm]
    ) throws(FunctionProblem) -> [FunctionTerm] {
        var terms: [FunctionTerm] = []
        for expression in expressions { terms.append(try term(expression, scope)) }
        return terms
    }

    private mutating func term(_ expression: FunctionExpression, _ scope: [String: FunctionTerm]) throws(FunctionProblem) -> FunctionTerm {
        steps += 1
        guard steps < Self.mostSteps else { throw FunctionProblem("it has too many branches") }
        switch expression {
        case .name("true"): return .condition(.constant(true))
        case .name("false"): return .condition(.constant(false))
        case .name("null"), .name("undefined"): return .absent
        case .name(let name): return scope[name] ?? .unknown("'\(name)'")
        case .string(let text): return .string(text)
        case .number(let number): return .number(number)
        case .negative(let inner):
            guard case .number(let number) = try term(inner, scope) else { throw FunctionProblem("'-' is not understood here") }
            return .number(-number)
        case .template(let texts, let parts):
            var pieces: [FunctionTerm] = [.string(texts[0])]
            for (part, text) in zip(parts, texts.dropFirst()) { pieces += [try term(part, scope), .string(text)] }
            return Self.joined(pieces)
        case .array(let elements): return .list(try terms(elements, scope))
        case .object: throw FunctionProblem("an object is not understood here")
        case .member(let inner, let name): return try member(try term(inner, scope), name)
        case .element(let inner, let index): return try element(try term(inner, scope), try term(index, scope))
        case .call(let function, let arguments): return try call(function, arguments, scope)
        case .not(let inner): return .condition(.negated(truth(try term(inner, scope))))
        case .binary(let mark, let left, let right): return try binary(mark, try term(left, scope), try term(right, scope))
        case .choice(let test, let then, let otherwise):
            let (then, otherwise) = (try term(then, scope), try term(otherwise, scope))
            return .condition(.branch(truth(try term(test, scope)), truth(then), truth(otherwise)))
        case .lambda(let parameters, let body): return .lambda(parameters, body)
        }
    }

    private static func joined(_ parts: [FunctionTerm]) -> FunctionTerm {
        var pieces: [FunctionTerm] = []
        for part in parts.flatMap({ part -> [FunctionTerm] in if case .joined(let inner) = part { inner } else { [part] } }) {
            if case .string(let text) = part, case .string(let before)? = pieces.last {
                pieces[pieces.count - 1] = .string(before + text)
            } else if part != .string("") {
                pieces.append(part)
            }
        }
        return pieces.count == 1 ? pieces[0] : pieces.isEmpty ? .string("") : .joined(pieces)
    }

    private func binary(_ mark: String, _ left: FunctionTerm, _ right: FunctionTerm) throws(FunctionProblem) -> FunctionTerm {
        switch mark {
        case "||", "??": return .condition(.or(truth(left), truth(right)))
        case "&&": return .condition(.and(truth(left), truth(right)))
        case "===", "==": return .condition(Self.equality(left, right))
        case "!==", "!=": return .condition(.negated(Self.equality(left, right)))
        case "+": return Self.joined([left, right])
        default: return .condition(try Self.order(mark, left, right))
        }
    }

    private static func equality(_ left: FunctionTerm, _ right: FunctionTerm) -> FunctionCondition {
        switch (left, right) {
        case (.place(let item, let list), .number(-1)), (.number(-1), .place(let item, let list)): return .not(.contains(list, item))
        case (.condition(let condition), .condition(.constant(let value))), (.condition(.constant(let value)), .condition(let condition)):
            return value ? condition : .negated(condition)
        case (.string, .string), (.number, .number), (.absent, .absent): return .constant(left == right)
        // A user without a document has no custom data: comparisons with them do not hold.
        case (.user(["custom_data"]), .absent), (.absent, .user(["custom_data"])): return .constant(false)
        default: return .equal(left, right)
        }
    }

    /// Reads the comparisons of `indexOf` with 0 and -1.
    private static func order(_ mark: String, _ left: FunctionTerm, _ right: FunctionTerm) throws(FunctionProblem) -> FunctionCondition {
        guard case .place(let item, let list) = left, case .number(let number) = right else {
            throw FunctionProblem("'\(mark)' is not understood here")
        }
        switch (mark, number) {
        case (">=", 0), (">", -1): return .contains(list, item)
        case ("<", 0), ("<=", -1): return .not(.contains(list, item))
        default: throw FunctionProblem("'\(mark) \(Int(number))' is not understood here")
        }
    }

    private func truth(_ term: FunctionTerm) -> FunctionCondition {
        switch term {
        case .condition(let condition): condition
        case .string(let text): .constant(!text.isEmpty)
        case .number(let number): .constant(number != 0)
        case .absent: .constant(false)
        case .user(["custom_data"]), .user([]), .user(["id"]), .list, .context: .constant(true)
        default: .truth(term)
        }
    }

    private func member(_ value: FunctionTerm, _ name: String) throws(FunctionProblem) -> FunctionTerm {
        switch (value, name) {
        case (.context, "user"): return .user([])
        case (.context, "services"): return .services
        case (.context, "functions"): return .functions
        case (.pieces(let separator), "length"): return .pieceCount(separator)
        case (.user(let path), _): return .user(path + [name])
        case (.element(let path), _): return .element(path + [name])
        case (.unknown, _): return value
        default: throw FunctionProblem("'.\(name)' is not understood here")
        }
    }

    private func element(_ value: FunctionTerm, _ index: FunctionTerm) throws(FunctionProblem) -> FunctionTerm {
        switch (value, index) {
        case (.pieces(let separator), .number(let number)): return .piece(separator, Int(number))
        case (.user(let path), .string(let name)): return .user(path + [name])
        case (.list(let elements), .number(let number)) where elements.indices.contains(Int(number)): return elements[Int(number)]
        default: throw FunctionProblem("an element of a list is not understood here")
        }
    }
}

// MARK: Calls

extension FunctionMeaning {
    private mutating func call(
        _ function: FunctionExpression, _ arguments: [FunctionExpression], _ scope: [String: FunctionTerm]
    ) throws(FunctionProblem) -> FunctionTerm {
        guard case .member(let inner, let name) = function else {
            // String(x) and BSON.ObjectId(x) compare as the value does.
            if function == .name("String"), arguments.count == 1 { return try term(arguments[0], scope) }
            throw FunctionProblem("a call is not understood")
        }
        if name.lowercased() == "objectid", inner == .name("BSON"), arguments.count == 1 { return try term(arguments[0], scope) }
        let target = try term(inner, scope)
        switch (target, name) {
        case (.collection(let database, let collection), "findOne"):
            return try document(database, collection, arguments, scope)
        case (.functions, "execute"):
            let values = try terms(arguments, scope)
            guard case .string(let name)? = values.first else { throw FunctionProblem("it calls a function without a fixed name") }
            return try call(name, Array(values.dropFirst()))
        case (_, "some"), (_, "find"): return try some(target, arguments, scope)
        default: return try method(target, name, try terms(arguments, scope))
        }
    }

    private func method(_ target: FunctionTerm, _ name: String, _ arguments: [FunctionTerm]) throws(FunctionProblem) -> FunctionTerm {
        switch (target, name, arguments.first) {
        case (.services, "get", _): return .service
        case (.service, "db", .string(let database)?): return .database(database)
        case (.database(let database), "collection", .string(let collection)?): return .collection(database, collection)
        case (.partition, "split", .string(let separator)?) where !separator.isEmpty && arguments.count == 1: return .pieces(separator)
        case (.user, "includes", let item?), (.list, "includes", let item?): return .condition(.contains(target, item))
        case (.user, "indexOf", let item?), (.list, "indexOf", let item?): return .place(of: item, in: target)
        case (.partition, "toString", nil), (.user, "toString", nil), (.piece, "toString", nil), (.piece, "trim", nil): return target
        case (.unknown(let what), _, _): throw FunctionProblem("it uses \(what)")
        default: throw FunctionProblem("a call of '\(name)' is not understood")
        }
    }

    /// Returns the user's document of the collection for custom user data.
    private mutating func document(
        _ database: String, _ collection: String, _ arguments: [FunctionExpression], _ scope: [String: FunctionTerm]
    ) throws(FunctionProblem) -> FunctionTerm {
        guard let customData, customData.database == database, customData.collection == collection else {
            throw FunctionProblem(
                "it reads the collection \(database).\(collection), and roles read custom user data only: name it in auth/custom_user_data.json"
            )
        }
        guard case .object(let query)? = arguments.first, query.count == 1, let (key, value) = query.first,
            key == customData.userID, try term(value, scope) == .user(["id"])
        else { throw FunctionProblem("it reads another document of \(database).\(collection) than the user's own") }
        return .user(["custom_data"])
    }

    /// Reads `list.some(x => x.member === value)`.
    private mutating func some(
        _ list: FunctionTerm, _ arguments: [FunctionExpression], _ scope: [String: FunctionTerm]
    ) throws(FunctionProblem) -> FunctionTerm {
        guard case .user(let path) = list, case .lambda(let parameters, let body)? = arguments.first, parameters.count == 1 else {
            throw FunctionProblem("a call of 'some' is not understood")
        }
        var inner = scope
        inner[parameters[0]] = .element([])
        switch try run(body[...], inner) {
        case .equal(.element(let member), let value), .equal(let value, .element(let member)):
            return .condition(.contains(.user(path + member), value))
        default: throw FunctionProblem("a condition on the elements of a list is not understood")
        }
    }
}
