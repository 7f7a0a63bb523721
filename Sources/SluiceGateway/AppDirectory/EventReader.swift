import SluicePorts

/// Reads `events` of `sluice.json`: `format`, which is `json` (the default) or `protobuf`.
struct EventReader {
    private static let formats: [(name: String, content: RecordContent)] = [("json", .json), ("protobuf", .protobuf)]

    func read(_ node: ConfigNode?) -> RecordContent {
        guard let format = node?.members(allowing: ["format"])["format"], let name = format.string else { return .json }
        if let known = Self.formats.first(where: { $0.name == name }) { return known.content }
        format.problem("'\(name)' is not a format of events.", fix: "Use \(Self.formats.map(\.name).joined(separator: " or ")).")
        return .json
    }
}
