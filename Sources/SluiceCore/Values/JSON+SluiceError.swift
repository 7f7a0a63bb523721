package import SluiceValues

extension JSON {
    /// Reads one JSON text as `located(_:)` does.
    /// - Throws: `badJSON` with line and column, both from 1. Columns count Unicode scalars.
    package static func parse(_ bytes: [UInt8]) throws(SluiceError) -> JSON {
        do { return try located(bytes) } catch {
            throw SluiceError(.badJSON, "line \(error.line), column \(error.column): \(error.problem).")
        }
    }

    /// Reads one JSON text like `parse(_: [UInt8])`.
    package static func parse(_ text: String) throws(SluiceError) -> JSON {
        try parse(Array(text.utf8))
    }
}
