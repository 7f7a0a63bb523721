package import SluiceCore

/// The compression of a body: the supported values of HTTP's Content-Encoding.
package enum ContentEncoding: String, CaseIterable, Sendable {
    case gzip
    case zstd

    /// Parses a Content-Encoding header.
    ///
    /// - Returns: Nil for no encoding or `identity`.
    /// - Throws: `unsupportedEncoding` for any other value, and for several encodings.
    package static func parse(_ header: String?) throws(SluiceError) -> ContentEncoding? {
        let name = (header ?? "").lowercased().filter { $0 != " " }
        switch name {
        case "", "identity": return nil
        case "gzip", "x-gzip": return .gzip
        case "zstd": return .zstd
        default:
            throw SluiceError(
                .unsupportedEncoding, "The body's encoding '\(name.prefix(40))' is not known.",
                fix: "Send gzip, zstd or no Content-Encoding.")
        }
    }
}
