package import SluiceCore

#if canImport(Glibc)
    import Glibc
#endif

/// Asks on a terminal.
package enum StandardInput {
    /// Asks a question for yes or no, unless an option gave the answer.
    ///
    /// - Parameter isGiven: `true` for `--yes`.
    /// - Returns: `true` for `y` or `yes`.
    /// - Throws: `configMissing` if standard input is no terminal.
    package static func agrees(_ isGiven: Bool, _ question: String) throws(SluiceError) -> Bool {
        if isGiven { return true }
        guard isatty(0) == 1 else {
            throw SluiceError(
                .configMissing, "Standard input is no terminal, so nothing was changed.", fix: "Read the proposal, and pass --yes.")
        }
        StandardError.write("\(question) [y/N] ")
        let answer = readLine()?.lowercased() ?? ""
        return answer == "y" || answer == "yes"
    }
}
