// Messages of clients of Sluice's protocol under test by any bytes: the part that is read before authentication, and all of it, and objects
// to ingest. Nothing may crash or disagree with itself. `make fuzz` runs it.

import SluiceCore
import SluiceWire
import SwiftProtobuf

private let place = ObjectType(
    name: "Place", kind: .embedded, properties: [Property(id: 1, name: "lines", type: .string, collection: .list)], primaryKey: nil)
private let item = ObjectType(
    name: "Item",
    properties: [
        Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "count", type: .int, isOptional: true),
        Property(id: 3, name: "tags", type: .string, collection: .list), Property(id: 4, name: "scores", type: .int, collection: .set),
        Property(id: 5, name: "extra", type: .mixed, collection: .dictionary), Property(id: 6, name: "blend", type: .mixed),
        Property(id: 7, name: "friend", type: .link(to: "Item"), isOptional: true),
        Property(id: 8, name: "place", type: .embedded("Place"), isOptional: true),
    ])
private let schema = Schema([item, place])

/// Reads a first message, and a message of an authenticated client.
func run(_ bytes: [UInt8]) {
    attempt([.badSyntax, .unknownMessage, .limitsExceeded]) { () throws(SluiceError) in
        try OpeningMessage(bytes).checkCounts(of: bytes)
    }
    attempt([.badSyntax]) { () throws(SluiceError) in
        let message: PBClientMessage = try WireProtocol.decode(from: bytes)
        switch message.kind {
        case .upload(let upload): for changeset in upload.changesets { read(changeset) }
        case .ingest(let batch): for object in batch.objects { _ = try? ObjectChange(object, schema: schema) }
        default: break
        }
    }
    attempt([.ingestMalformed]) { () throws(SluiceError) in _ = try IngestObjectCodec.json(bytes) }
}

/// Reads a changeset. A valid one must read back equally from the message that it makes.
private func read(_ message: PBChangeset) {
    guard let changeset = try? Changeset(message, schema: schema) else { return }
    do throws(SluiceError) {
        let bytes = try WireProtocol.encode(PBChangeset(changeset, schema: schema))
        let again = try Changeset(try WireProtocol.decode(PBChangeset.self, from: bytes), schema: schema)
        if again != changeset { fatalError("the changeset reads back as another one: \(changeset)") }
    } catch { fatalError("a valid changeset is not written: \(error)") }
}

/// Calls the body. Its errors must have one of the codes, and a text.
private func attempt(_ codes: [ErrorCode], _ body: () throws(SluiceError) -> Void) {
    do throws(SluiceError) { try body() } catch {
        if !codes.contains(error.code) || error.message.isEmpty { fatalError("an error of the reader: \(error)") }
    }
}

/// The name of the inputs in the last line of the output.
let tested = "messages of clients"
