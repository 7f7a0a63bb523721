import SluiceCore
package import SluiceValues

/// The comparisons of conditions and filters, on values in plain form.
extension JSON {
    /// The value with numbers of extended JSON as numbers, and its other forms in their one spelling.
    var plain: JSON {
        switch ExtendedForm(self) {
        case .int(let number): return .int(number)
        case .double(let number): return .double(number)
        case let form?: return form.json
        case nil: break
        }
        switch self {
        case .array(let elements): return .array(elements.map(\.plain))
        case .object(let members): return .object(members.map { Member($0.key, $0.value.plain) })
        default: return self
        }
    }

    /// `true` if both are equal. Numbers are equal if their values are, whatever their types.
    func equals(_ other: JSON) -> Bool {
        switch (self, other) {
        case (.array(let left), .array(let right)): left.elementsEqual(right) { $0.equals($1) }
        default: order(to: other).map { $0 == 0 } ?? (self == other)
        }
    }

    /// `true` if this is less; nil for two values without an order.
    func isLess(than other: JSON) -> Bool? { order(to: other).map { $0 < 0 } }

    /// Returns a negative number, zero or a positive number; nil for two values without an order, such as those of different types.
    private func order(to other: JSON) -> Int? {
        switch (self, other) {
        case (.int(let left), .int(let right)): Self.order(left, right)
        case (.double(let left), .double(let right)): left.isNaN || right.isNaN ? nil : Self.order(left, right)
        case (.int(let left), .double(let right)): Self.order(left, right)
        case (.double(let left), .int(let right)): Self.order(right, left).map { -$0 }
        case (.string(let left), .string(let right)): Self.order(left.utf8, right.utf8)
        case (.bool(let left), .bool(let right)): Self.order(left ? 1 : 0, right ? 1 : 0)
        default: orderOfForms(other)
        }
    }

    /// The order of values that JSON lacks, and of decimals with other numbers.
    private func orderOfForms(_ other: JSON) -> Int? {
        switch (ExtendedForm(self), ExtendedForm(other)) {
        case (.timestamp(let left), .timestamp(let right)): return Self.order(left, right)
        case (.objectId(let left), .objectId(let right)): return Self.order(left, right)
        case (.uuid(let left), .uuid(let right)): return Self.order(left.bytes, right.bytes)
        default:
            guard let left = decimal, let right = other.decimal, !left.isNaN, !right.isNaN else { return nil }
            return Decimal128.compare(left, right)
        }
    }

    private var decimal: Decimal128? {
        switch self {
        case .int(let value): Decimal128(value)
        case .double(let value): Decimal128(double: value)
        default: if case .decimal(let value)? = ExtendedForm(self) { value } else { nil }
        }
    }

    private static func order<T: Comparable>(_ left: T, _ right: T) -> Int { left == right ? 0 : left < right ? -1 : 1 }

    private static func order(_ left: some Sequence<UInt8>, _ right: some Sequence<UInt8>) -> Int {
        left.lexicographicallyPrecedes(right) ? -1 : right.lexicographicallyPrecedes(left) ? 1 : 0
    }

    /// Compares without rounding: not every integer is a double.
    private static func order(_ left: Int64, _ right: Double) -> Int? {
        if right.isNaN { return nil }
        // The first double above the range. The lowest integer is a double itself.
        if right >= 0x1p63 { return -1 }
        if right < -0x1p63 { return 1 }
        let whole = right.rounded(.towardZero)
        let order = order(left, Int64(whole))
        return order != 0 ? order : Self.order(whole, right)
    }
}

extension JSON {
    /// Returns the value at a path through members of objects and indices of arrays; nil if there is none. A name applied to an array
    /// collects that member of its elements.
    package func value(at path: some Collection<Substring>) -> JSON? {
        guard let step = path.first else { return self }
        let rest = path.dropFirst()
        guard case .array(let elements) = self else { return self[String(step)].flatMap { $0.value(at: Array(rest)) } }
        if let index = Int(step) { return elements.indices.contains(index) ? elements[index].value(at: Array(rest)) : nil }
        let found = elements.compactMap { $0.value(at: Array(path)) }
        return found.isEmpty ? nil : .array(found)
    }

    /// Returns the values that MongoDB's queries compare at a path: those of each object in an array on the way, and an array at the end
    /// as well as its elements. An object without the member counts as nil.
    func candidates(at path: ArraySlice<Substring>) -> [JSON?] {
        guard let step = path.first else { return [self] + (array ?? []) }
        guard case .array(let elements) = self else {
            return self[String(step)].map { $0.candidates(at: path.dropFirst()) } ?? [nil]
        }
        var found = elements.filter { $0.members != nil && ExtendedForm($0) == nil }.flatMap { $0.candidates(at: path) }
        if let index = Int(step), elements.indices.contains(index) { found += elements[index].candidates(at: path.dropFirst()) }
        return found.isEmpty ? [nil] : found
    }
}
