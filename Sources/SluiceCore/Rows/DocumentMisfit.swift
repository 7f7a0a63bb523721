import SluiceValues

/// The reason why a document of MongoDB is no row of its class.
package struct DocumentMisfit: Error, Hashable, Sendable, CustomStringConvertible {
    package var reason: String

    package init(_ reason: String) { self.reason = reason }

    package var description: String { reason }
}

/// The values that documents can have and PostgreSQL cannot.
enum StorableValue {
    /// The first and last second that a `timestamptz` and 64 bits of microseconds since 1970 hold: 24 November 4714 BC, 10 January 294247.
    static let seconds: ClosedRange<Int64> = -210_866_803_200...9_223_372_036_853

    /// The maximum number of containers around a value. Below the bound of JSON texts by the braces of the deepest extended form.
    static let depth = Limits.nestingDepth - 4

    /// Returns the value as it can be stored: links of mixed values name classes, and `undefined` is null.
    ///
    /// - Parameter classes: The classes by the names of their collections, which a DBRef has.
    /// - Throws: `DocumentMisfit` for text with a NUL character, times outside of PostgreSQL's range, types without a counterpart and too
    ///   deep nesting.
    static func checked(_ value: Value, classes: [String: String], depth: Int = 0) throws(DocumentMisfit) -> Value {
        switch value {
        case .string(let text):
            try check(text)
            return value
        case .timestamp(let time):
            guard seconds.contains(time.seconds) else { throw time.misfit }
            return value
        case .list(let elements):
            guard depth < Self.depth else { throw tooDeep }
            var result: [Value] = []
            for element in elements { result.append(try checked(element, classes: classes, depth: depth + 1)) }
            return .list(result)
        case .dictionary(let members):
            guard depth < Self.depth else { throw tooDeep }
            return try dictionary(members, classes, depth)
        case .link(let type, let key): return .link(type: classes[type] ?? type, key: try checked(key, classes: classes, depth: depth))
        default: return value
        }
    }

    private static func dictionary(_ members: [String: Value], _ classes: [String: String], _ depth: Int) throws(DocumentMisfit) -> Value {
        if members.count == 1, members["$undefined"] == .bool(true) { return .null }
        var result: [String: Value] = [:]
        for (key, value) in members {
            try check(key)
            if let name = ExtendedForm.foreignType(ofKey: key) {
                throw DocumentMisfit("\(name) is no value of a Realm object (\(key))")
            }
            result[key] = try checked(value, classes: classes, depth: depth + 1)
        }
        return .dictionary(result)
    }

    private static func check(_ text: String) throws(DocumentMisfit) { if text.utf8.contains(0) { throw hasNUL } }

    static let hasNUL = DocumentMisfit("a text contains a NUL character, which PostgreSQL cannot store")
    private static let tooDeep = DocumentMisfit("the value is nested deeper than \(depth) levels")
}

extension Timestamp {
    var misfit: DocumentMisfit {
        DocumentMisfit("the date \(milliseconds) (milliseconds since 1970) is outside of 4714 BC to 294246, which PostgreSQL can store")
    }
}
