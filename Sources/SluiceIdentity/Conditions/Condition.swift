import SluiceCore
package import SluiceValues

/// A condition in an export's file: the part of App Services' expressions that the gateway evaluates itself.
///
/// It is `true`, `false`, or an object of tests that must all hold. A test compares a name with a value, another name, or by operators.
package indirect enum Condition: Hashable, Sendable {
    case constant(Bool)
    case all([Condition])
    case any([Condition])
    case not(Condition)
    case exists(name: String, Bool)
    case test(name: String, Comparison, Operand)
    /// Both operands are equal, or both are absent (`$expr`).
    case same(Operand, Operand)

    package enum Comparison: String, Hashable, Sendable, CaseIterable {
        case equal = "$eq"
        case notEqual = "$ne"
        case greater = "$gt"
        case greaterOrEqual = "$gte"
        case less = "$lt"
        case lessOrEqual = "$lte"
        case among = "$in"
        case notAmong = "$nin"
    }

    package enum Operand: Hashable, Sendable {
        case value(JSON)
        /// A name, such as `%%user.id`.
        case name(String)
    }

    /// A part of an expression without a meaning here.
    package struct Unsupported: Error, Hashable, Sendable {
        package var part: String
    }

    /// - Throws: `Unsupported` with the part, cut to 100 characters.
    package init(_ json: JSON) throws(Unsupported) {
        switch json {
        case .bool(let constant): self = .constant(constant)
        case .string("%%true"): self = .constant(true)
        case .string("%%false"): self = .constant(false)
        case .object(let members):
            var parts: [Condition] = []
            for member in members { parts.append(try Self.part(member)) }
            self = parts.count == 1 ? parts[0] : parts.isEmpty ? .constant(true) : .all(parts)
        default: throw Self.unsupported(json.text)
        }
    }

    private static func part(_ member: JSON.Member) throws(Unsupported) -> Condition {
        switch member.key {
        case "$and", "%and": return .all(try list(member))
        case "$or", "%or": return .any(try list(member))
        case "$nor", "%nor": return .not(.any(try list(member)))
        case "$not", "%not": return .not(try Condition(member.value))
        case "$expr": return try expression(member.value)
        // A constant, such as "%%true": {…}, is no name of a value.
        case "%%true", "%%false": throw unsupported(member.key)
        case let name where name.hasPrefix("%%") || !(name.hasPrefix("%") || name.hasPrefix("$")): return try test(name, member.value)
        default: throw unsupported(member.key)
        }
    }

    private static func list(_ member: JSON.Member) throws(Unsupported) -> [Condition] {
        guard let elements = member.value.array else { throw unsupported(member.key) }
        var parts: [Condition] = []
        for element in elements { parts.append(try Condition(element)) }
        return parts
    }

    private static func test(_ name: String, _ json: JSON) throws(Unsupported) -> Condition {
        guard case .object(let members) = json, !members.isEmpty, ExtendedForm(json) == nil else {
            return .test(name: name, .equal, try operand(json))
        }
        var parts: [Condition] = []
        for member in members { parts.append(try comparison(name, member)) }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private static func comparison(_ name: String, _ member: JSON.Member) throws(Unsupported) -> Condition {
        switch member.key {
        case "$exists", "%exists":
            guard let flag = member.value.bool else { throw unsupported(member.key) }
            return .exists(name: name, flag)
        case "$not", "%not": return .not(try test(name, member.value))
        default:
            guard let comparison = Comparison(rawValue: member.key.hasPrefix("%") ? "$" + member.key.dropFirst() : member.key) else {
                throw unsupported(member.key)
            }
            let operand = try operand(member.value)
            if comparison == .among || comparison == .notAmong, case .value(let value) = operand, value.array == nil {
                throw unsupported(member.key)
            }
            return .test(name: name, comparison, operand)
        }
    }

    private static func operand(_ json: JSON) throws(Unsupported) -> Operand {
        if let text = json.string, text.hasPrefix("%%") { return .name(text) }
        guard isPlain(json) else { throw unsupported(json.text) }
        return .value(json.plain)
    }

    /// `true` if no part of the value is an operator or a name.
    private static func isPlain(_ json: JSON) -> Bool {
        if ExtendedForm(json) != nil { return true }
        switch json {
        case .string(let text): return !text.hasPrefix("%%")
        case .array(let elements): return elements.allSatisfy(isPlain)
        case .object(let members):
            return members.allSatisfy { !$0.key.hasPrefix("$") && !$0.key.hasPrefix("%") && isPlain($0.value) }
        default: return true
        }
    }

    static func unsupported(_ part: String) -> Unsupported { Unsupported(part: String(part.unicodeScalars.prefix(100))) }
}

extension Condition {
    /// The names in the condition.
    package var names: Set<String> {
        switch self {
        case .constant: []
        case .all(let parts), .any(let parts): parts.reduce(into: []) { $0.formUnion($1.names) }
        case .not(let part): part.names
        case .exists(let name, _), .test(let name, _, .value): [name]
        case .test(let name, _, .name(let other)): [name, other]
        case .same(let left, let right): Set([left, right].compactMap(\.name))
        }
    }

    /// `true` if the condition certainly holds.
    ///
    /// - Parameter value: Returns the value of a name; nil if it has none.
    package func holds(_ value: (_ name: String) -> JSON?) -> Bool { truth(value) == true }

    /// The truth; nil if it is unknown, as of an order of two values that have none. Unknown stays unknown when it is negated.
    private func truth(_ value: (_ name: String) -> JSON?) -> Bool? {
        switch self {
        case .constant(let constant): return constant
        case .all(let parts):
            let truths = parts.map { $0.truth(value) }
            return truths.contains(false) ? false : truths.contains(nil) ? nil : true
        case .any(let parts):
            let truths = parts.map { $0.truth(value) }
            return truths.contains(true) ? true : truths.contains(nil) ? nil : false
        case .not(let part): return part.truth(value).map { !$0 }
        case .exists(let name, let flag): return (value(name) != nil) == flag
        case .test(let name, let comparison, .value(let right)): return comparison.holds(value(name)?.plain ?? .null, right)
        case .test(let name, let comparison, .name(let other)):
            // An absent value would equal another absent one.
            return value(other).flatMap { comparison.holds(value(name)?.plain ?? .null, $0.plain) }
        case .same(let left, let right): return left.isSame(as: right, value)
        }
    }
}

extension Condition.Comparison {
    func holds(_ left: JSON, _ right: JSON) -> Bool? {
        switch self {
        case .equal: return left.matches(right)
        case .notEqual: return !left.matches(right)
        case .among: return right.array.map { $0.contains { left.matches($0) } }
        case .notAmong: return right.array.map { !$0.contains { left.matches($0) } }
        case .greater: return right.isLess(than: left)
        case .less: return left.isLess(than: right)
        case .greaterOrEqual: return right.isLess(than: left).map { $0 || left.equals(right) }
        case .lessOrEqual: return left.isLess(than: right).map { $0 || left.equals(right) }
        }
    }
}

extension JSON {
    /// `true` if both are equal, or this is an array with an equal element, as in MongoDB's queries.
    fileprivate func matches(_ other: JSON) -> Bool { equals(other) || array?.contains { $0.equals(other) } == true }
}
