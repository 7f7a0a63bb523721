import SluicePluginKit

/// A parsed expression of the rule language.
indirect enum Expression: Hashable {
    case constant(Bool)
    case all([Expression])
    case any([Expression])
    case not(Expression)
    case test(Subject, Comparison, Operand)
    case exists(Subject, Bool)

    enum Subject: Hashable {
        case field(String)
        case expansion(Expansion)
    }

    enum Comparison: String, CaseIterable {
        case equal = "$eq"
        case notEqual = "$ne"
        case greater = "$gt"
        case greaterOrEqual = "$gte"
        case less = "$lt"
        case lessOrEqual = "$lte"
        case among = "$in"
        case notAmong = "$nin"
        /// Every value of the list, as an element of an array or as the value itself.
        case every = "$all"

        var isOrdering: Bool { self == .greater || self == .greaterOrEqual || self == .less || self == .lessOrEqual }
        var takesList: Bool { self == .among || self == .notAmong || self == .every }
    }

    indirect enum Operand: Hashable {
        case value(RuleValue)
        case expansion(Expansion)
        case converted(Conversion, Operand)
        /// The texts of the parts, one behind the other. One part may be a list, which makes a list of texts.
        case joined([Operand])
        case list([Operand])
    }

    enum Conversion: String, CaseIterable {
        case stringToOid = "%stringToOid"
        case oidToString = "%oidToString"
        case stringToUuid = "%stringToUuid"
        case uuidToString = "%uuidToString"
    }
}

extension Expression {
    /// The operator that joins texts.
    private static let concat = "%concat"
    private static let logic = ["$and", "$or", "$nor", "$not", "%and", "%or", "%nor", "%not"]
    private static let operators = Comparison.allCases.map(\.rawValue) + ["$exists", "%exists", "$not", "%not"]

    private static func function(_ value: PluginValue) -> Operand {
        guard let name = value["name"]?.string else { return .expansion(.foreign("%function")) }
        return .expansion(.function(name: name, arguments: value["arguments"]?.array ?? []))
    }

    /// - Throws: An error in the expression, with the line if it is known.
    init(parsing value: PluginValue) throws(RuleMistake) {
        switch value {
        case .bool(let constant): self = .constant(constant)
        case .string("%%true"): self = .constant(true)
        case .string("%%false"): self = .constant(false)
        case .object(let members):
            var parts: [Expression] = []
            for member in members { parts.append(try Self.part(member)) }
            self = parts.count == 1 ? parts[0] : .all(parts)
        default: throw RuleMistake("an expression is true, false or an object, not \(value.json)")
        }
    }

    private static func part(_ member: PluginValue.Member) throws(RuleMistake) -> Expression {
        do throws(RuleMistake) {
            switch member.key {
            case "$and", "%and": return .all(try list(member))
            case "$or", "%or": return .any(try list(member))
            case "$nor", "%nor": return .not(.any(try list(member)))
            case "$not", "%not": return .not(try Expression(parsing: member.value))
            case "%function": return .test(.expansion(.constant(true)), .equal, function(member.value))
            case _ where member.key.hasPrefix("%%"):
                return try test(.expansion(try Expansion(member.key)), member.value)
            case _ where member.key.hasPrefix("$") || member.key.hasPrefix("%"):
                throw unknownOperator(member.key, among: logic + operators)
            default: return try test(.field(member.key), member.value)
            }
        } catch {
            throw error.message.hasPrefix("line ") || member.line == 0 ? error : RuleMistake("line \(member.line): \(error.message)")
        }
    }

    private static func list(_ member: PluginValue.Member) throws(RuleMistake) -> [Expression] {
        guard let elements = member.value.array else { throw RuleMistake("\(member.key) takes a list of expressions") }
        var parts: [Expression] = []
        for element in elements { parts.append(try Expression(parsing: element)) }
        return parts
    }

    private static func test(_ subject: Subject, _ value: PluginValue) throws(RuleMistake) -> Expression {
        guard case .object(let members) = value, let first = members.first, RuleValue(extended: value) == nil,
            Conversion(rawValue: first.key) == nil, first.key != concat
        else { return .test(subject, .equal, try operand(value)) }
        guard members.allSatisfy({ $0.key.hasPrefix("$") || $0.key.hasPrefix("%") }) else {
            throw RuleMistake("\(value.json) is an embedded object, which a rule cannot compare with")
        }
        var parts: [Expression] = []
        for member in members { parts.append(try comparison(subject, member)) }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private static func comparison(_ subject: Subject, _ member: PluginValue.Member) throws(RuleMistake) -> Expression {
        switch member.key {
        case "$exists", "%exists":
            switch member.value {
            case .bool(let flag): return .exists(subject, flag)
            case .string("%%true"): return .exists(subject, true)
            case .string("%%false"): return .exists(subject, false)
            default: throw RuleMistake("\(member.key) takes true or false, not \(member.value.json)")
            }
        case "$not", "%not": return .not(try test(subject, member.value))
        case "%function": return .test(subject, .equal, function(member.value))
        default:
            guard let comparison = Comparison(rawValue: member.key) else {
                throw unknownOperator(member.key, among: operators + Conversion.allCases.map(\.rawValue) + [concat])
            }
            let operand = try operand(member.value)
            if comparison.takesList, case .value(let single) = operand {
                throw RuleMistake("\(member.key) takes a list, not \(single.typeName)")
            }
            return .test(subject, comparison, operand)
        }
    }

    /// Operators of MongoDB's queries that have no meaning as a rule of sync.
    private static let foreignOperators: Set<String> = [
        "$bitsAllClear", "$bitsAllSet", "$bitsAnyClear", "$bitsAnySet", "$comment", "$elemMatch", "$expr", "$geoIntersects", "$geoWithin",
        "$jsonSchema", "$mod", "$near", "$nearSphere", "$options", "$regex", "$size", "$text", "$type", "$where",
    ]

    private static func unknownOperator(_ name: String, among known: [String]) -> RuleMistake {
        guard foreignOperators.contains(name) else { return RuleMistake("there is no operator \(name)", meant: name, among: known) }
        let comparisons = Comparison.allCases.map(\.rawValue).joined(separator: " ")
        return RuleMistake("the operator \(name) of MongoDB is not supported in roles; use \(comparisons) $exists $not")
    }

    private static func operand(_ value: PluginValue) throws(RuleMistake) -> Operand {
        switch value {
        case .string(let text) where text.hasPrefix("%%"): return .expansion(try Expansion(text))
        case .array(let elements):
            var operands: [Operand] = []
            for element in elements { operands.append(try operand(element)) }
            return .list(operands)
        case .object(let members):
            if let value = RuleValue(extended: value) { return .value(value) }
            if members.count == 1, members[0].key == "%function" { return function(members[0].value) }
            if members.count == 1, let conversion = Conversion(rawValue: members[0].key) {
                return .converted(conversion, try converted(members[0]))
            }
            if members.count == 1, members[0].key == concat { return .joined(try joined(members[0])) }
            throw RuleMistake("\(value.json) is not a value that a rule can compare with")
        default: return .value(RuleValue(value))
        }
    }

    private static func joined(_ member: PluginValue.Member) throws(RuleMistake) -> [Operand] {
        guard let elements = member.value.array, !elements.isEmpty else { throw RuleMistake("\(member.key) takes a list of texts") }
        var operands: [Operand] = []
        for element in elements {
            let operand = try operand(element)
            switch operand {
            case .value(.string), .expansion, .converted: operands.append(operand)
            case .value, .joined, .list: throw RuleMistake("\(element.json) in \(member.key) is no text, expansion or conversion")
            }
        }
        return operands
    }

    private static func converted(_ member: PluginValue.Member) throws(RuleMistake) -> Operand {
        guard member.value.array == nil else { throw RuleMistake("\(member.key) takes one value, not a list") }
        let operand = try operand(member.value)
        switch operand {
        case .converted, .joined: throw RuleMistake("\(member.key) cannot contain another operator")
        case .value, .expansion, .list: return operand
        }
    }
}

extension Expression {
    /// The fields of the document that the expression uses.
    var fields: Set<String> { Set(subjects.compactMap { if case .field(let name) = $0 { name } else { nil } }) }

    /// The expansions in the expression.
    var expansions: [Expansion] {
        subjects.compactMap { if case .expansion(let expansion) = $0 { expansion } else { nil } } + operands.flatMap(\.expansions)
    }

    private var subjects: [Subject] {
        switch self {
        case .constant: []
        case .all(let parts), .any(let parts): parts.flatMap(\.subjects)
        case .not(let part): part.subjects
        case .test(let subject, _, _), .exists(let subject, _): [subject]
        }
    }

    private var operands: [Operand] {
        switch self {
        case .constant, .exists: []
        case .all(let parts), .any(let parts): parts.flatMap(\.operands)
        case .not(let part): part.operands
        case .test(_, _, let operand): [operand]
        }
    }
}

extension Expression.Operand {
    var expansions: [Expansion] {
        switch self {
        case .value: []
        case .expansion(let expansion): [expansion]
        case .converted(_, let operand): operand.expansions
        case .joined(let operands), .list(let operands): operands.flatMap(\.expansions)
        }
    }
}
