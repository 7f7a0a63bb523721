package import SluiceCore

/// A parsed text of the query language: its grammar is checked, its names and types are not (see `bind`).
///
/// Two queries are equal when they are written alike but for blanks, spelling of operators and superfluous parentheses.
package struct Query: Hashable, Sendable {
    package let tree: SyntaxTree
    /// The text as it was given; errors of later stages show it.
    package let source: String

    /// Parses a text.
    /// - Throws: `querySyntax` with line, column and what was expected. Nesting beyond `Limits.nestingDepth` is such an error too.
    package static func parse(_ text: String) throws(SluiceError) -> Query {
        Query(tree: try Parser.parse(text), source: text)
    }

    /// The one text of all queries that are equal to this one; it parses back to this query.
    package var canonicalText: String { CanonicalPrinter.print(tree) }

    package static func == (lhs: Query, rhs: Query) -> Bool { lhs.tree == rhs.tree }
    package func hash(into hasher: inout Hasher) { hasher.combine(tree) }
}

extension SyntaxQuery {
    /// The canonical text of a condition, or of a part of one.
    package var canonicalText: String { CanonicalPrinter.print(self) }
}
