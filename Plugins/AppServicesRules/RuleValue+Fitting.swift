import SluicePluginKit
import SluiceValues

// Custom data that the admin API sets, provider data and values are plain JSON, which writes an ObjectId, a UUID or a date as text. A
// comparison converts such text to the field's type. Text without the form of that type remains text, which equals no such value.

extension RuleValue {
    /// Returns the value for a comparison with a property of the type.
    func fitted(to type: String) -> RuleValue {
        switch (type, self) {
        case (_, .list(let elements)): .list(elements.map { $0.fitted(to: type) })
        // Twelve characters are also an ObjectId, but more often a word. They need an explicit %stringToOid.
        case ("objectId", .string(let text)) where text.utf8.count == 24: RuleValue(objectIdText: text) ?? self
        case ("uuid", .string(let text)): RuleValue(uuidText: text) ?? self
        case ("date", .string(let text)): Timestamp(iso8601: text).map { RuleValue($0) } ?? self
        case ("int", .decimal(let digits)), ("double", .decimal(let digits)), ("float", .decimal(let digits)):
            Self.number(digits) ?? self
        default: self
        }
    }

    /// Returns the number as an integer or a double if it has all of its digits.
    private static func number(_ digits: String) -> RuleValue? {
        if let whole = Int64(digits) { return .int(whole) }
        guard let double = Double(digits), RuleValue.double(double).order(of: .decimal(digits)) == .equal else { return nil }
        return .double(double)
    }

    /// The type of a property for this value, if text may represent such values.
    fileprivate var fittingType: String? {
        switch self {
        case .objectId: "objectId"
        case .uuid: "uuid"
        case .date: "date"
        case .list(let elements): elements.lazy.compactMap(\.fittingType).first
        default: nil
        }
    }
}

extension Resolved {
    func fitted(to type: String) -> Resolved { Resolved(value: value.fitted(to: type), isComplete: isComplete) }

    /// Returns the value for a comparison with a value of a document.
    func fitted(to left: RuleValue) -> Resolved { left.fittingType.map { fitted(to: $0) } ?? self }
}
