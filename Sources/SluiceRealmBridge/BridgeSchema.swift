import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceWire
import Synchronization

/// A version of the app's schema, with what the views of all files need of it.
final class BridgeSchema: Sendable {
    let app: AppSchema
    let codec: SchemaCodec
    let writer: RealmObjectWriter
    /// The number of the schema among those that a client may have. Its declarations decide, so that equal schemas have equal numbers.
    let hash: UInt64
    /// The classes with properties whose pending edits a client discards when it receives the whole value.
    let discarding: Set<String>

    /// - Throws: `internalError` for a schema that the protocol cannot express.
    init(_ app: AppSchema) throws(SluiceError) {
        self.app = app
        (codec, writer) = (SchemaCodec(app.schema), RealmObjectWriter(app.schema))
        discarding = Set(app.schema.types.filter { $0.properties.contains(where: \.hasDiscards) }.map(\.name))
        // FNV-1a.
        hash = try RealmChangesetWriter.bytes(of: RealmSchema.instructions(of: app.schema)).reduce(0xCBF2_9CE4_8422_2325) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01B3
        }
    }
}

/// What the views of all files of a gateway share.
final class BridgeShared: Sendable {
    let services: SessionServices
    let bounds: BridgeBounds
    let commits = SharedCommits()
    private let newest = Mutex<BridgeSchema?>(nil)

    init(services: SessionServices, bounds: BridgeBounds) { (self.services, self.bounds) = (services, bounds) }

    /// Returns the current schema of the app.
    func schema() throws(SluiceError) -> BridgeSchema {
        let app = services.authority.current()
        if let known = newest.withLock({ $0 }), known.app.version == app.version { return known }
        let schema = try BridgeSchema(app)
        newest.withLock { $0 = schema }
        return schema
    }
}
