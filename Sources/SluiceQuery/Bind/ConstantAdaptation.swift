import SluiceCore
import SluiceValues

/// Converts a constant to the type that it compares with, without a change of the comparison's meaning. A value that does not fit the type
/// exactly keeps its own type. Numbers of two types compare by value.
struct ConstantAdaptation {
    let type: PropertyType
    /// `true` if a string may represent a number: in the query's text, not as an argument.
    let readsNumbers: Bool

    enum Result {
        case value(Value)
        case refused(String)
        case otherClass(target: String, found: String)
        case mismatch
    }

    /// The constants of a list that may equal a value of the type, and null. As in Realm, the others equal none.
    ///
    /// Returns a list without such constants as it is: the comparison is a mistake, and its error names the first of them.
    static func comparable(_ list: QueryBinder.Constants, with type: PropertyType) -> QueryBinder.Constants {
        var fitting: QueryBinder.Constants = []
        var hasValue = false
        for (constant, argument) in list {
            if case .null = constant {
                fitting.append((constant, argument))
                continue
            }
            if case .mismatch = ConstantAdaptation(type: type, readsNumbers: argument == nil).adapt(constant) { continue }
            fitting.append((constant, argument))
            hasValue = true
        }
        return hasValue ? fitting : list
    }

    func adapt(_ constant: QueryConstant) -> Result {
        switch (type, constant) {
        case (.mixed, _): return .value(constant.value)
        case (.int, _): return int(constant)
        case (.float, _): return float(constant)
        case (.double, _): return double(constant)
        case (.decimal, _): return decimal(constant)
        case (.bool, .bool), (.string, .string), (.binary, .binary), (.timestamp, .timestamp), (.objectId, .objectId), (.uuid, .uuid):
            return .value(constant.value)
        case (.link(let target), .link(let found, _)):
            return target == found ? .value(constant.value) : .otherClass(target: target, found: found)
        default: return .mismatch
        }
    }

    private func int(_ constant: QueryConstant) -> Result {
        switch constant {
        case .int(let value): return .value(.int(value))
        case .double(let value, _): return int(value)
        case .float(let value, _): return int(Double(value))
        case .decimal(let value):
            if value.isNaN || value.isInfinite { return int(value.isNaN ? .nan : .infinity) }
            return .value(.decimal(value))
        case .string(let text):
            guard readsNumbers else { return .mismatch }
            if let value = Int64(text) { return .value(.int(value)) }
            guard let decimal = Decimal128(rounding: text) else { return .mismatch }
            return int(.decimal(decimal))
        default: return .mismatch
        }
    }

    private func int(_ value: Double) -> Result {
        if value.isNaN { return .refused("NaN not supported for int") }
        if value.isInfinite { return .refused("Infinity not supported for int") }
        return .value(Int64(exactly: value).map { .int($0) } ?? .double(value))
    }

    private func float(_ constant: QueryConstant) -> Result {
        switch constant {
        case .int(let value): return .value(.int(value))
        case .double(let value, _): return .value(.float(Float(value)))
        case .float(let value, _): return .value(.float(value))
        case .decimal(let value): return .value(.decimal(value))
        case .string(let text): return readsNumbers ? Double(text).map { .value(.float(Float($0))) } ?? .mismatch : .mismatch
        default: return .mismatch
        }
    }

    private func double(_ constant: QueryConstant) -> Result {
        switch constant {
        case .int(let value): return .value(.int(value))
        case .double(let value, _): return .value(.double(value))
        case .float(let value, _): return .value(.float(value))
        case .decimal(let value): return .value(.decimal(value))
        case .string(let text): return readsNumbers ? Double(text).map { .value(.double($0)) } ?? .mismatch : .mismatch
        default: return .mismatch
        }
    }

    private func decimal(_ constant: QueryConstant) -> Result {
        switch constant {
        case .int(let value): return .value(.decimal(Decimal128(value)))
        case .double(_, let text), .float(_, let text): return Decimal128(rounding: text).map { .value(.decimal($0)) } ?? .mismatch
        case .decimal(let value): return .value(.decimal(value))
        case .string(let text):
            return readsNumbers ? Decimal128(rounding: text).map { .value(.decimal($0)) } ?? .mismatch : .mismatch
        default: return .mismatch
        }
    }
}
