#if canImport(Glibc)
    import Glibc
#endif

/// Asks on a terminal.
package enum StandardInput {
    /// Asks a question for yes or no.
    ///
    /// - Returns: `true` for `y` or `yes`; nil if standard input is no terminal.
    package static func confirms(_ question: String) -> Bool? {
        guard isatty(0) == 1 else { return nil }
        StandardError.write("\(question) [y/N] ")
        let answer = readLine()?.lowercased() ?? ""
        return answer == "y" || answer == "yes"
    }
}
