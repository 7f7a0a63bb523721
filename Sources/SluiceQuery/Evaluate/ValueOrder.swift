import SluiceCore
import SluiceValues

package enum Order: Sendable {
    case less, equal, greater

    var reversed: Order {
        switch self {
        case .less: .greater
        case .equal: .equal
        case .greater: .less
        }
    }

    @inline(__always)
    static func of<T: Comparable>(_ left: T, _ right: T) -> Order { left < right ? .less : left > right ? .greater : .equal }
}

/// The comparison of NaN: as in IEEE 754 for a property of a number type, below all numbers for a mixed property.
enum NaNRule: Sendable { case unordered, lowest }

/// The language's order of two values that are not null, or nil if their types are not comparable.
enum ValueOrder {
    static func compare(_ left: Value, _ right: Value, nan: NaNRule) -> Order? {
        switch (left, right) {
        case (.bool(let l), .bool(let r)): return .of(l ? 1 : 0, r ? 1 : 0)
        case (.string(let l), .string(let r)): return bytes(l.utf8, r.utf8)
        case (.binary(let l), .binary(let r)): return bytes(l, r)
        case (.timestamp(let l), .timestamp(let r)): return .of(l, r)
        case (.objectId(let l), .objectId(let r)): return .of(l, r)
        case (.uuid(let l), .uuid(let r)): return .of(l, r)
        case (.link, .link), (.list, .list), (.dictionary, .dictionary): return left == right ? .equal : nil
        default:
            guard let l = Number(left), let r = Number(right) else { return nil }
            return Number.compare(l, r, nan: nan)
        }
    }

    private static func bytes(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Order {
        if left.elementsEqual(right) { return .equal }
        return left.lexicographicallyPrecedes(right) ? .less : .greater
    }
}

/// A number of any type. A float is its double.
enum Number: Sendable {
    case int(Int64)
    case double(Double)
    case decimal(Decimal128)

    init?(_ value: Value) {
        switch value {
        case .int(let v): self = .int(v)
        case .float(let v): self = .double(Double(v))
        case .double(let v): self = .double(v)
        case .decimal(let v): self = .decimal(v)
        default: return nil
        }
    }

    var isNaN: Bool {
        switch self {
        case .int: false
        case .double(let value): value.isNaN
        case .decimal(let value): value.isNaN
        }
    }

    /// Compares by mathematical value. A double compares with a decimal by its shortest digits.
    static func compare(_ left: Number, _ right: Number, nan: NaNRule) -> Order? {
        if left.isNaN || right.isNaN {
            guard nan == .lowest else { return nil }
            return left.isNaN ? (right.isNaN ? .equal : .less) : .greater
        }
        switch (left, right) {
        case (.int(let l), .int(let r)): return .of(l, r)
        case (.double(let l), .double(let r)): return .of(l, r)
        case (.int(let l), .double(let r)): return compare(l, r)
        case (.double(let l), .int(let r)): return compare(r, l).reversed
        default: return .of(Decimal128.compare(left.asDecimal, right.asDecimal), 0)
        }
    }

    /// Compares exactly, without rounding the integer to 53 bits.
    static func compare(_ left: Int64, _ right: Double) -> Order {
        if right >= 0x1p63 { return .less }
        if right < -0x1p63 { return .greater }
        let whole = right.rounded(.down)
        let floor = Int64(whole)
        if left != floor { return left < floor ? .less : .greater }
        return right > whole ? .less : .equal
    }

    var asDecimal: Decimal128 {
        switch self {
        case .int(let value): Decimal128(value)
        case .double(let value): Decimal128(double: value)
        case .decimal(let value): value
        }
    }
}
