import PortsTestSupport
import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceWire
import SwiftProtobuf

@testable import SluiceRealmBridge

/// The messages that the pipeline sends to the stream of a file, and what the stream makes of them.
enum SessionMessages {
    static let schema = AppSchema(
        version: 1, schema: StageDatabase.schema(StageDatabase.item), fields: QueryableFields(global: ["size"]), isDevelopment: false)
    static let file = RealmFileIdent(ident: 2, salt: 1)
    private static let text = String(repeating: "x", count: 1_000)

    private static func message(_ fill: (inout PBServerMessage) -> Void) throws -> [UInt8] {
        var message = PBServerMessage()
        fill(&message)
        return try WireProtocol.encode(message)
    }

    static func begin(_ version: UInt64) throws -> [UInt8] { try message { $0.bootstrapBegin = .with { $0.version = version } } }

    static func end(_ version: UInt64, _ lsn: UInt64, resumed: Bool = false) throws -> [UInt8] {
        try message { $0.bootstrapEnd = .with { ($0.version, $0.lsn, $0.resumed) = (version, lsn, resumed) } }
    }

    static func rows(_ keys: [String], gone: [String] = []) -> [UInt8] {
        var writer = BootstrapRowsWriter(RowCodec(StageDatabase.item))
        var buffer = RowBuffer()
        for key in keys {
            let place = buffer.append(BridgeStage.item(key, text))
            buffer.withView(place) { writer.add($0) }
        }
        for key in gone { writer.addGone(.string(key)) }
        return writer.finish()
    }

    /// A commit.
    /// - Parameters:
    ///   - changeset: That of the client which the transaction committed; 0 for none.
    ///   - entered: The keys of the objects that it made.
    static func commit(_ lsn: UInt64, changeset: UInt64 = 0, entered: [String] = [], deleted: [String] = []) -> [UInt8] {
        var writer = CommitsWriter()
        writer.beginCommit(LSN(rawValue: lsn), commitTime: 1_700_000_000_000_000, changeset: changeset)
        for key in entered {
            var row = ByteWriter()
            RowCodec(StageDatabase.item).encode(BridgeStage.item(key, text), into: &row)
            writer.addChange("Item", .entered, row.bytes)
        }
        for key in deleted { writer.addChange("Item", .deleted, ValueCodec.encode(.string(key))) }
        writer.endCommit()
        return writer.finish(LSN(rawValue: lsn))
    }

    /// The objects that the parts of views make and erase.
    static func texts(_ events: [RealmViewEvent]) throws -> [String] {
        try events.flatMap { event -> [String] in
            guard case .part(let part) = event else { return [] }
            return try part.entries.flatMap { try RealmChangesetReader.instructions(of: $0.entry.changeset).map(\.text) }
        }
    }
}
