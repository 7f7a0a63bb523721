import SluiceCore
import SluiceQuery

/// A type with a property of each kind, and pools of values and literals for them that meet often and lie at the edges.
enum Samples {
    static let type = ObjectType(
        name: "Sample",
        properties: [
            Property(id: 1, name: "_id", type: .objectId),
            Property(id: 2, name: "flag", type: .bool, isOptional: true),
            Property(id: 3, name: "number", type: .int, isOptional: true),
            Property(id: 4, name: "ratio", type: .double, isOptional: true),
            Property(id: 5, name: "small", type: .float, isOptional: true),
            Property(id: 6, name: "price", type: .decimal, isOptional: true),
            Property(id: 7, name: "name", type: .string, isOptional: true),
            Property(id: 8, name: "data", type: .binary, isOptional: true),
            Property(id: 9, name: "at", type: .timestamp, isOptional: true),
            Property(id: 10, name: "owner", type: .uuid, isOptional: true),
            Property(id: 11, name: "store", type: .string),
            Property(id: 12, name: "tags", type: .string, collection: .list),
            Property(id: 13, name: "scores", type: .int, collection: .set),
            Property(id: 14, name: "weights", type: .double, collection: .list, isOptional: true),
            Property(id: 15, name: "blend", type: .mixed),
            Property(id: 16, name: "friend", type: .link(to: "Sample"), isOptional: true),
            Property(id: 17, name: "other", type: .int, isOptional: true),
            Property(id: 18, name: "extra", type: .dictionary_string, collection: .dictionary),
            Property(id: 19, name: "place", type: .embedded("Place"), isOptional: true),
        ])

    static let texts = ["", "a", "A", "b", "aB", "Ab", "abc", "ABC", "a*", "É", "é", "ß", "×", "÷", "xÉy", "🦄", "100%", "a_b", "[c]", "z"]
    static let ints: [Int64] = [0, 1, -1, 2, 3, 5, .max, .min, 9_007_199_254_740_991, 9_007_199_254_740_993, -9_007_199_254_740_993]
    static let doubles: [Double] = [
        0, -0.0, 1, 1.5, -1.5, 0.1, 2, 9_007_199_254_740_992, 1e300, -.infinity, .infinity, .nan, .leastNonzeroMagnitude,
    ]
    static let floats: [Float] = [0, -0.0, 1, 1.5, 0.1, -2.25, .infinity, .nan, 16_777_216]
    static let blobs: [[UInt8]] = [[], [0], [1, 2], [1, 2, 3], [255], [0x61], Array("aB".utf8), [0xC3, 0x89]]
    static let times = [
        Timestamp(seconds: 0), Timestamp(seconds: 1), Timestamp(seconds: 1, nanoseconds: 500), Timestamp(seconds: -1, nanoseconds: -1),
        Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_000),
    ]
    static let decimals = [
        "0", "-0", "1", "1.0", "0.1", "1.5", "-1.5", "9007199254740993", "1e30", "inf", "nan", "0.10000000000000000000000000001",
    ]
    .compactMap { Decimal128(rounding: $0) }
    static let ids = (0..<4).map { ObjectIdentifierBytes(high: 0x0102_0304_0506_0708, low: UInt32($0)) }
    static let uuids = (0..<4).map { UUIDBytes(high: 7, low: UInt64($0) << 60) }

    static func value(_ type: PropertyType, _ random: inout SplitMix64) -> Value {
        switch type {
        case .bool: return .bool(random.chance(50))
        case .int: return .int(random.pick(ints))
        case .double: return .double(random.pick(doubles))
        case .float: return .float(random.pick(floats))
        case .decimal: return .decimal(random.pick(decimals))
        case .string: return .string(random.pick(texts))
        case .binary: return .binary(random.pick(blobs))
        case .timestamp: return .timestamp(random.pick(times))
        case .objectId: return .objectId(random.pick(ids))
        case .uuid: return .uuid(random.pick(uuids))
        case .link: return .objectId(random.pick(ids))
        case .embedded: return .dictionary(["x": .int(1)])
        case .mixed:
            if random.chance(10) { return .list([.int(1)]) }
            return value(random.pick([.bool, .int, .double, .float, .decimal, .string, .binary, .timestamp, .objectId, .uuid]), &random)
        }
    }

    static func row(_ random: inout SplitMix64, of type: ObjectType = Samples.type) -> Row {
        var row = Row(
            type.properties.map { property in
                switch property.collection {
                case .dictionary: return .dictionary([:])
                case .list, .set:
                    return .list(
                        (0..<random.below(4)).map { _ in
                            property.isOptional && random.chance(30) ? .null : value(property.type, &random)
                        })
                case .none:
                    return property.isOptional && random.chance(25) ? .null : value(property.type, &random)
                }
            })
        if random.chance(5) { row.values.removeLast(random.below(6)) }
        if random.chance(5) { row[random.below(row.values.count)] = nil }
        return row
    }
}

extension PropertyType {
    /// The element type of the dictionary in the sample.
    static var dictionary_string: PropertyType { .string }
}

/// Writes random query texts over the sample's properties.
struct QueryWriter {
    var random: SplitMix64
    /// Property names to write about.
    var names: [String]

    mutating func query(depth: Int = 3) -> String {
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

    mutating func literal(_ type: PropertyType) -> String {
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
        case .timestamp: return random.pick(["T0:0", "T1:0", "T1:500", "T-1:-1", "2023-11-14@22:13:20:123456000", "1970-01-01T00:00:01"])
        case .objectId: return "oid(\(random.pick(Samples.ids)))"
        case .uuid: return "uuid(\(random.pick(Samples.uuids)))"
        case .link: return random.pick(["NULL", "obj('Sample', oid(\(random.pick(Samples.ids))))"])
        case .embedded: return "NULL"
        case .mixed:
            return literal(random.pick([.bool, .int, .double, .string, .binary, .timestamp, .objectId, .uuid]))
        }
    }
}
