/// An error as users meet it: what happened, the value at fault, the fix. Its code is one of `ErrorCode`'s table.
package struct SluiceError: Error, Hashable, Sendable, CustomStringConvertible {
    package var code: ErrorCode
    /// One sentence: what happened, with the value at fault in it.
    package var message: String
    /// What the reader can do about it; the table's general advice when nil.
    package var fix: String?

    package init(_ code: ErrorCode, _ message: String, fix: String? = nil) {
        self.code = code
        self.message = message
        self.fix = fix
    }

    package var description: String { "\(code.name) (\(code.rawValue)): \(message) \(fix ?? code.fix)" }
}
