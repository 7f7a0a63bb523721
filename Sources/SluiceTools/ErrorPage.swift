import SluiceCore

/// The table of error codes as a page (docs/errors.md). `dev/generate-errors` compiles this file with the table alone, so it must not use
/// any other type.
package enum ErrorPage {
    /// The sections of the page, by range of codes. The client's codes start at 950, after those of the configuration.
    private static let groups: [(range: Range<UInt16>, title: String)] = [
        (100..<200, "Connection"), (200..<300, "Session"), (300..<400, "Query language"), (400..<500, "HTTP and users"),
        (500..<600, "Plugins"), (600..<700, "PostgreSQL"), (700..<800, "The log"), (800..<900, "Ingest"), (900..<950, "Configuration"),
        (950..<1000, "The client"),
    ]

    package static var markdown: String {
        var text = """
            # Errors

            Every error of the product has a code and a name of this table; logs, HTTP answers and the client protocol carry both. The
            message of an error names the value at fault; where an error has a fix of its own, that stands in place of the general one below.

            This page is made by `dev/generate-errors` from `Sources/SluiceCore/Errors/ErrorCode.swift`; `sluice errors` prints it.

            | code | name |
            |---|---|

            """
        for code in ErrorCode.allCases { text += "| \(code.rawValue) | [`\(code.name)`](#\(code.name)) |\n" }
        for group in groups {
            text += "\n## \(group.title)\n"
            for code in ErrorCode.allCases where group.range.contains(code.rawValue) {
                text += "\n### \(code.name)\n\nCode \(code.rawValue). \(code.meaning)\n\n*Fix:* \(code.fix)\n\n"
                text += "*Retry:* \(code.recovery.advice)\n"
            }
        }
        return text
    }
}
