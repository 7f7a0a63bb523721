/// Reads the comparisons of JavaScript.
struct FunctionComparison {
    /// Returns the type of a member of custom data by their schema; nil if it does not say.
    let type: (_ path: [String]) -> String?

    /// Returns the type of a part of the user.
    func type(of path: [String]) -> String? {
        if path == ["id"] { return "string" }
        return path.first == "custom_data" ? type(Array(path.dropFirst())) : nil
    }

    /// Returns the condition under which a value is none of `false`, 0, "", null and undefined.
    func truth(_ term: FunctionTerm) throws(FunctionProblem) -> FunctionCondition {
        switch term {
        case .condition(let condition), .truthOnly(let condition): return condition
        case .string(let text): return .constant(!text.isEmpty)
        case .number(let number): return .constant(number != 0)
        case .null, .absent: return .constant(false)
        case .user(let path) where FunctionTerm.isObject(path): return .constant(true)
        case .user(["id"]), .list, .pieces, .context, .services, .functions, .service, .database, .collection, .lambda:
            return .constant(true)
        case .document: return .exists(term)
        case .unknown, .promise, .partition, .piece, .pieceCount, .user, .joined, .place, .element:
            if let problem = term.problem { throw problem }
            return .truth(term)
        }
    }

    /// - Parameter isStrict: `true` for `===`.
    func equality(_ left: FunctionTerm, _ right: FunctionTerm, isStrict: Bool) throws(FunctionProblem) -> FunctionCondition {
        if let problem = left.problem ?? right.problem { throw problem }
        switch (left, right) {
        case (.place(let item, let list), .number(-1)), (.number(-1), .place(let item, let list)): return .not(.contains(list, item))
        case (.condition(let condition), .condition(.constant(let value))), (.condition(.constant(let value)), .condition(let condition)):
            return value ? condition : .negated(condition)
        case (.string, .string), (.number, .number): return .constant(left == right)
        default: break
        }
        if right.isNullish { return try absence(of: left, right, isStrict) }
        if left.isNullish { return try absence(of: right, left, isStrict) }
        guard isStrict || isAlike(left, right) else { throw FunctionProblem("'==' may convert values here: compare by '==='") }
        switch (left, right) {
        case (.string, .number), (.number, .string): return .constant(false)
        case (.partition, _), (.piece, _), (.user, _): return left == right ? .constant(true) : .equal(left, right)
        default: return .equal(left, right)
        }
    }

    /// Reads a comparison with null or undefined.
    private func absence(
        of value: FunctionTerm, _ other: FunctionTerm, _ isStrict: Bool
    ) throws(FunctionProblem) -> FunctionCondition {
        switch value {
        case .null, .absent: return .constant(!isStrict || value == other)
        // `findOne` returns null, and a partition is null for objects without one.
        case .document, .partition: return isStrict && other == .absent ? .constant(false) : .not(.exists(value))
        case .piece: return isStrict && other == .null ? .constant(false) : .not(.exists(value))
        case .user(let path) where FunctionTerm.isObject(path) || path == ["id"]: return .constant(false)
        case .user where isStrict:
            throw FunctionProblem("'===' tells null from undefined, and roles do not: compare by '=='")
        case .user: return .not(.exists(value))
        case .element: throw FunctionProblem("a condition on the elements of a list is not understood")
        default: return .constant(false)
        }
    }

    /// Returns `true` if `==` decides about two values as `===` does, or a role that compares with the one has no other as equal.
    private func isAlike(_ left: FunctionTerm, _ right: FunctionTerm) -> Bool {
        if let kind = kind(of: left), kind == self.kind(of: right) { return true }
        switch (left, right) {
        case (.user, .string(let text)), (.string(let text), .user): return !Self.mayBeNumber(text)
        case (.partition, .user), (.user, .partition), (.partition, .element), (.element, .partition): return true
        default: return false
        }
    }

    private func kind(of term: FunctionTerm) -> String? {
        switch term {
        case .string, .piece, .joined, .partition: return "string"
        case .number, .pieceCount, .place: return "number"
        case .condition: return "bool"
        case .user(let path):
            let type = type(of: path) ?? ""
            return ["int", "long", "double", "decimal"].contains(type) ? "number" : ["string", "bool"].contains(type) ? type : nil
        default: return nil
        }
    }

    private static func mayBeNumber(_ text: String) -> Bool {
        text.allSatisfy(\.isWhitespace) || text.contains(where: \.isNumber) || text.contains("Infinity")
    }

    /// Reads the comparisons of `indexOf` with 0 and -1.
    func order(_ mark: String, _ left: FunctionTerm, _ right: FunctionTerm) throws(FunctionProblem) -> FunctionCondition {
        guard case .place(let item, let list) = left, case .number(let number) = right else {
            throw FunctionProblem("'\(mark)' is not understood here")
        }
        switch (mark, number) {
        case (">=", 0), (">", -1): return .contains(list, item)
        case ("<", 0), ("<=", -1): return .not(.contains(list, item))
        default: throw FunctionProblem("'\(mark)' is not understood here")
        }
    }

    /// Returns the term for the text of a value.
    func text(of term: FunctionTerm) throws(FunctionProblem) -> FunctionTerm {
        switch term {
        case .string, .partition, .piece, .joined: return term
        case .user(let path) where type(of: path) == "string": return term
        case .user(let path):
            throw FunctionProblem("it compares the text of context.user.\(path.joined(separator: ".")), which is not known to be a text")
        default:
            if let problem = term.problem { throw problem }
            throw FunctionProblem("the text of a value is not understood")
        }
    }

    /// Returns the condition that a list has a value.
    func membership(of item: FunctionTerm, in list: FunctionTerm) throws(FunctionProblem) -> FunctionCondition {
        guard case .list(let elements) = list else { return .contains(list, item) }
        if let problem = item.problem ?? elements.lazy.compactMap(\.problem).first { throw problem }
        let texts = (elements + [item]).compactMap { if case .string(let text) = $0 { text } else { nil } }
        return texts.count == elements.count + 1 ? .constant(elements.contains(item)) : .contains(list, item)
    }
}
