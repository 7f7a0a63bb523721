package import SluiceCore
package import SluiceQuery
package import TestSupport

/// Writes random query texts of the whole language over a schema, most of them with a meaning.
package struct GraphQueryWriter {
    package var random: SplitMix64
    let schema: Schema
    /// What the text's arguments stand for.
    package private(set) var arguments: [QueryArgument] = []
    /// What a name may begin with, and the type that it then belongs to; the innermost last.
    private var scopes: [(prefix: String, type: ObjectType)]

    package init(random: SplitMix64, schema: Schema, type: ObjectType) {
        self.random = random
        self.schema = schema
        scopes = [("", type)]
    }

    private struct Path {
        var text: String
        var type: PropertyType
        var isMany: Bool
    }

    package mutating func query(depth: Int = 2) -> String {
        if depth > 0, random.chance(45) {
            switch random.below(3) {
            case 0: return "(\(query(depth: depth - 1)) AND \(query(depth: depth - 1)))"
            case 1: return "(\(query(depth: depth - 1)) OR \(query(depth: depth - 1)))"
            default: return "NOT (\(query(depth: depth - 1)))"
            }
        }
        switch random.below(20) {
        case 0: return "TRUEPREDICATE"
        case 1, 2: return subquery(depth: depth)
        case 3, 4: return aggregate()
        case 5, 6: return arithmetic()
        case 7: return types()
        case 8: return within()
        case 9: return fullText()
        case 10: return counted()
        default: return comparison()
        }
    }

    // MARK: Paths

    private mutating func path() -> Path {
        let scope = random.chance(80) ? scopes[scopes.count - 1] : random.pick(scopes)
        var path = Path(text: "", type: .link(to: scope.type.name), isMany: false)
        // A name without a variable is the innermost object's.
        let type = scope.prefix.isEmpty ? scopes[scopes.count - 1].type : scope.type
        descend(&path, type, depth: 3)
        if !scope.prefix.isEmpty { path.text = scope.prefix + "." + path.text }
        return path
    }

    private mutating func descend(_ path: inout Path, _ type: ObjectType, depth: Int) {
        let sources = backlinks(to: type)
        if random.chance(10), !sources.isEmpty {
            let (source, name) = random.pick(sources)
            path.text += "@links.\(source.name).\(name)"
            path.isMany = true
            path.type = .link(to: source.name)
            goOn(&path, source, depth: depth)
            return
        }
        let property = random.pick(type.properties)
        path.text += property.name
        path.type = property.type
        let isList = property.collection == .list || property.collection == .set
        switch property.collection {
        case .none: break
        case .list where random.chance(30): path.text += random.pick(["[0]", "[1]", "[FIRST]", "[LAST]"])
        case .dictionary where random.chance(40): path.text += random.pick(["['a']", "['é']", "['zz']", "['b']"])
        default:
            path.isMany = true
            if random.chance(15) { path.text += "[*]" } else if !isList, random.chance(15) { path.text += ".@values" }
        }
        switch property.type {
        case .link(let name), .embedded(let name):
            if let target = schema[name] { goOn(&path, target, depth: depth) }
        case .string where isList && path.isMany && random.chance(15) && !path.text.hasSuffix("]"):
            path.text += ".length"
            path.type = .int
        case .mixed where random.chance(40) && property.collection == .none:
            for _ in 0...random.below(2) { path.text += random.pick(["[0]", "['a']", ".b", "[FIRST]"]) }
            if random.chance(20) {
                path.text += "[*]"
                path.isMany = true
            }
        default: break
        }
    }

    private mutating func goOn(_ path: inout Path, _ type: ObjectType, depth: Int) {
        guard depth > 0, random.chance(75) else { return }
        path.text += "."
        descend(&path, type, depth: depth - 1)
    }

    private func backlinks(to type: ObjectType) -> [(ObjectType, String)] {
        schema.types.filter { $0.kind == .topLevel }.flatMap { source in
            source.properties.filter { $0.type == .link(to: type.name) || $0.type == .embedded(type.name) }.map { (source, $0.name) }
        }
    }

    private mutating func path(where isWanted: (Path) -> Bool) -> Path? {
        for _ in 0..<30 {
            let candidate = path()
            if isWanted(candidate) { return candidate }
        }
        return nil
    }

    // MARK: Comparisons

    private mutating func quantifier(_ path: Path) -> String {
        path.isMany && random.chance(60) ? random.pick(["ANY ", "ALL ", "NONE "]) : ""
    }

    private mutating func comparison() -> String {
        let left = path()
        let isText =
            switch left.type {
            case .string, .binary, .mixed: true
            default: false
            }
        let isOrdered =
            switch left.type {
            case .link, .embedded: false
            default: true
            }
        var comparison = random.pick(isOrdered ? ["==", "!=", "<", "<=", ">", ">="] : ["==", "!="])
        if isText, random.chance(40) { comparison = random.pick(["CONTAINS", "BEGINSWITH", "ENDSWITH", "LIKE"]) }
        if isText, random.chance(30), !comparison.hasPrefix("<"), !comparison.hasPrefix(">") { comparison += "[c]" }
        if random.chance(5), isOrdered { return between(left) }
        if random.chance(10) {
            return "\(operand(left.type)) \(comparison.hasPrefix("<") ? ">" : comparison) \(quantifier(left))\(left.text)"
        }
        if random.chance(10) { return "\(literal(left.type)) IN \(quantifier(left))\(left.text)" }
        return "\(quantifier(left))\(left.text) \(comparison) \(operand(left.type))"
    }

    private mutating func between(_ path: Path) -> String {
        "\(path.isMany ? "ALL " : "")\(path.text) BETWEEN {\(literal(path.type)), \(literal(path.type))}"
    }

    private mutating func operand(_ type: PropertyType) -> String {
        if random.chance(20) { return "\(random.pick(["", "ANY ", "ALL ", "NONE "]))\(list(type))" }
        if random.chance(15) { return argument(type) }
        func isComparable(_ other: PropertyType) -> Bool {
            type == other || type == .mixed || other == .mixed || (GraphQueryWriter.isNumber(type) && GraphQueryWriter.isNumber(other))
        }
        if random.chance(20), let other = path(where: { isComparable($0.type) }) { return quantifier(other) + other.text }
        if random.chance(10) { return "NULL" }
        return literal(type)
    }

    /// A value of the type, or a number of another type, or a list of such.
    private mutating func argument(_ type: PropertyType) -> String {
        func value(_ random: inout SplitMix64) -> Value {
            if GraphQueryWriter.isNumber(type) { return Samples.value(random.pick([.int, .float, .double, .decimal]), &random) }
            if case .link(let name) = type, let target = schema[name], let key = target.primaryKey {
                return .link(type: name, key: RandomGraph.key(random.below(10), target.properties[key].type))
            }
            return random.chance(10) ? .null : Samples.value(type, &random)
        }
        let isList = random.chance(30)
        arguments.append(.value(isList ? .list((0..<random.below(3)).map { _ in value(&random) }) : value(&random)))
        return "\(isList ? random.pick(["", "ANY ", "ALL ", "NONE "]) : "")$\(arguments.count - 1)"
    }

    package mutating func forgetArguments() { arguments = [] }

    private mutating func list(_ type: PropertyType) -> String {
        "{" + (0..<random.below(4)).map { _ in random.chance(10) ? "NULL" : literal(type) }.joined(separator: ", ") + "}"
    }

    private mutating func literal(_ type: PropertyType) -> String {
        if case .link(let name) = type {
            guard let target = schema[name], let key = target.primaryKey else { return "NULL" }
            let value = RandomGraph.key(random.below(10), target.properties[key].type)
            return "obj('\(name)', \(GraphQueryWriter.text(value)))"
        }
        var writer = QueryWriter(random: random, names: [])
        defer { random = writer.random }
        return writer.literal(type)
    }

    static func text(_ key: Value) -> String {
        switch key {
        case .string(let text): "'\(text)'"
        case .objectId(let id): "oid(\(id))"
        case .uuid(let id): "uuid(\(id))"
        case .int(let number): "\(number)"
        default: "NULL"
        }
    }

    private mutating func ordering() -> String { random.pick(["==", "!=", "<", "<=", ">", ">="]) }

    // MARK: The rest

    private mutating func counted() -> String {
        guard
            let path = path(where: { path in
                if path.text.hasSuffix("length") { return false }
                switch path.type {
                case .string, .binary, .mixed, .link, .embedded: return true
                default: return path.isMany && !path.text.hasSuffix("[*]") && !path.text.hasSuffix("@values")
                }
            })
        else { return "FALSEPREDICATE" }
        return "\(path.text).\(random.pick(["@count", "@size"])) \(ordering()) \(random.below(4))"
    }

    private mutating func types() -> String {
        let path = path()
        let name = random.pick(["int", "string", "numeric", "null", "array", "object", "objectlink", "collection", "date", "float"])
        return "\(quantifier(path))\(path.text).@type \(random.pick(["==", "!="])) '\(name)'"
    }

    private static func isNumber(_ type: PropertyType) -> Bool { [.int, .float, .double, .decimal].contains(type) }

    private mutating func aggregate() -> String {
        let wanted = { (path: Path) -> Bool in
            guard GraphQueryWriter.isNumber(path.type), path.isMany, let dot = path.text.lastIndex(of: ".") else { return false }
            return !path.text[dot...].contains { $0 == "[" || $0 == "@" }
        }
        guard let path = path(where: wanted), let dot = path.text.lastIndex(of: ".") else { return own() }
        let text = "\(path.text[..<dot]).\(random.pick(["@min", "@max", "@sum", "@avg"]))\(path.text[dot...])"
        return random.chance(60) ? "\(text) \(ordering()) \(literal(path.type))" : own()
    }

    /// An aggregate of a collection of numbers.
    private mutating func own() -> String {
        guard
            let path = path(where: { GraphQueryWriter.isNumber($0.type) && $0.isMany && !$0.text.hasSuffix("]") && !$0.text.hasSuffix("h") }
            )
        else { return "TRUEPREDICATE" }
        let value = random.chance(20) ? "NULL" : literal(path.type)
        return "\(path.text).\(random.pick(["@min", "@max", "@sum", "@avg"])) \(ordering()) \(value)"
    }

    private mutating func arithmetic() -> String {
        func isNumber(_ path: Path) -> Bool { GraphQueryWriter.isNumber(path.type) }
        guard let left = path(where: isNumber) else { return "TRUEPREDICATE" }
        let right = path(where: { isNumber($0) && !$0.isMany })?.text ?? "2"
        let (first, second) = (random.pick(["+", "-", "*", "/"]), random.pick(["+", "-", "*", "/"]))
        let calculated =
            random.chance(50) ? "\(left.text) \(first) \(random.pick(["2", "0", "1.5", "0.1f", "-3"]))" : "\(left.text) \(first) \(right)"
        if random.chance(30) { return "(\(calculated)) \(second) 3 \(ordering()) \(literal(left.type))" }
        return "\(calculated) \(ordering()) \(literal(left.type))"
    }

    private mutating func subquery(depth: Int) -> String {
        let wanted = { (path: Path) -> Bool in
            guard path.isMany else { return false }
            switch path.type {
            case .link, .embedded: return true
            default: return false
            }
        }
        guard scopes.count < 3, let path = path(where: wanted) else { return "TRUEPREDICATE" }
        let name: String
        switch path.type {
        case .link(let target), .embedded(let target): name = target
        default: return "TRUEPREDICATE"
        }
        guard let type = schema[name] else { return "TRUEPREDICATE" }
        let variable = "$x\(scopes.count)"
        scopes.append((variable, type))
        let inner = query(depth: min(depth, 1))
        scopes.removeLast()
        return "SUBQUERY(\(path.text), \(variable), \(inner)).@count \(ordering()) \(random.below(3))"
    }

    private mutating func within() -> String {
        guard let path = path(where: { $0.type == .embedded("Spot") }) else { return "FALSEPREDICATE" }
        let shape = random.pick(QueryWriter.shapes)
        return "\(quantifier(path))\(path.text) GEOWITHIN \(shape)"
    }

    private mutating func fullText() -> String {
        guard let path = path(where: { $0.type == .string }) else { return "FALSEPREDICATE" }
        return "\(quantifier(path))\(path.text) TEXT '\(random.pick(["a", "A b", "ab*", "-a", "e", "é*", "x y -z"]))'"
    }
}
