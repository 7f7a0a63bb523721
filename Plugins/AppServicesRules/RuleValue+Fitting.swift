import SluicePluginKit

// Custom data that the admin API sets, provider data and values are plain JSON, where an ObjectId, a UUID or a date is a text. They meet
// fields by the field's type; a text that has not its form stays one, and so is equal to none.

extension RuleValue {
    /// The value as a property of the type compares with it.
    func fitted(to type: String) -> RuleValue {
        switch (type, self) {
        case (_, .list(let elements)): .list(elements.map { $0.fitted(to: type) })
        // Twelve letters are an ObjectId, too, but more often a word: that has to be said by %stringToOid.
        case ("objectId", .string(let text)) where text.utf8.count == 24: RuleValue(objectIdText: text) ?? self
        case ("uuid", .string(let text)): RuleValue(uuidText: text) ?? self
        case ("date", .string(let text)):
            DateText.read(.string(text)).map { .date(seconds: $0.seconds, nanoseconds: $0.nanoseconds) } ?? self
        case ("int", .decimal(let digits)), ("double", .decimal(let digits)), ("float", .decimal(let digits)):
            Self.number(digits) ?? self
        default: self
        }
    }

    /// The same number, if an integer or a double has all of its digits.
    private static func number(_ digits: String) -> RuleValue? {
        if let whole = Int64(digits) { return .int(whole) }
        guard let double = Double(digits), RuleValue.double(double).order(of: .decimal(digits)) == .equal else { return nil }
        return .double(double)
    }

    /// The type of a property that holds this, where texts may stand for such values.
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

    /// As a value of a document compares with it.
    func fitted(to left: RuleValue) -> Resolved { left.fittingType.map { fitted(to: $0) } ?? self }
}
