package import SluiceCore

/// How a body's bytes are compressed: the values of HTTP's Content-Encoding that are understood.
package enum ContentEncoding: String, CaseIterable, Sendable {
    case gzip
    case zstd

    /// Reads a Content-Encoding header.
    /// - Returns: nil for none, or `identity`.
    /// - Throws: `unsupportedEncoding` for any other, and for several on top of each other.
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
