import SluiceCore
import SluicePorts
import SluiceValues
import SluiceWire

/// The encoding of an ingest record's value, from its header `content-type`; JSON without one.
enum IngestContent: String, CaseIterable, Sendable {
    case json = "application/json"
    case protobuf = "application/protobuf"

    /// The accepted names. Parameters after a semicolon are ignored.
    private static let names: [String: IngestContent] = [
        "": .json, "application/json": .json, "json": .json, "application/protobuf": .protobuf, "application/x-protobuf": .protobuf,
        "application/vnd.google.protobuf": .protobuf, "protobuf": .protobuf,
    ]

    /// Parses a header. Returns nil for an unknown name.
    init?(header: some Sequence<UInt8>) {
        let text = String(decoding: Array(header), as: UTF8.self).lowercased()
        let name = text.prefix { $0 != ";" }.filter { $0 != " " }
        guard let known = Self.names[name] else { return nil }
        self = known
    }
}

extension IngestRecord {
    /// Creates a record from a log entry.
    /// Protobuf is converted to JSON here. A rejected object is thus stored as JSON too, so that it can be read and sent again.
    init(type: String, _ entry: LogFetch.Entry, of fetch: LogFetch) {
        self.init(type: type, bytes: fetch.arena[entry.value], partition: entry.partition, offset: entry.offset)
        if entry.contentType.isEmpty { return }
        switch IngestContent(header: fetch.arena[entry.contentType]) {
        case .json: break
        case .protobuf:
            do throws(SluiceError) { bytes = try IngestObjectCodec.json(Array(bytes)).utf8[...] } catch { problem = error }
        case nil:
            let name = String(decoding: fetch.arena[entry.contentType].prefix(80), as: UTF8.self)
            problem = SluiceError(
                .ingestMalformed, "The record's content-type '\(name)' is not known.",
                fix: "Use \(IngestContent.allCases.map(\.rawValue).joined(separator: " or ")), or none for JSON.")
        }
    }
}
