import SluiceCore

/// Arithmetic of two values, in the wider of their types: int, float, double, decimal.
enum Calculation {
    /// Null when a value is null or no number.
    static func apply(_ arithmetic: Arithmetic, _ left: Value, _ right: Value) -> Value {
        switch (left, right) {
        case (.int(let l), .int(let r)): return .int(int(arithmetic, l, r))
        case (.decimal, _), (_, .decimal):
            guard let l = Number(left), let r = Number(right) else { return .null }
            return .decimal(calculate(arithmetic, l.asDecimal, r.asDecimal))
        case (.double, _), (_, .double):
            guard let l = Number(left), let r = Number(right) else { return .null }
            return .double(floating(arithmetic, l.asDouble, r.asDouble))
        default:
            guard let l = float(left), let r = float(right) else { return .null }
            return .float(floating(arithmetic, l, r))
        }
    }

    private static func float(_ value: Value) -> Float? {
        switch value {
        case .int(let value): Float(value)
        case .float(let value): value
        default: nil
        }
    }

    private static func calculate(_ arithmetic: Arithmetic, _ left: Decimal128, _ right: Decimal128) -> Decimal128 {
        switch arithmetic {
        case .add: left + right
        case .subtract: left - right
        case .multiply: left * right
        case .divide: left / right
        }
    }

    /// Wrapping. Division truncates; by zero it gives the largest number for a dividend of 0 or more, the smallest for one below.
    private static func int(_ arithmetic: Arithmetic, _ left: Int64, _ right: Int64) -> Int64 {
        switch arithmetic {
        case .add: left &+ right
        case .subtract: left &- right
        case .multiply: left &* right
        case .divide: right == 0 ? (left >= 0 ? .max : .min) : left.dividedReportingOverflow(by: right).partialValue
        }
    }

    private static func floating<T: BinaryFloatingPoint>(_ arithmetic: Arithmetic, _ left: T, _ right: T) -> T {
        switch arithmetic {
        case .add: left + right
        case .subtract: left - right
        case .multiply: left * right
        case .divide: left / right
        }
    }
}

extension Number {
    var asDouble: Double {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        case .decimal(let value): value.double
        }
    }
}

/// `@min`, `@max`, `@sum`, `@avg`.
enum Aggregation {
    /// Nulls are left out, and of mixed values what is no number where numbers are added up. Nothing left: the sum is 0, the rest null.
    static func apply(_ function: Aggregate, _ values: [Value], of type: PropertyType) -> Value {
        let values = values.filter { !$0.isNull }
        switch function {
        case .min: return values.dropFirst().reduce(values.first ?? .null) { SortOrder.compare($1, $0) == .less ? $1 : $0 }
        case .max: return values.dropFirst().reduce(values.first ?? .null) { SortOrder.compare($1, $0) == .greater ? $1 : $0 }
        case .sum: return sum(values, type)
        case .average:
            let count = values.count { Number($0) != nil }
            if count == 0 { return .null }
            let total = sum(values, type)
            if case .decimal = total { return Calculation.apply(.divide, total, .decimal(Decimal128(Int64(count)))) }
            return Calculation.apply(.divide, .double(Number(total)?.asDouble ?? .nan), .double(Double(count)))
        }
    }

    private static func sum(_ values: [Value], _ type: PropertyType) -> Value {
        let zero: Value =
            switch type {
            case .int: .int(0)
            case .float, .double: .double(0)
            default: .decimal(.zero)
            }
        return values.reduce(zero) { total, value in Number(value) == nil ? total : Calculation.apply(.add, total, value) }
    }
}

/// The order of all values for SORT and for the smallest and largest: by type, then by value; null first, NaN below all numbers.
enum SortOrder {
    static func compare(_ left: Value, _ right: Value) -> Order {
        let (l, r) = (rank(left), rank(right))
        if l != r { return .of(l, r) }
        if let order = ValueOrder.compare(left, right, nan: .lowest) { return order }
        if case .null = left { return .equal }
        return left.precedes(right) ? .less : .greater
    }

    /// Sorted, equal values once.
    static func set(_ values: [Value]) -> [Value] {
        var set: [Value] = []
        for value in values.sorted(by: { compare($0, $1) == .less }) {
            if let last = set.last, compare(last, value) == .equal { continue }
            set.append(value)
        }
        return set
    }

    private static func rank(_ value: Value) -> Int {
        switch value {
        case .null: 0
        case .bool: 1
        case .int, .float, .double, .decimal: 2
        case .string: 3
        case .binary: 4
        case .timestamp: 5
        case .objectId: 6
        case .uuid: 7
        case .link: 8
        case .list: 9
        case .dictionary: 10
        }
    }
}
