import SluiceCore
import SluiceValues
import TestSupport

/// A collection with a random schema, and documents that fit it.
struct RandomCollection {
    indirect enum Shape {
        case scalar(Int)
        case list(Shape, hasNull: Bool)
        case dictionary(Shape, hasNull: Bool)
        case embedded([Field])
        case mixed
        /// A key of another collection.
        case link
    }

    struct Field {
        var name: String
        var shape: Shape
        /// `true` if the field may be absent or null.
        var isOptional: Bool
    }

    let keyKind: Int
    let fields: [Field]

    /// The kinds of scalars: every type of a property.
    static let scalars = 9

    init(_ random: inout SplitMix64, hasLinks: Bool) {
        keyKind = random.pick([1, 4, 6, 7])
        fields = Self.fields(&random, depth: 0, hasLinks: hasLinks)
    }

    private static func fields(_ random: inout SplitMix64, depth: Int, hasLinks: Bool) -> [Field] {
        (0..<1 + random.below(6)).map {
            Field(name: "f\($0)", shape: shape(&random, depth: depth, hasLinks: hasLinks), isOptional: random.chance(50))
        }
    }

    private static func shape(_ random: inout SplitMix64, depth: Int, hasLinks: Bool) -> Shape {
        let scalar = Shape.scalar(random.below(scalars))
        switch random.below(10) {
        case 0: return .mixed
        case 1: return .list(scalar, hasNull: random.chance(30))
        case 2: return .dictionary(scalar, hasNull: random.chance(30))
        case 3 where depth < 3: return .embedded(fields(&random, depth: depth + 1, hasLinks: hasLinks))
        case 4 where depth < 3: return .list(.embedded(fields(&random, depth: depth + 1, hasLinks: hasLinks)), hasNull: false)
        case 5 where hasLinks: return .link
        default: return scalar
        }
    }

    /// Returns a document.
    ///
    /// - Parameter keys: The keys of the linked collection.
    func document(_ index: Int, keys: [Value], _ random: inout SplitMix64) -> [String: Value] {
        var members = Self.members(fields, keys, &random)
        members["_id"] = Self.key(keyKind, index)
        return members
    }

    static func key(_ kind: Int, _ index: Int) -> Value {
        switch kind {
        case 1: .int(Int64(index))
        case 4: .string("key \(index)")
        case 6: .objectId(ObjectIdentifierBytes(high: 7, low: UInt32(index)))
        default: .uuid(UUIDBytes(high: 9, low: UInt64(index)))
        }
    }

    private static func members(_ fields: [Field], _ keys: [Value], _ random: inout SplitMix64) -> [String: Value] {
        var members: [String: Value] = [:]
        for field in fields {
            if field.isOptional, random.chance(40) {
                if random.chance(50) { members[field.name] = .null }
            } else {
                members[field.name] = value(field.shape, keys, &random)
            }
        }
        return members
    }

    private static func value(_ shape: Shape, _ keys: [Value], _ random: inout SplitMix64) -> Value {
        switch shape {
        case .scalar(let kind): return scalar(kind, &random)
        case .link: return keys.isEmpty ? .null : random.pick(keys)
        case .mixed: return random.chance(20) ? .list([.int(1), .dictionary(["x": .null])]) : scalar(random.below(scalars), &random)
        case .embedded(let fields): return .dictionary(members(fields, keys, &random))
        case .list(let element, let hasNull):
            return .list((0..<random.below(4)).map { _ in hasNull && random.chance(30) ? .null : value(element, keys, &random) })
        case .dictionary(let element, let hasNull):
            let pairs = (0..<random.below(5)).map { _ in
                ("k\(random.below(400))", hasNull && random.chance(30) ? Value.null : value(element, keys, &random))
            }
            return .dictionary(Dictionary(pairs, uniquingKeysWith: { first, _ in first }))
        }
    }

    private static func scalar(_ kind: Int, _ random: inout SplitMix64) -> Value {
        switch kind {
        case 0: .bool(random.chance(50))
        case 1: .int(Int64(bitPattern: random.next()) >> Int64(random.below(60)))
        case 2: random.chance(30) ? .double(Double(random.below(9))) : .double(Double(random.below(1_000)) / 7)
        case 3: .decimal(Decimal128("\(random.below(1_000)).25") ?? .zero)
        case 4: .string(random.pick(["", "a", "Zürich 水", "12", "2024-01-01T00:00:00Z"]))
        case 5: .timestamp(Timestamp(milliseconds: Int64(random.below(2_000_000_000)) * 900))
        case 6: .objectId(ObjectIdentifierBytes(high: random.next(), low: 1))
        case 7: .uuid(UUIDBytes(high: random.next(), low: random.next()))
        default: .binary([UInt8(random.below(256)), 0])
        }
    }
}
