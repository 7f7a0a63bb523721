package import SluiceCore

/// A parsed text of the query language. Its grammar is checked; `bind` checks its names and types.
///
/// Two queries are equal if their texts differ only in blanks, spelling of operators and superfluous parentheses.
package struct Query: Hashable, Sendable {
    package let tree: SyntaxTree
    /// The original text, which errors of later stages show.
    package let source: String

    /// Parses a text.
    /// - Throws: `querySyntax` with line, column and the expected token. Nesting beyond `Limits.nestingDepth` is also such an error.
    package static func parse(_ text: String) throws(SluiceError) -> Query {
        Query(tree: try Parser.parse(text), source: text)
    }

    /// The canonical text, equal for equal queries. It parses to this query.
    package var canonicalText: String { CanonicalPrinter.print(tree) }

    package static func == (lhs: Query, rhs: Query) -> Bool { lhs.tree == rhs.tree }
    package func hash(into hasher: inout Hasher) { hasher.combine(tree) }
}

extension SyntaxQuery {
    /// The canonical text of a condition, or of a part of one.
    package var canonicalText: String { CanonicalPrinter.print(self) }
}
