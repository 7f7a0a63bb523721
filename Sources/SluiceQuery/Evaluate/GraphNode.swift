import SluiceCore

/// The present place of a path.
enum GraphNode {
    case object(GraphObject)
    /// A property's value or an element of it, as stored.
    case stored(Value, of: GraphObject, property: Int)
    case value(Value)

    var value: Value {
        switch self {
        case .object(let object): object.asValue
        case .stored(let value, _, _): value
        case .value(let value): value
        }
    }

    /// Returns a node of the same origin with another value.
    private func with(_ value: Value) -> GraphNode {
        if case .stored(_, let object, let property) = self { .stored(value, of: object, property: property) } else { .value(value) }
    }

    /// The elements of a list, or of a dictionary in the order of its keys.
    var members: [GraphNode] {
        switch value {
        case .list(let elements): elements.map(with)
        case .dictionary(let pairs): pairs.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map { with($0.value) }
        default: []
        }
    }

    /// Returns the element at an index or key, or null if there is none.
    func member(_ step: BoundStep) -> GraphNode {
        switch (step, value) {
        case (.index(let index), .list(let elements)): with(index < elements.count ? elements[index] : .null)
        case (.first, .list(let elements)): with(elements.first ?? .null)
        case (.last, .list(let elements)): with(elements.last ?? .null)
        case (.key(let key), .dictionary(let pairs)): with(pairs[key] ?? .null)
        default: .value(.null)
        }
    }

    /// The value of `@size`: the bytes of a text, the members of a container, or 0 for null. Null for other values.
    var size: Value {
        switch value {
        case .null: .int(0)
        case .string(let text): .int(Int64(text.utf8.count))
        case .binary(let bytes): .int(Int64(bytes.count))
        case .list(let elements): .int(Int64(elements.count))
        case .dictionary(let pairs): .int(Int64(pairs.count))
        default: .null
        }
    }

    var types: TypeMask {
        switch self {
        case .object: return .link
        case .stored(.dictionary, let object, let property):
            if case .embedded = object.type.properties[property].type { return .link }
            return .dictionary
        case .stored(let value, _, _), .value(let value): return TypeMask(of: value)
        }
    }
}

/// The comparison of one value with another.
struct PairTest {
    let comparison: TestOperator
    private let foldsCase: Bool
    private let nan: NaNRule
    private let comparesTypes: Bool
    /// `true` for `NULL CONTAINS x`, which never holds, and for `NULL LIKE x`, which holds for null.
    private let isNullFirst: Bool
    /// `true` for `x CONTAINS[c] NULL` on binary, which excludes null.
    private let excludesNull: Bool

    init(_ bound: BoundComparison) {
        comparison = bound.test
        foldsCase = bound.foldsCase
        switch bound.meaning {
        case .types: (comparesTypes, nan) = (true, .unordered)
        case .values(let isLowest), .pairs(let isLowest, _): (comparesTypes, nan) = (false, isLowest ? .lowest : .unordered)
        }
        isNullFirst = bound.left.operand == .constant(.null)
        excludesNull = bound.foldsCase && bound.test == .contains && bound.left.type == .value(.binary)
    }

    func holds(_ left: Value, _ right: Value) -> Bool {
        if comparesTypes {
            guard case .int(let l) = left, case .int(let r) = right else { return false }
            return (l & r != 0) == (comparison == .equal)
        }
        if comparison.isText, isNullFirst { return comparison == .like && right.isNull }
        if comparison.isText, right.isNull {
            return comparison == .like ? left.isNull : !(excludesNull && left.isNull)
        }
        let test = Test(comparison, foldsCase ? TreeEvaluator.folded(right) : right, foldsCase: foldsCase)
        return TreeEvaluator.holds(test, left, nan: nan)
    }
}
