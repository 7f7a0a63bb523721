import SluiceValues

/// One order over all values, so that equal sets have equal representations wherever they are built.
extension Value {
    /// Returns a set's canonical form: sorted by `precedes`, equal elements once.
    package static func set(_ elements: [Value]) -> Value {
        var sorted: [Value] = []
        for element in elements.sorted(by: { $0.precedes($1) }) where sorted.last != element { sorted.append(element) }
        return .list(sorted)
    }

    /// A strict total order that agrees with `==`: by type, then numbers and times by size, text and binary by bytes.
    package func precedes(_ other: Value) -> Bool { Value.order(self, other) < 0 }

    /// - Returns: A negative number, zero or a positive number.
    private static func order(_ left: Value, _ right: Value) -> Int {
        switch (left, right) {
        case (.bool(let l), .bool(let r)): return (l ? 1 : 0) - (r ? 1 : 0)
        case (.int(let l), .int(let r)): return compare(l, r)
        case (.float(let l), .float(let r)): return compare(total(Double(l)), total(Double(r)))
        case (.double(let l), .double(let r)): return compare(total(l), total(r))
        case (.decimal(let l), .decimal(let r)):
            let order = Decimal128.compare(l, r)
            return order != 0 ? order : compare(l.high, r.high) != 0 ? compare(l.high, r.high) : compare(l.low, r.low)
        case (.string(let l), .string(let r)): return compare(l.utf8, r.utf8)
        case (.binary(let l), .binary(let r)): return compare(l, r)
        case (.timestamp(let l), .timestamp(let r)): return compare(l, r)
        case (.objectId(let l), .objectId(let r)): return compare(l, r)
        case (.uuid(let l), .uuid(let r)): return compare(l, r)
        case (.list(let l), .list(let r)): return order(l, r)
        case (.dictionary(let l), .dictionary(let r)): return order(pairs(l), pairs(r))
        case (.link(let lt, let lk), .link(let rt, let rk)):
            let order = compare(lt.utf8, rt.utf8)
            return order != 0 ? order : self.order(lk, rk)
        default: return compare(ValueCoding.tag(of: left).rawValue, ValueCoding.tag(of: right).rawValue)
        }
    }

    private static func order(_ left: [Value], _ right: [Value]) -> Int {
        for (l, r) in zip(left, right) {
            let order = order(l, r)
            if order != 0 { return order }
        }
        return left.count - right.count
    }

    private static func pairs(_ values: [String: Value]) -> [Value] {
        values.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.flatMap { [.string($0.key), $0.value] }
    }

    private static func compare<T: Comparable>(_ left: T, _ right: T) -> Int { left == right ? 0 : left < right ? -1 : 1 }

    private static func compare(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> Int {
        left.lexicographicallyPrecedes(right) ? -1 : right.lexicographicallyPrecedes(left) ? 1 : 0
    }

    /// Returns IEEE 754's total order as an integer. The bits of negative numbers are inverted, except the sign.
    private static func total(_ value: Double) -> Int64 {
        let bits = Int64(bitPattern: value.bitPattern)
        return bits < 0 ? bits ^ .max : bits
    }
}
