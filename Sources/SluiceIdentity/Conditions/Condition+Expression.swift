import SluiceCore
package import SluiceValues

/// The part of MongoDB's aggregation expressions that compares fields for equality.
extension Condition {
    /// Reads the value of `$expr`: `$eq`, `$ne`, `$and`, `$or` and `$not` over names of fields and plain values.
    static func expression(_ json: JSON) throws(Unsupported) -> Condition {
        guard let members = json.members, let member = members.first, members.count == 1 else { throw unsupported(json.text) }
        switch member.key {
        case "$and": return .all(try expressions(member))
        case "$or": return .any(try expressions(member))
        case "$not":
            let parts = try member.value.array == nil ? [expression(member.value)] : expressions(member)
            guard parts.count == 1 else { throw unsupported(member.key) }
            return .not(parts[0])
        case "$eq": return try same(member)
        case "$ne": return .not(try same(member))
        default: throw unsupported(member.key)
        }
    }

    private static func expressions(_ member: JSON.Member) throws(Unsupported) -> [Condition] {
        guard let elements = member.value.array else { throw unsupported(member.key) }
        var parts: [Condition] = []
        for element in elements { parts.append(try expression(element)) }
        return parts
    }

    private static func same(_ member: JSON.Member) throws(Unsupported) -> Condition {
        guard let sides = member.value.array, sides.count == 2 else { throw unsupported(member.key) }
        return .same(try side(sides[0]), try side(sides[1]))
    }

    private static func side(_ json: JSON) throws(Unsupported) -> Operand {
        if let text = json.string, text.hasPrefix("$") {
            let name = text.dropFirst()
            // `$$ROOT` and other variables.
            guard let first = name.first, first != "$", first != "%" else { throw unsupported(text) }
            return .name(String(name))
        }
        // An object or an array would be an expression itself.
        guard ExtendedForm(json) != nil || json.array == nil && json.members == nil else { throw unsupported(json.text) }
        return .value(json.plain)
    }
}

extension Condition.Operand {
    var name: String? { if case .name(let name) = self { name } else { nil } }

    /// `true` if both are equal, or both are absent.
    func isSame(as other: Condition.Operand, _ value: (_ name: String) -> JSON?) -> Bool {
        switch (resolved(value), other.resolved(value)) {
        case (let left?, let right?): left.equals(right)
        case (nil, nil): true
        default: false
        }
    }

    private func resolved(_ value: (_ name: String) -> JSON?) -> JSON? {
        switch self {
        case .value(let value): value
        case .name(let name): value(name)?.plain
        }
    }
}

extension Condition {
    /// `true` if a document matches the condition as a query of MongoDB, whose names are paths. Each test is true or false then: a
    /// comparison of values without an order is false, and its negation is true.
    package func matches(_ document: JSON) -> Bool {
        switch self {
        case .constant(let constant): constant
        case .all(let parts): parts.allSatisfy { $0.matches(document) }
        case .any(let parts): parts.contains { $0.matches(document) }
        case .not(let part): !part.matches(document)
        case .exists(let name, let flag): document.candidates(at: Self.path(name)).contains { $0 != nil } == flag
        case .test(let name, let comparison, .value(let operand)): comparison.matches(document.candidates(at: Self.path(name)), operand)
        case .test, .same: holds { document.value(at: Self.path($0)) }
        }
    }

    private static func path(_ name: String) -> ArraySlice<Substring> { name.split(separator: ".", omittingEmptySubsequences: false)[...] }
}

extension Condition.Comparison {
    /// `true` if one of the values satisfies the comparison; for a negated one, if no value satisfies its opposite.
    fileprivate func matches(_ candidates: [JSON?], _ operand: JSON) -> Bool {
        switch self {
        case .equal: candidates.contains { ($0?.plain ?? .null).equals(operand) }
        case .among: operand.array?.contains { Self.equal.matches(candidates, $0) } == true
        case .notEqual: !Self.equal.matches(candidates, operand)
        case .notAmong: !Self.among.matches(candidates, operand)
        case .greater, .greaterOrEqual, .less, .lessOrEqual: candidates.contains { holds($0?.plain ?? .null, operand) == true }
        }
    }
}
