/// A syntax error in a JSON text and its place.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line, from 1.
    public var line: Int
    /// The column in Unicode scalars, from 1.
    public var column: Int
    /// Part of a sentence: "expected a value, found '}'".
    public var problem: String
    public var description: String { "line \(line), column \(column): \(problem)" }
}
