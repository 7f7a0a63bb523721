import SluiceValues

extension AnyBSON {
    /// The canonical form of extended JSON, in which each number has its type. RealmSwift sends arguments of functions in it.
    var canonical: JSON {
        switch self {
        case .int32(let v): ["$numberInt": .string(String(v))]
        case .int64(let v): ["$numberLong": .string(String(v))]
        case .double(let v): ["$numberDouble": .string(Self.text(v))]
        case .array(let v): .array(v.map { ($0 ?? .null).canonical })
        case .document(let v): .object(v.map { JSON.Member($0.key, ($0.value ?? .null).canonical) })
        default: json
        }
    }

    private static func text(_ number: Double) -> String {
        if number.isNaN { return "NaN" }
        return number.isInfinite ? (number > 0 ? "Infinity" : "-Infinity") : String(number)
    }
}
