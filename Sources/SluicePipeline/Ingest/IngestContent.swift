import SluiceCore
import SluiceWire

/// How the value of an ingest record is written: by its header `content-type`, JSON without one.
enum IngestContent: String, CaseIterable, Sendable {
    case json = "application/json"
    case protobuf = "application/protobuf"

    /// The names that producers use; parameters behind a semicolon say nothing here.
    private static let names: [String: IngestContent] = [
        "": .json, "application/json": .json, "json": .json, "application/protobuf": .protobuf, "application/x-protobuf": .protobuf,
        "application/vnd.google.protobuf": .protobuf, "protobuf": .protobuf,
    ]

    /// - Returns: nil for a name that is not known.
    init?(header: some Sequence<UInt8>) {
        let text = String(decoding: Array(header), as: UTF8.self).lowercased()
        let name = text.prefix { $0 != ";" }.filter { $0 != " " }
        guard let known = Self.names[name] else { return nil }
        self = known
    }
}

extension IngestRecord {
    /// A record of the log. What came as Protobuf is JSON from here on, also where it is kept because it was refused, so that it can
    /// be read and sent again.
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
