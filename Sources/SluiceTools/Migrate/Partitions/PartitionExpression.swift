import SluiceValues

/// Writes a permission of partition-based sync as a filter of a role on the partition key.
struct PartitionExpression {
    private static let partition = "%%partition"

    private let field: String
    private let export: PartitionExport
    private var functions: FunctionMeaning

    /// - Parameter functions: The sources of the app's functions by name.
    init(_ export: PartitionExport, functions: [String: String]) {
        field = export.key
        self.export = export
        self.functions = FunctionMeaning(sources: functions, customData: export.customDataPlace, type: export.type)
    }

    /// - Throws: `FunctionProblem` if no role can express it.
    mutating func filter(_ permission: JSON, isNegated: Bool = false) throws(FunctionProblem) -> JSON {
        switch permission {
        case .bool: return permission
        case .string("%%true"): return true
        case .string("%%false"): return false
        case .object(let members):
            var filters: [JSON] = []
            for member in members {
                let filter = try part(member.key, member.value, isNegated)
                if filter == false { return false }
                if filter != true { filters.append(filter) }
            }
            return PartitionFilter.all(filters)
        default: throw FunctionProblem("\(permission.text) is no expression")
        }
    }

    private mutating func part(_ key: String, _ value: JSON, _ isNegated: Bool) throws(FunctionProblem) -> JSON {
        switch key {
        case "$and", "%and", "$or", "%or": return try combination(key.hasSuffix("and"), try filters(value, isNegated))
        case "$nor", "%nor": return Self.negated(try combination(false, try filters(value, !isNegated)))
        case "$not", "%not": return Self.negated(try filter(value, isNegated: !isNegated))
        case "%function": return try function(value, isNegated)
        case "%%true": return try constant(value, isNegated)
        case "%%false": return Self.negated(try constant(value, !isNegated))
        case Self.partition: return try comparison(value)
        default:
            guard key.hasPrefix("%%") else { throw FunctionProblem("'\(key)' is no expansion: a partition has no fields") }
            guard Self.mentions(value, Self.partition) else {
                guard !Self.mentions(value, "%function") else {
                    throw FunctionProblem("'\(key)' is compared with the result of a function")
                }
                return .object([.init(key, value)])
            }
            return try membership(key, value, isNegated)
        }
    }

    /// Reads the value of `%%true`: a function, an expression or a constant.
    private mutating func constant(_ value: JSON, _ isNegated: Bool) throws(FunctionProblem) -> JSON {
        if let inner = value["$eq"], value.members?.count == 1 { return try filter(inner, isNegated: isNegated) }
        return try filter(value, isNegated: isNegated)
    }

    private mutating func filters(_ value: JSON, _ isNegated: Bool) throws(FunctionProblem) -> [JSON] {
        guard let elements = value.array else { throw FunctionProblem("\(value.text) is no list of expressions") }
        var filters: [JSON] = []
        for element in elements { filters.append(try filter(element, isNegated: isNegated)) }
        return filters
    }

    private func combination(_ isAll: Bool, _ filters: [JSON]) throws(FunctionProblem) -> JSON {
        let neutral = JSON.bool(isAll)
        let others = filters.filter { $0 != neutral }
        if others.contains(.bool(!isAll)) { return .bool(!isAll) }
        return others.isEmpty ? neutral : others.count == 1 ? others[0] : [isAll ? "$and" : "$or": .array(others)]
    }

    private static func negated(_ filter: JSON) -> JSON {
        if let value = filter.bool { return .bool(!value) }
        if let inner = filter["$not"], filter.members?.count == 1 { return inner }
        return ["$not": filter]
    }

    /// Returns `true` if a name is a key or a text in the value.
    private static func mentions(_ value: JSON, _ name: String) -> Bool {
        switch value {
        case .string(let text): text == name
        case .array(let elements): elements.contains { mentions($0, name) }
        case .object(let members): members.contains { $0.key == name || mentions($0.value, name) }
        default: false
        }
    }

    // MARK: Comparisons

    /// Reads a comparison of the partition value with something of the user.
    private mutating func comparison(_ value: JSON) throws(FunctionProblem) -> JSON {
        guard !Self.mentions(value, "%function") else { throw FunctionProblem("the partition is compared with the result of a function") }
        guard !Self.mentions(value, Self.partition) else {
            throw FunctionProblem("the partition is compared with \(value.text)")
        }
        return .object([.init(field, Self.withDollar(value))])
    }

    /// Reads a comparison of something of the user with the partition value. A list of the user has the value as an element.
    private func membership(_ name: String, _ value: JSON, _ isNegated: Bool) throws(FunctionProblem) -> JSON {
        switch value {
        case .string(Self.partition):
            switch try list(name, isNegated) {
            case true?: return .object([.init(field, ["$in": .string(name)])])
            case false?: return .object([.init(field, .string(name))])
            case nil: return ["$or": [.object([.init(field, .string(name))]), .object([.init(field, ["$in": .string(name)])])]]
            }
        case .object(let members) where members.count == 1:
            let inner = members[0].value
            switch members[0].key {
            case "$eq", "%eq": return try membership(name, inner, isNegated)
            case "$ne", "%ne": return Self.negated(try membership(name, inner, !isNegated))
            case "$in", "%in", "$all":
                return try membership(name, inner.array?.count == 1 ? inner.array?[0] ?? .null : inner, isNegated)
            case "$nin", "%nin":
                return Self.negated(try membership(name, inner.array?.count == 1 ? inner.array?[0] ?? .null : inner, !isNegated))
            case "$elemMatch", "%elemMatch":
                guard let member = inner.members?.first, inner.members?.count == 1 else { break }
                if member.key.hasPrefix("$"), member.key == "$eq", member.value == .string(Self.partition) {
                    return .object([.init(field, ["$in": .string(name)])])
                }
                guard member.value == .string(Self.partition) else { break }
                return .object([.init(field, ["$in": .string("\(name).\(member.key)")])])
            default: break
            }
        default: break
        }
        throw FunctionProblem("'\(name)' is compared with \(value.text)")
    }

    /// Returns `true` if an expansion is a list, and nil if it may be one.
    private func list(_ name: String, _ isNegated: Bool) throws(FunctionProblem) -> Bool? {
        let path = name.split(separator: ".").map(String.init)
        guard path.count > 2, path[0] == "%%user", path[1] == "custom_data" else { return false }
        let known = export.type(Array(path.dropFirst(2))).map { $0 == "array" }
        guard known != nil || !isNegated else {
            throw FunctionProblem("'\(name)' is negated, and the export does not say whether it is a list")
        }
        return known
    }

    /// Returns the comparison with the operators' names of today.
    private static func withDollar(_ value: JSON) -> JSON {
        guard let members = value.members else { return value }
        let old = ["%eq", "%ne", "%in", "%nin", "%gt", "%gte", "%lt", "%lte"]
        return .object(members.map { old.contains($0.key) ? .init("$" + $0.key.dropFirst(), $0.value) : $0 })
    }

    // MARK: Functions

    /// Reads a call of a function. One that fails permits nothing, and its negation neither.
    private mutating func function(_ call: JSON, _ isNegated: Bool) throws(FunctionProblem) -> JSON {
        guard let name = call["name"]?.string else { throw FunctionProblem("%function has no name") }
        do throws(FunctionProblem) {
            let outcome = try functions.outcome(of: name, (call["arguments"]?.array ?? []).map(Self.argument))
            let filter = try PartitionFilter(field: field, emptyPartition: export.emptyPartition, compare: functions.compare)
                .json(isNegated ? outcome.refuses : outcome.permits)
            return isNegated ? Self.negated(filter) : filter
        } catch {
            throw FunctionProblem("function \(name): \(error.reason)")
        }
    }

    private static func argument(_ json: JSON) -> FunctionTerm {
        switch json {
        case .string(partition): return .partition
        case .string(let text) where text.hasPrefix("%%user"): return .user(text.split(separator: ".").dropFirst().map(String.init))
        case .string(let text) where text.hasPrefix("%%"): return .unknown(text)
        case .string(let text): return .string(text)
        case .int(let number): return .number(Double(number))
        case .bool(let value): return .condition(.constant(value))
        default: return .unknown(json.text)
        }
    }
}
