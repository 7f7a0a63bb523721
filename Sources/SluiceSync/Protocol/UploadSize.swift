package import SluiceCore
package import SluiceReplica
import SluiceWire

/// The encoded size of a changeset.
package enum UploadSize {
    /// The bytes of a message beside its changeset: fields, lengths, and the number of the last compensation.
    static let frame = 64
    /// The bytes of an `Ingest` message beside its objects, and of one object beside its content. Both are upper bounds.
    static let ingestFrame = frame + 16
    static let ingestObject = 8
    /// The bytes by which an allotted property number may exceed that of the replica's schema.
    private static let propertyNumber = 4

    /// Returns the bound of one message, for `ReplicaOptions`.
    /// - Parameter schema: The replica's schema. Its properties need no numbers: the gateway allots them at the first connection.
    package static func bound(_ schema: Schema) -> UploadBound {
        let numbered = schema.numbered { _, index in UInt32(index + 1) }
        return UploadBound(bytes: Limits.messageBytes) { changeset throws(SluiceError) in
            let named = changeset.changes.reduce(0) { $0 + $1.values.count + $1.counters.count + $1.edits.count + $1.seen.count }
            return try WireProtocol.encode(try PBChangeset(changeset, schema: numbered)).count + frame + propertyNumber * named
        }
    }
}
