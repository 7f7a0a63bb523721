public import Foundation

/// Differences that a text comparison ignores.
public struct StringOptions: OptionSet, Sendable {
    public let rawValue: Int8
    public init(rawValue: Int8) { self.rawValue = rawValue }
    /// Ignores upper and lower case.
    public static let caseInsensitive = StringOptions(rawValue: 1)
    /// Ignores accents. Such comparisons run in memory, and subscriptions reject them.
    public static let diacriticInsensitive = StringOptions(rawValue: 2)

    /// The suffix of an operator in a predicate: `[c]`, `[d]`, `[cd]` or nothing.
    var suffix: String {
        let letters = (contains(.caseInsensitive) ? "c" : "") + (contains(.diacriticInsensitive) ? "d" : "")
        return letters.isEmpty ? "" : "[\(letters)]"
    }
}

/// A type with searchable parts: texts, data and mixed values.
public protocol _QueryBinary: _Persistable {}
extension String: _QueryBinary {}
extension Data: _QueryBinary {}
extension AnyRealmValue: _QueryBinary {}

/// A text, or a mixed value that may be one.
public protocol _QueryString: _QueryBinary {}
extension String: _QueryString {}
extension AnyRealmValue: _QueryString {}

extension Query where T: _Persistable, T.PersistedType: _QueryBinary {
    /// `true` if the value contains another.
    public func contains(_ value: T) -> Query<Bool> { comparison("CONTAINS", .constant(queryArgument(value))) }
    /// `true` if the value begins with another.
    public func starts(with value: T) -> Query<Bool> { comparison("BEGINSWITH", .constant(queryArgument(value))) }
    /// `true` if the value ends with another.
    public func ends(with value: T) -> Query<Bool> { comparison("ENDSWITH", .constant(queryArgument(value))) }
    /// `true` if the values are equal.
    public func equals(_ value: T) -> Query<Bool> { comparison("==", .constant(queryArgument(value))) }
    /// `true` if the values differ.
    public func notEquals(_ value: T) -> Query<Bool> { comparison("!=", .constant(queryArgument(value))) }

    /// `true` if the value contains that of another property.
    public func contains<U: _Persistable>(_ column: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        comparison("CONTAINS", column.node)
    }
    /// `true` if the value begins with that of another property.
    public func starts<U: _Persistable>(with column: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        comparison("BEGINSWITH", column.node)
    }
    /// `true` if the value ends with that of another property.
    public func ends<U: _Persistable>(with column: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        comparison("ENDSWITH", column.node)
    }
    /// `true` if two properties have equal values.
    public func equals<U: _Persistable>(_ column: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        comparison("==", column.node)
    }
    /// `true` if two properties have different values.
    public func notEquals<U: _Persistable>(_ column: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        comparison("!=", column.node)
    }
}

extension Query where T: _Persistable, T.PersistedType: _QueryString {
    private func text(_ operation: String, _ options: StringOptions, _ right: QueryNode) -> Query<Bool> {
        comparison(operation + options.suffix, right)
    }

    private func text(_ operation: String, _ options: StringOptions, _ value: T) -> Query<Bool> {
        text(operation, options, .constant(queryArgument(value)))
    }

    /// `true` if the text contains another.
    public func contains(_ value: T, options: StringOptions) -> Query<Bool> { text("CONTAINS", options, value) }
    /// `true` if the text begins with another.
    public func starts(with value: T, options: StringOptions) -> Query<Bool> { text("BEGINSWITH", options, value) }
    /// `true` if the text ends with another.
    public func ends(with value: T, options: StringOptions) -> Query<Bool> { text("ENDSWITH", options, value) }
    /// `true` if the texts are equal.
    public func equals(_ value: T, options: StringOptions) -> Query<Bool> { text("==", options, value) }
    /// `true` if the texts differ.
    public func notEquals(_ value: T, options: StringOptions) -> Query<Bool> { text("!=", options, value) }
    /// `true` if the text matches a pattern: `?` matches one character, `*` any number.
    public func like(_ value: T, caseInsensitive: Bool = false) -> Query<Bool> {
        text("LIKE", caseInsensitive ? .caseInsensitive : [], value)
    }

    /// `true` if the text contains that of another property.
    public func contains<U: _Persistable>(_ column: Query<U>, options: StringOptions) -> Query<Bool> where U.PersistedType: _QueryString {
        text("CONTAINS", options, column.node)
    }
    /// `true` if the text begins with that of another property.
    public func starts<U: _Persistable>(
        with column: Query<U>, options: StringOptions
    ) -> Query<Bool> where U.PersistedType: _QueryString {
        text("BEGINSWITH", options, column.node)
    }
    /// `true` if the text ends with that of another property.
    public func ends<U: _Persistable>(
        with column: Query<U>, options: StringOptions
    ) -> Query<Bool> where U.PersistedType: _QueryString {
        text("ENDSWITH", options, column.node)
    }
    /// `true` if two texts are equal.
    public func equals<U: _Persistable>(_ column: Query<U>, options: StringOptions) -> Query<Bool> where U.PersistedType: _QueryString {
        text("==", options, column.node)
    }
    /// `true` if two texts differ.
    public func notEquals<U: _Persistable>(
        _ column: Query<U>, options: StringOptions
    ) -> Query<Bool> where U.PersistedType: _QueryString {
        text("!=", options, column.node)
    }
    /// `true` if the text matches the pattern in another property.
    public func like<U: _Persistable>(
        _ column: Query<U>, caseInsensitive: Bool = false
    ) -> Query<Bool> where U.PersistedType: _QueryString {
        text("LIKE", caseInsensitive ? .caseInsensitive : [], column.node)
    }
}
