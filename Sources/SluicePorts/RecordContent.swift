/// The encoding of a record's value, as its header `content-type` names it.
package enum RecordContent: String, CaseIterable, Sendable {
    case json = "application/json"
    case protobuf = "application/protobuf"

    /// The accepted names. Parameters after a semicolon are ignored.
    private static let names: [String: RecordContent] = [
        "": .json, "application/json": .json, "json": .json, "application/protobuf": .protobuf, "application/x-protobuf": .protobuf,
        "application/vnd.google.protobuf": .protobuf, "protobuf": .protobuf,
    ]

    /// Parses a header; an empty one is JSON. Returns nil for an unknown name.
    package init?(header: some Sequence<UInt8>) {
        let text = String(decoding: Array(header), as: UTF8.self).lowercased()
        let name = text.prefix { $0 != ";" }.filter { $0 != " " }
        guard let known = Self.names[name] else { return nil }
        self = known
    }
}
