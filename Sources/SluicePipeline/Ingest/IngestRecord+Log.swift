import SluiceCore
import SluicePorts
import SluiceValues
import SluiceWire

extension IngestRecord {
    /// Creates a record from a log entry.
    /// Protobuf is converted to JSON here. A rejected object is thus stored as JSON too, so that it can be read and sent again.
    init(type: String, _ entry: LogFetch.Entry, of fetch: LogFetch) {
        self.init(type: type, bytes: fetch.arena[entry.value], partition: entry.partition, offset: entry.offset)
        if entry.contentType.isEmpty { return }
        switch RecordContent(header: fetch.arena[entry.contentType]) {
        case .json: break
        case .protobuf:
            do throws(SluiceError) { bytes = try IngestObjectCodec.json(Array(bytes)).utf8[...] } catch { problem = error }
        case nil:
            let name = String(decoding: fetch.arena[entry.contentType].prefix(80), as: UTF8.self)
            problem = SluiceError(
                .ingestMalformed, "The record's content-type '\(name)' is not known.",
                fix: "Use \(RecordContent.allCases.map(\.rawValue).joined(separator: " or ")), or none for JSON.")
        }
    }
}
