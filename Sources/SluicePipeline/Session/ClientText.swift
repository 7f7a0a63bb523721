/// Text that a client chooses, as logs, terminals and pages may show it.
package enum ClientText {
    /// The maximum bytes of a text that is kept.
    package static let bytes = 256

    /// Returns the printable ASCII characters among the first bytes. Others could move a terminal's cursor or hide text.
    package static func printable(_ text: String) -> String {
        String(decoding: text.utf8.prefix(bytes).filter { (0x20...0x7e).contains($0) }, as: UTF8.self)
    }
}
