package import SluiceCore
package import SluiceValues
import SwiftProtobuf

/// The codec of `IngestObject` (`Protos/ingest.proto`): an object to ingest, with properties by name.
package enum IngestObjectCodec {
    /// Decodes an object and returns it as Extended JSON. It is then checked like one that arrived as JSON.
    /// - Throws: `ingestMalformed`.
    package static func json(_ bytes: [UInt8]) throws(SluiceError) -> JSON {
        do throws(SluiceError) {
            let message: PBIngestObject = try WireProtocol.decode(from: bytes)
            var values: [String: Value] = [:]
            for (name, value) in message.properties { values[name] = try Value(value) }
            return ExtendedJSON.json(values)
        } catch {
            throw SluiceError(
                .ingestMalformed, "The record is not an IngestObject: \(error.message)", fix: "Write it as ingest.proto says.")
        }
    }

    package static func bytes(_ values: [String: Value]) throws(SluiceError) -> [UInt8] {
        let message = PBIngestObject.with { $0.properties = values.mapValues { PBValue($0) } }
        return try WireProtocol.encode(message)
    }
}
