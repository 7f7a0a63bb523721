package import SluiceCore

/// The address of a collector of traces.
package struct TraceCollector: Hashable, Sendable {
    /// The URL that receives spans.
    package let url: String

    /// - Parameter text: An `http` or `https` URL. Without a path it gets OTLP's `/v1/traces`.
    /// - Throws: `configInvalid` for text of another form, and for a URL with a user, a query or a fragment.
    package init(_ text: String) throws(SluiceError) {
        let parts = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let scheme = parts.first?.lowercased()
        let isURL = (scheme == "http:" || scheme == "https:") && parts.count >= 3 && parts[1].isEmpty && !parts[2].isEmpty
        let hasOnlyPlace = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } && !text.contains { "@?#".contains($0) }
        guard isURL, hasOnlyPlace else {
            // The text may hold a password, so the error does not repeat it.
            throw SluiceError(
                .configInvalid, "The collector of traces is no http or https URL of a host and a path.",
                fix: "Give --trace-collector or SLUICE_TRACE_COLLECTOR a URL such as http://host:4318.")
        }
        let path = parts.count > 3 ? parts[3] : ""
        url = path.isEmpty ? "\(parts[0])//\(parts[2])/v1/traces" : text
    }
}
