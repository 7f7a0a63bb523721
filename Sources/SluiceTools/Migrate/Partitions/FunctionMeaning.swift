/// Finds the condition under which a function returns a true value, by running it with the partition value and the user as unknowns.
///
/// - Branches become conditions. What makes a function fail is a condition of its own.
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
    let compare: FunctionComparison
    private var steps = 0
    private var calls = 0

    /// - Parameter type: Returns the type of a member of custom data; nil if the export does not say.
    init(sources: [String: String], customData: CustomDataPlace?, type: @escaping (_ path: [String]) -> String?) {
        self.sources = sources
        self.customData = customData
        compare = FunctionComparison(type: type)
    }

    /// Returns what a function does.
    mutating func outcome(of name: String, _ arguments: [FunctionTerm]) throws(FunctionProblem) -> FunctionOutcome {
        try run(try body(of: name), arguments, FunctionFacts())
    }

    private func body(of name: String) throws(FunctionProblem) -> FunctionBody {
        guard let source = sources[name] else { throw FunctionProblem("its source is not in the export") }
        return try FunctionParser.function(in: source)
    }

    private mutating func run(
        _ body: FunctionBody, _ arguments: [FunctionTerm], _ facts: FunctionFacts
    ) throws(FunctionProblem) -> FunctionOutcome {
        calls += 1
        defer { calls -= 1 }
        guard calls <= Self.mostCalls else { throw FunctionProblem("functions call each other without end") }
        var scope: [String: FunctionTerm] = ["context": .context]
        for (index, parameter) in body.parameters.enumerated() {
            scope[parameter] = index < arguments.count ? arguments[index] : .absent
        }
        return try run(body.statements[...], FunctionPath(scope: scope, facts: facts))
    }

    private mutating func step() throws(FunctionProblem) {
        steps += 1
        guard steps < Self.mostSteps else { throw FunctionProblem("it has too many branches") }
    }

    // MARK: Statements

    /// Runs statements to the end of the function.
    private mutating func run(
        _ statements: ArraySlice<FunctionStatement>, _ path: FunctionPath
    ) throws(FunctionProblem) -> FunctionOutcome {
        var path = path
        var rest = statements
        while let statement = rest.popFirst() {
            try step()
            switch statement {
            case .declare(let pattern, let value):
                var term = FunctionTerm.absent
                if let value { term = try self.term(value, &path) }
                try declare(pattern, term, &path)
            case .assign(let name, let value): path.scope[name] = try term(value, &path)
            case .forget(let names): for name in names { path.scope[name] = nil }
            case .result(let value?): return try result(try term(value, &path), path)
            case .result(nil): return path.outcome(.constant(false), isBoolean: false)
            case .fail:
                path.fail(if: .constant(true))
                return path.outcome(.constant(false), isBoolean: true)
            case .leave: throw FunctionProblem("'break' outside of 'switch' is not understood")
            case .evaluate: try log(statement, &path)
            case .condition(let test, let then, let otherwise):
                let condition = path.facts.settled(try compare.truth(try term(test, &path)))
                if case .constant(let value) = condition {
                    rest = ((value ? then : otherwise) + rest)[...]
                    continue
                }
                let yes = try run((then + rest)[...], path.assuming(condition, is: true))
                return path.outcome(condition, yes, try run((otherwise + rest)[...], path.assuming(condition, is: false)))
            case .choose(let subject, let cases):
                let subject = try term(subject, &path)
                return try choose(subject, cases, cases[...], rest, path)
            }
        }
        return path.outcome(.constant(false), isBoolean: false)
    }

    /// Returns the outcome of `return`. A returned promise is awaited by the caller.
    private func result(_ value: FunctionTerm, _ path: FunctionPath) throws(FunctionProblem) -> FunctionOutcome {
        if case .promise(let inner) = value {
            return path.outcome(try compare.truth(inner), isBoolean: inner.isCondition, isPromise: true)
        }
        return path.outcome(try compare.truth(value), isBoolean: value.isCondition)
    }

    /// Runs an expression whose value is not used. Only logging has no effect.
    private mutating func log(_ statement: FunctionStatement, _ path: inout FunctionPath) throws(FunctionProblem) {
        guard let arguments = statement.logged else { throw FunctionProblem("it does more than decide") }
        for argument in arguments {
            // A value that is not understood is only printed.
            var copy = path
            if (try? term(argument, &copy)) != nil { path = copy }
        }
    }

    /// - Parameter others: The cases that have not been compared yet.
    private mutating func choose(
        _ subject: FunctionTerm, _ cases: [FunctionStatement.Case], _ others: ArraySlice<FunctionStatement.Case>,
        _ rest: ArraySlice<FunctionStatement>, _ path: FunctionPath
    ) throws(FunctionProblem) -> FunctionOutcome {
        try step()
        guard let index = others.firstIndex(where: { $0.label != nil }), let label = others[index].label else {
            // Without a default, the statements behind the switch follow.
            let body = cases.firstIndex { $0.label == nil }.map { FunctionStatement.body(cases[$0...]) } ?? []
            return try run((body + rest)[...], path)
        }
        var path = path
        let condition = path.facts.settled(try compare.equality(subject, try term(label, &path), isStrict: true))
        let body = FunctionStatement.body(cases[index...]) + rest
        if condition == .constant(true) { return try run(body[...], path) }
        if condition == .constant(false) { return try choose(subject, cases, others[(index + 1)...], rest, path) }
        let yes = try run(body[...], path.assuming(condition, is: true))
        let no = try choose(subject, cases, others[(index + 1)...], rest, path.assuming(condition, is: false))
        return path.outcome(condition, yes, no)
    }

    /// - Throws: `FunctionProblem` for a name that exists: it may be another one in JavaScript.
    private func declare(
        _ pattern: FunctionPattern, _ value: FunctionTerm, _ path: inout FunctionPath
    ) throws(FunctionProblem) {
        if let name = pattern.names.first(where: { path.scope[$0] != nil }) { throw FunctionProblem("it declares '\(name)' twice") }
        switch pattern {
        case .name(let name): path.scope[name] = value
        case .members(let members): for item in members { path.scope[item.name] = try member(value, item.member, false, &path) }
        case .elements(let names):
            for (index, name) in names.enumerated() { if let name { path.scope[name] = try element(value, .number(Double(index)), &path) } }
        }
    }

    // MARK: Expressions

    private mutating func terms(
        _ expressions: [FunctionExpression], _ path: inout FunctionPath
    ) throws(FunctionProblem) -> [FunctionTerm] {
        var terms: [FunctionTerm] = []
        for expression in expressions { terms.append(try term(expression, &path)) }
        return terms
    }

    private mutating func term(_ expression: FunctionExpression, _ path: inout FunctionPath) throws(FunctionProblem) -> FunctionTerm {
        try step()
        switch expression {
        case .name("true"): return .condition(.constant(true))
        case .name("false"): return .condition(.constant(false))
        case .name("null"): return .null
        case .name("undefined"): return .absent
        case .name(let name): return path.scope[name] ?? .unknown("'\(name)'")
        case .string(let text): return .string(text)
        case .number(let number): return .number(number)
        case .negative(let inner):
            guard case .number(let number) = try term(inner, &path) else { throw FunctionProblem("'-' is not understood here") }
            return .number(-number)
        case .template(let texts, let parts):
            var pieces: [FunctionTerm] = [.string(texts[0])]
            for (part, text) in zip(parts, texts.dropFirst()) { pieces += [try term(part, &path), .string(text)] }
            return .concatenation(pieces)
        case .array(let elements): return .list(try terms(elements, &path))
        case .object: throw FunctionProblem("an object is not understood here")
        case .construct: throw FunctionProblem("'new' is not understood here")
        case .await(let inner):
            let value = try term(inner, &path)
            if case .promise(let content) = value { return content }
            return value
        case .member(let inner, let name, let isOptional): return try member(try term(inner, &path), name, isOptional, &path)
        case .element(let inner, let index):
            let value = try term(inner, &path)
            return try element(value, try term(index, &path), &path)
        case .call(let function, let arguments): return try call(function, arguments, &path)
        case .not(let inner): return .condition(.negated(try compare.truth(try term(inner, &path))))
        case .binary(let mark, let left, let right): return try binary(mark, left, right, &path)
        case .choice(let test, let then, let otherwise): return try choice(test, then, otherwise, &path)
        case .lambda(let body): return .lambda(body)
        }
    }

    private mutating func binary(
        _ mark: String, _ left: FunctionExpression, _ right: FunctionExpression, _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        let first = try term(left, &path)
        if mark == "&&" || mark == "||" { return try logic(first, right, isAnd: mark == "&&", &path) }
        if mark == "??" {
            if first.isNullish { return try term(right, &path) }
            throw FunctionProblem("'??' is not understood here")
        }
        let second = try term(right, &path)
        switch mark {
        case "===", "==": return .condition(try compare.equality(first, second, isStrict: mark == "==="))
        case "!==", "!=": return .condition(.negated(try compare.equality(first, second, isStrict: mark == "!==")))
        case "+":
            // Otherwise, it may add numbers.
            guard first.isText || second.isText else { throw FunctionProblem("'+' is not understood here") }
            return .concatenation([first, second])
        default: return .condition(try compare.order(mark, first, second))
        }
    }

    /// Reads `&&` and `||`, whose second operand counts only if the first one does not decide.
    private mutating func logic(
        _ first: FunctionTerm, _ right: FunctionExpression, isAnd: Bool, _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        let condition = path.facts.settled(try compare.truth(first))
        if case .constant(let value) = condition { return value == isAnd ? try term(right, &path) : first }
        var inner = path.assuming(condition, is: isAnd)
        let second = try term(right, &inner)
        path.fail(if: .and(isAnd ? condition : .negated(condition), inner.failure))
        let truth = try compare.truth(second)
        let whole = isAnd ? FunctionCondition.and(condition, truth) : .or(condition, truth)
        return first.isCondition && second.isCondition ? .condition(whole) : .truthOnly(whole)
    }

    private mutating func choice(
        _ test: FunctionExpression, _ then: FunctionExpression, _ otherwise: FunctionExpression, _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        let condition = path.facts.settled(try compare.truth(try term(test, &path)))
        if case .constant(let value) = condition { return try term(value ? then : otherwise, &path) }
        var (yes, no) = (path.assuming(condition, is: true), path.assuming(condition, is: false))
        let (first, second) = (try term(then, &yes), try term(otherwise, &no))
        path.fail(if: .branch(condition, yes.failure, no.failure))
        if first == second { return first }
        let whole = FunctionCondition.branch(condition, try compare.truth(first), try compare.truth(second))
        return first.isCondition && second.isCondition ? .condition(whole) : .truthOnly(whole)
    }

    private func member(
        _ value: FunctionTerm, _ name: String, _ isOptional: Bool, _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        switch (value, name) {
        case (.context, "user"): return .user([])
        case (.context, "services"): return .services
        case (.context, "functions"): return .functions
        case (.pieces(let separator), "length"): return .pieceCount(separator)
        case (.document, _):
            if !isOptional { path.require(value) }
            return .user(["custom_data", name])
        case (.user(let place), _):
            guard name != "length" || FunctionTerm.isObject(place) else { break }
            if !isOptional, !FunctionTerm.isObject(place) { path.require(value) }
            return .user(place + [name])
        // An element has no other object in it, which might be absent.
        case (.element([]), _) where name != "length": return .element([name])
        case (.unknown, _): return value
        default: break
        }
        if let problem = value.problem { throw problem }
        throw FunctionProblem("'.\(name)' is not understood here")
    }

    private func element(
        _ value: FunctionTerm, _ index: FunctionTerm, _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        switch (value, index) {
        case (.pieces(let separator), .number(let number)):
            guard let index = Int(exactly: number), index >= 0 else { break }
            return .piece(separator, index)
        case (.user, .string(let name)), (.document, .string(let name)): return try member(value, name, false, &path)
        case (.list(let elements), .number(let number)):
            guard let index = Int(exactly: number), elements.indices.contains(index) else { break }
            return elements[index]
        default: break
        }
        throw FunctionProblem("an element of a list is not understood here")
    }
}

// MARK: Calls

extension FunctionMeaning {
    private mutating func call(
        _ function: FunctionExpression, _ arguments: [FunctionExpression], _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        guard case .member(let inner, let name, let isOptional) = function else {
            guard function == .name("String"), arguments.count == 1 else { throw FunctionProblem("a call is not understood") }
            return try text(of: try term(arguments[0], &path), &path)
        }
        let target = try term(inner, &path)
        switch (target, name) {
        case (.collection(let database, let collection), "findOne"):
            return .promise(try document(database, collection, arguments, &path))
        case (.functions, "execute"):
            let values = try terms(arguments, &path)
            guard case .string(let name)? = values.first else { throw FunctionProblem("it calls a function without a fixed name") }
            return try execute(name, Array(values.dropFirst()), &path)
        case (_, "some"), (_, "find"): return try some(target, name, isOptional, arguments, &path)
        default: return try method(target, name, isOptional, try terms(arguments, &path), &path)
        }
    }

    private mutating func execute(
        _ name: String, _ arguments: [FunctionTerm], _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        let body = try body(of: name)
        let outcome = try run(body, arguments, path.facts)
        path.fail(if: outcome.failure)
        let value = outcome.isBoolean ? FunctionTerm.condition(outcome.permits) : .truthOnly(outcome.permits)
        return body.isAsync || outcome.isPromise ? .promise(value) : value
    }

    private func method(
        _ target: FunctionTerm, _ name: String, _ isOptional: Bool, _ arguments: [FunctionTerm], _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        switch (target, name, arguments.first) {
        case (.services, "get", _): return .service
        case (.service, "db", .string(let database)?): return .database(database)
        case (.database(let database), "collection", .string(let collection)?): return .collection(database, collection)
        case (.partition, "split", .string(let separator)?) where !separator.isEmpty && arguments.count == 1 && !isOptional:
            path.require(target)
            return .pieces(separator)
        case (.user, "includes", let item?), (.list, "includes", let item?):
            guard arguments.count == 1 else { break }
            let condition = try compare.membership(of: item, in: target)
            if case .list = target { return .condition(condition) }
            if isOptional { return .condition(.and(.exists(target), condition)) }
            path.require(target)
            return .condition(condition)
        case (.user, "indexOf", let item?), (.list, "indexOf", let item?):
            guard arguments.count == 1, !isOptional else { break }
            if case .user = target { path.require(target) }
            return .place(of: item, in: target)
        case (.partition, "toString", nil), (.user, "toString", nil), (.piece, "toString", nil):
            guard !isOptional else { break }
            return try text(of: target, &path)
        default: break
        }
        if let problem = target.problem { throw problem }
        throw FunctionProblem("a call of '\(name)' is not understood")
    }

    /// Returns the text of a value that exists.
    private func text(of value: FunctionTerm, _ path: inout FunctionPath) throws(FunctionProblem) -> FunctionTerm {
        let text = try compare.text(of: value)
        if !text.isText { path.require(text) }
        return text
    }

    /// Returns the user's document of the collection for custom user data.
    private mutating func document(
        _ database: String, _ collection: String, _ arguments: [FunctionExpression], _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        guard let customData, customData.database == database, customData.collection == collection else {
            throw FunctionProblem(
                "it reads the collection \(database).\(collection), and roles read custom user data only: name it in auth/custom_user_data.json"
            )
        }
        guard arguments.count == 1, case .object(let query) = arguments[0], query.count == 1, let (key, value) = query.first,
            key == customData.userID, try term(value.identifier, &path) == .user(["id"])
        else { throw FunctionProblem("it reads another document of \(database).\(collection) than the user's own") }
        return .document(userID: customData.userID)
    }

    /// Reads `list.some(x => x.member === value)`.
    private mutating func some(
        _ list: FunctionTerm, _ name: String, _ isOptional: Bool, _ arguments: [FunctionExpression], _ path: inout FunctionPath
    ) throws(FunctionProblem) -> FunctionTerm {
        guard case .user(let place) = list, arguments.count == 1, case .lambda(let body) = arguments[0], body.parameters.count == 1,
            !body.isAsync
        else { throw FunctionProblem("a call of '\(name)' is not understood") }
        if !isOptional { path.require(list) }
        var inner = FunctionPath(scope: path.scope, facts: path.facts)
        inner.scope[body.parameters[0]] = .element([])
        let outcome = try run(body.statements[...], inner)
        guard !outcome.mayFail, case .equal(let left, let right) = outcome.permits else {
            throw FunctionProblem("a condition on the elements of a list is not understood")
        }
        let condition: FunctionCondition
        switch (left, right) {
        case (.element(let member), let value) where name == "some" || !member.isEmpty,
            (let value, .element(let member)) where name == "some" || !member.isEmpty:
            condition = .contains(.user(place + member), value)
        default: throw FunctionProblem("a condition on the elements of a list is not understood")
        }
        let whole = isOptional ? FunctionCondition.and(.exists(list), condition) : condition
        return name == "some" ? .condition(whole) : .truthOnly(whole)
    }
}
