package import SluiceCore
import SluiceValues

/// Arithmetic of two values, in the wider of their types: int, float, double, decimal.
enum Calculation {
    /// Returns null if a value is null or not a number.
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

    /// Wraps on overflow. Division truncates. Division by zero returns `Int64.max`, or `Int64.min` for a negative dividend.
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

/// `@min`, `@max`, `@sum` or `@avg` of values added one by one.
///
/// Ignores nulls. `@sum` and `@avg` also ignore mixed values that are not numbers. Without a value the sum is 0, and the other results are
/// null.
package struct Aggregation: Sendable {
    private let function: Aggregate
    /// The minimum or maximum so far, or the sum.
    private var value: Value
    /// The number of numbers added.
    private var count: Int64 = 0

    /// - Parameter type: The type of the values.
    package init(_ function: Aggregate, of type: PropertyType) {
        self.function = function
        switch (function, type) {
        case (.min, _), (.max, _): value = .null
        case (_, .int): value = .int(0)
        case (_, .float), (_, .double): value = .double(0)
        default: value = .decimal(.zero)
        }
    }

    package mutating func add(_ next: Value) {
        if next.isNull { return }
        switch function {
        case .min: if value.isNull || SortOrder.compare(next, value) == .less { value = next }
        case .max: if value.isNull || SortOrder.compare(next, value) == .greater { value = next }
        case .sum, .average:
            guard Number(next) != nil else { return }
            count += 1
            value = Calculation.apply(.add, value, next)
        }
    }

    package var result: Value {
        guard function == .average else { return value }
        if count == 0 { return .null }
        if case .decimal = value { return Calculation.apply(.divide, value, .decimal(Decimal128(count))) }
        return Calculation.apply(.divide, .double(Number(value)?.asDouble ?? .nan), .double(Double(count)))
    }

    static func apply(_ function: Aggregate, _ values: [Value], of type: PropertyType) -> Value {
        var aggregation = Aggregation(function, of: type)
        for value in values { aggregation.add(value) }
        return aggregation.result
    }
}

/// The order of all values for SORT, `@min` and `@max`: by type, then by value. Null is first, and NaN below all numbers.
package enum SortOrder {
    package static func compare(_ left: Value, _ right: Value) -> Order {
        let (l, r) = (rank(left), rank(right))
        if l != r { return .of(l, r) }
        if let order = ValueOrder.compare(left, right, nan: .lowest) { return order }
        if case .null = left { return .equal }
        return left.precedes(right) ? .less : .greater
    }

    /// Returns the values sorted, without duplicates.
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
