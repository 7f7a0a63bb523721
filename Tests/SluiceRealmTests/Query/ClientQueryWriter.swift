import SluiceCore
import SluiceValues
import TestSupport

/// Queries in the form that clients print, each with its meaning.
struct ClientQueryWriter {
    var random: SplitMix64

    /// The values of a row. Nil is null.
    struct Sample {
        var number: Int64?
        var name: String?
        var at: Timestamp?
        var owner: UUIDBytes?
        var store: ObjectIdentifierBytes?
        var flag: Bool
        var tags: [String]

        var values: [String: Value] {
            [
                "number": number.map { .int($0) } ?? .null, "name": name.map { .string($0) } ?? .null,
                "at": at.map { .timestamp($0) } ?? .null,
                "owner": owner.map { .uuid($0) } ?? .null, "store": store.map { .objectId($0) } ?? .null, "flag": .bool(flag),
                "tags": .list(tags.map { .string($0) }),
            ]
        }
    }

    typealias Meaning = (Sample) -> Bool

    static let type = ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "_id", type: .objectId), Property(id: 2, name: "number", type: .int, isOptional: true),
            Property(id: 3, name: "name", type: .string, isOptional: true), Property(id: 4, name: "at", type: .timestamp, isOptional: true),
            Property(id: 5, name: "owner", type: .uuid, isOptional: true),
            Property(id: 6, name: "store", type: .objectId, isOptional: true),
            Property(id: 7, name: "flag", type: .bool), Property(id: 8, name: "tags", type: .string, collection: .list),
        ])
    static let fields = QueryableFields(global: Set(type.properties.map(\.name)))

    private static let names = ["", "a", "Ab", "b", "a\"b", "it's", "back\\slash", "line\n", "水", "x (SORT(y ASC))"]
    private static let times = [
        Timestamp(seconds: 0), Timestamp(seconds: 1_672_628_645, nanoseconds: 6_000), Timestamp(seconds: -1, nanoseconds: -5_000),
    ]

    mutating func sample() -> Sample {
        Sample(
            number: optional { Int64($0.below(7)) - 2 }, name: optional { $0.pick(Self.names) }, at: optional { $0.pick(Self.times) },
            owner: optional { $0.pick(Samples.uuids) }, store: optional { $0.pick(Samples.ids) }, flag: random.chance(50),
            tags: (0..<random.below(4)).map { _ in random.pick(Self.names) })
    }

    private mutating func optional<T>(_ make: (inout SplitMix64) -> T) -> T? { random.chance(20) ? nil : make(&random) }

    /// A condition. Groups of OR have parentheses, as a client prints them.
    mutating func condition(depth: Int = 3) -> (text: String, meaning: Meaning) {
        guard depth > 0, random.chance(60) else { return leaf() }
        let (left, right) = (condition(depth: depth - 1), condition(depth: depth - 1))
        switch random.below(3) {
        case 0: return ("\(left.text) and \(right.text)", { left.meaning($0) && right.meaning($0) })
        case 1: return ("(\(left.text) or \(right.text))", { left.meaning($0) || right.meaning($0) })
        default: return ("!(\(left.text))", { !left.meaning($0) })
        }
    }

    private mutating func leaf() -> (text: String, meaning: Meaning) {
        switch random.below(9) {
        case 0: return ("TRUEPREDICATE", { _ in true })
        case 1: return number()
        case 2: return name()
        case 3:
            let time = random.pick(Self.times)
            return ("at > T\(time.seconds):\(time.nanoseconds)", { $0.at.map { $0 > time } ?? false })
        case 4:
            let id = random.pick(Samples.uuids)
            return ("owner == uuid(\(id))", { $0.owner == id })
        case 5:
            let id = random.pick(Samples.ids)
            return ("store != oid(\(id))", { $0.store != id })
        case 6:
            if random.chance(50) { return ("flag == true", { $0.flag }) }
            return ("store == NULL", { $0.store == nil })
        case 7:
            let count = random.below(4)
            return ("tags.@size == \(count)", { $0.tags.count == count })
        default:
            let tag = random.pick(Self.names)
            return ("ANY tags == \(Self.quoted(tag))", { $0.tags.contains(tag) })
        }
    }

    private mutating func number() -> (text: String, meaning: Meaning) {
        let bound = Int64(random.below(7)) - 2
        switch random.below(4) {
        case 0: return ("number > \(bound)", { $0.number.map { $0 > bound } ?? false })
        case 1: return ("number != \(bound)", { $0.number != bound })
        case 2:
            let members = (0..<3).map { _ in Int64(random.below(7)) - 2 }
            let list = members.map { "\($0)" }.joined(separator: ", ")
            return ("number IN {\(list)}", { $0.number.map { members.contains($0) } ?? false })
        default: return ("number between {\(bound), \(bound + 2)}", { $0.number.map { (bound...bound + 2).contains($0) } ?? false })
        }
    }

    private mutating func name() -> (text: String, meaning: Meaning) {
        let name = random.pick(Self.names)
        if random.chance(50) { return ("name == \(Self.quoted(name))", { $0.name == name }) }
        return ("name BEGINSWITH \(Self.quoted(name))", { $0.name.map { $0.utf8.starts(with: name.utf8) } ?? false })
    }

    /// A string in quotes, or in Base64 if it has a quote, a backslash or a control character.
    static func quoted(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { $0 >= 32 && !"\"'\\".utf8.contains($0) }
        return isPlain ? "\"\(text)\"" : "B64\"\(Base64.encode(Array(text.utf8)))\""
    }
}
