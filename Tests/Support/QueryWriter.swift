package import SluiceCore

/// Writes random query texts over the sample's properties.
package struct QueryWriter {
    package var random: SplitMix64
    /// Property names to write about.
    package var names: [String]

    package static let shapes = [
        "geoBox([-1.0, -1.0], [1.0, 1.0])", "geoBox([170.0, -90.0], [-5.0, 90.0])", "geoCircle([0.5, 0.5], 0.01)",
        "geoCircle([0, 0], 2.0)", "geoPolygon({[-1.0, -1.0], [2.0, -1.0], [2.0, 2.0], [-1.0, 2.0], [-1.0, -1.0]})",
        "geoPolygon({[-20.0, -20.0], [20.0, -20.0], [0.0, 50.0], [-20.0, -20.0]}, {[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]})",
    ]

    package init(random: SplitMix64, names: [String]) {
        self.random = random
        self.names = names
    }

    package mutating func query(depth: Int = 3) -> String {
        if depth > 0, random.chance(55) {
            switch random.below(4) {
            case 0: return "(\(query(depth: depth - 1)) AND \(query(depth: depth - 1)))"
            case 1: return "(\(query(depth: depth - 1)) or \(query(depth: depth - 1)))"
            case 2: return "NOT (\(query(depth: depth - 1)))"
            default: return "\(query(depth: depth - 1)) && (\(query(depth: depth - 1)) || \(query(depth: depth - 1)))"
            }
        }
        if random.chance(3) { return random.pick(["TRUEPREDICATE", "FALSEPREDICATE"]) }
        return leaf()
    }

    private mutating func leaf() -> String {
        let name = random.pick(names)
        guard let property = Samples.type[name] else { return "TRUEPREDICATE" }
        if property.collection != .none {
            if random.chance(25) { return "\(name).@count \(ordering()) \(random.below(4))" }
            if random.chance(25) { return "\(literal(property.type)) IN \(name)" }
            let quantifier = random.pick(["ANY ", "ALL ", "NONE ", ""])
            if quantifier == "ANY ", random.chance(30) { return "ANY \(name) IN \(list(property.type))" }
            return "\(quantifier)\(name) \(comparison(property))"
        }
        if case .embedded = property.type, random.chance(90) { return "\(name) GEOWITHIN \(random.pick(QueryWriter.shapes))" }
        if property.type == .int, random.chance(8) { return "number \(ordering()) other" }
        return "\(name) \(comparison(property))"
    }

    private mutating func ordering() -> String { random.pick(["==", "!=", "<", "<=", ">", ">="]) }

    private mutating func comparison(_ property: Property) -> String {
        let isText =
            switch property.type {
            case .string, .binary, .mixed: true
            default: false
            }
        let flag = isText && random.chance(30) ? "[c]" : ""
        switch random.below(10) {
        case 0 where property.collection == .none: return "IN\(flag) \(list(property.type))"
        case 1 where property.collection == .none: return "BETWEEN {\(literal(property.type)), \(literal(property.type))}"
        case 2, 3, 4:
            guard isText else { break }
            let pattern = random.chance(10) ? "NULL" : property.type == .binary ? literal(.binary) : text(isPattern: true)
            return "\(random.pick(["BEGINSWITH", "ENDSWITH", "CONTAINS", "LIKE"]))\(flag) \(pattern)"
        case 5: return "\(random.pick(["==", "!="]))\(flag) \(random.chance(50) ? "NULL" : literal(property.type))"
        case 6 where property.collection == .none: return "\(ordering()) ALL \(list(property.type))"
        default: break
        }
        return "\(ordering()) \(literal(property.type))"
    }

    private mutating func list(_ type: PropertyType) -> String {
        "{" + (0..<random.below(5)).map { _ in random.chance(15) ? "NULL" : literal(type) }.joined(separator: ", ") + "}"
    }

    private mutating func text(isPattern: Bool = false) -> String {
        var text = random.pick(Samples.texts)
        if isPattern, random.chance(40) {
            text = random.pick(["*", "?", "a*", "*b*", "?b?", "*É*", "**", "a?c", "*%", ""]) + (random.chance(30) ? text : "")
        }
        return "'\(text)'"
    }

    package mutating func literal(_ type: PropertyType) -> String {
        switch type {
        case .bool: return random.pick(["true", "false"])
        case .int:
            if random.chance(20) { return random.pick(["1.5", "-1.5", "1e300", "-1e300", "2.0", "9007199254740993.5", "'3'", "0x1f"]) }
            return "\(random.pick(Samples.ints))"
        case .float, .double:
            if random.chance(20) {
                return random.pick(["1", "9007199254740993", "1.5f", "0.1f", "inf", "-inf", "nan", "16777217", "'0.1'"])
            }
            let value = random.pick(Samples.doubles)
            return value.isNaN ? "nan" : value.isInfinite ? "-inf" : "\(value)"
        case .decimal:
            return random.pick([
                "0", "1", "0.1", "1.50", "-1.5", "9007199254740993", "1e30", "inf", "nan", "0.10000000000000000000000000001",
            ])
        case .string: return text()
        case .binary: return random.pick(["binary('a')", "bin('aB')", "binary(B64\"AQI=\")", "binary('')", "binary(B64\"/w==\")"])
        case .timestamp:
            return random.pick([
                "T0:0", "T1:0", "T1:500", "T-1:-1", "2023-11-14@22:13:20:123456000", "T9007199254740992:0", "T-9007199254740992:0",
            ])
        case .objectId: return "oid(\(random.pick(Samples.ids)))"
        case .uuid: return "uuid(\(random.pick(Samples.uuids)))"
        case .link: return random.pick(["NULL", "obj('Sample', oid(\(random.pick(Samples.ids))))"])
        case .embedded: return "NULL"
        case .mixed:
            return literal(random.pick([.bool, .int, .double, .string, .binary, .timestamp, .objectId, .uuid]))
        }
    }
}
