public import Foundation

/// Which differences a text comparison ignores.
public struct StringOptions: OptionSet, Sendable {
    public let rawValue: Int8
    public init(rawValue: Int8) { self.rawValue = rawValue }
    /// Upper and lower case are the same.
    public static let caseInsensitive = StringOptions(rawValue: 1)
    /// Accents make no difference. Such comparisons run in memory, and subscriptions refuse them.
    public static let diacriticInsensitive = StringOptions(rawValue: 2)

    /// As a predicate writes it behind the operator.
    var suffix: String {
        let letters = (contains(.caseInsensitive) ? "c" : "") + (contains(.diacriticInsensitive) ? "d" : "")
        return letters.isEmpty ? "" : "[\(letters)]"
    }
}

/// A type that can be searched for parts: texts, data and mixed values.
public protocol _QueryBinary: _Persistable {}
extension String: _QueryBinary {}
extension Data: _QueryBinary {}
extension AnyRealmValue: _QueryBinary {}

/// A text, or a mixed value that may be one.
public protocol _QueryString: _QueryBinary {}
extension String: _QueryString {}
extension AnyRealmValue: _QueryString {}

extension Query where T: _Persistable, T.PersistedType: _QueryBinary {
    /// Whether the value contains another.
    public func contains(_ value: T) -> Query<Bool> { comparison("CONTAINS", .constant(queryArgument(value))) }
    /// Whether the value begins with another.
    public func starts(with value: T) -> Query<Bool> { comparison("BEGINSWITH", .constant(queryArgument(value))) }
    /// Whether the value ends with another.
    public func ends(with value: T) -> Query<Bool> { comparison("ENDSWITH", .constant(queryArgument(value))) }
    /// Whether the values are equal.
    public func equals(_ value: T) -> Query<Bool> { comparison("==", .constant(queryArgument(value))) }
    /// Whether the values differ.
    public func notEquals(_ value: T) -> Query<Bool> { comparison("!=", .constant(queryArgument(value))) }

    /// Whether the value contains that of another property.
    public func contains<U: _Persistable>(_ column: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        comparison("CONTAINS", column.node)
    }
    /// Whether the value begins with that of another property.
    public func starts<U: _Persistable>(with column: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        comparison("BEGINSWITH", column.node)
    }
    /// Whether the value ends with that of another property.
    public func ends<U: _Persistable>(with column: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        comparison("ENDSWITH", column.node)
    }
    /// Whether two properties have equal values.
    public func equals<U: _Persistable>(_ column: Query<U>) -> Query<Bool> where U.PersistedType == T.PersistedType {
        comparison("==", column.node)
    }
    /// Whether two properties have different values.
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

    /// Whether the text contains another.
    public func contains(_ value: T, options: StringOptions) -> Query<Bool> { text("CONTAINS", options, value) }
    /// Whether the text begins with another.
    public func starts(with value: T, options: StringOptions) -> Query<Bool> { text("BEGINSWITH", options, value) }
    /// Whether the text ends with another.
    public func ends(with value: T, options: StringOptions) -> Query<Bool> { text("ENDSWITH", options, value) }
    /// Whether the texts are equal.
    public func equals(_ value: T, options: StringOptions) -> Query<Bool> { text("==", options, value) }
    /// Whether the texts differ.
    public func notEquals(_ value: T, options: StringOptions) -> Query<Bool> { text("!=", options, value) }
    /// Whether the text matches a pattern in which `?` stands for one character and `*` for any number.
    public func like(_ value: T, caseInsensitive: Bool = false) -> Query<Bool> {
        text("LIKE", caseInsensitive ? .caseInsensitive : [], value)
    }

    /// Whether the text contains that of another property.
    public func contains<U: _Persistable>(_ column: Query<U>, options: StringOptions) -> Query<Bool> where U.PersistedType: _QueryString {
        text("CONTAINS", options, column.node)
    }
    /// Whether the text begins with that of another property.
    public func starts<U: _Persistable>(
        with column: Query<U>, options: StringOptions
    ) -> Query<Bool> where U.PersistedType: _QueryString {
        text("BEGINSWITH", options, column.node)
    }
    /// Whether the text ends with that of another property.
    public func ends<U: _Persistable>(
        with column: Query<U>, options: StringOptions
    ) -> Query<Bool> where U.PersistedType: _QueryString {
        text("ENDSWITH", options, column.node)
    }
    /// Whether two texts are equal.
    public func equals<U: _Persistable>(_ column: Query<U>, options: StringOptions) -> Query<Bool> where U.PersistedType: _QueryString {
        text("==", options, column.node)
    }
    /// Whether two texts differ.
    public func notEquals<U: _Persistable>(
        _ column: Query<U>, options: StringOptions
    ) -> Query<Bool> where U.PersistedType: _QueryString {
        text("!=", options, column.node)
    }
    /// Whether the text matches the pattern that another property holds.
    public func like<U: _Persistable>(
        _ column: Query<U>, caseInsensitive: Bool = false
    ) -> Query<Bool> where U.PersistedType: _QueryString {
        text("LIKE", caseInsensitive ? .caseInsensitive : [], column.node)
    }
}
