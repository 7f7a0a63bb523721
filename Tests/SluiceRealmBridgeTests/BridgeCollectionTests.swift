import RealmTestSupport
import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceWire
import TestSupport
import Testing

@testable import SluiceRealmBridge

@Suite(.timeLimit(.minutes(2))) struct `The rows of a view for a client that may hold anything` {
    /// A client and what the gateway knows of it, while a view is collected.
    private struct Side {
        var content: BridgeContent
        var collection: BridgeCollection
        var file: RealmModel
        var model = ClientModel()
        /// What the client held before the first slice.
        var before: RealmFileMemory?
        let place = BridgeContent.Place(version: 9, time: 5)

        init(isEncoded: Bool, held: [ObjectKey], gone: [ObjectKey], entryBytes: Int) throws {
            let schema = SessionMessages.schema
            content = try BridgeContent(RealmFileIdent(ident: 2, salt: 9), BridgeSchema(schema), sentSchema: 0, forgotten: 0)
            content.last = 8
            collection = BridgeCollection(version: 1, BridgeBounds(entryBytes: entryBytes), isEncoded: isEncoded)
            file = RealmModel(schema.schema)
            let earlier = BridgeContent.Place(version: 8, time: 1)
            for object in held + gone {
                try file.apply(try BridgeGroup.entering(content.enter(object, BridgeStage.item(object.text, "old"), earlier)).received)
                model.restore(try OutgoingOperation.Object(object))
            }
            // The client may hold them, as it has not confirmed their erasure.
            for object in gone { _ = content.leave(object, earlier) }
        }

        mutating func add(_ message: [UInt8]) throws {
            let codec = content.bridgeSchema.codec
            guard case .rows(let rows?) = try BridgeMessage.decode(message, codec) else { return }
            try collection.add(rows, codec[rows.type], content.writer)
        }

        mutating func slice() throws {
            if before == nil { before = content.memory }
            var pieces = collection.takePieces()
            try collection.slice(&content, place, to: &pieces)
            try receive(pieces.take())
        }

        mutating func end(_ leftovers: Set<ObjectKey>) throws {
            var pieces = collection.takePieces()
            try pieces.open(with: RealmSchema.instructions(of: content.schema), known: [])
            try collection.write(.full, &content, before: before, place, leftovers: leftovers, to: &pieces)
            try receive(pieces.take())
        }

        private mutating func receive(_ pieces: [BridgePiece]) throws {
            for piece in pieces {
                let instructions = try RealmChangesetReader.instructions(of: piece.changeset)
                for instruction in instructions {
                    switch instruction {
                    case .addTable, .addColumn: break
                    default: try file.apply([instruction])
                    }
                }
                try model.send(piece.operations)
            }
        }
    }

    /// The other way keeps the rows until the end.
    @Test(arguments: seeds(100, soak: 3_000)) func `may be encoded when they come`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let keys = (0..<12).map { ObjectKey.item("k\($0)") }
        let held = keys.filter { _ in random.chance(30) }
        let gone = keys.filter { !held.contains($0) && random.chance(20) }
        let leftovers = Set(keys.filter { _ in random.chance(20) })
        let entryBytes = random.pick([1_500, 1 << 20])
        var sides = try [true, false].map { try Side(isEncoded: $0, held: held, gone: gone, entryBytes: entryBytes) }
        // The objects that the session has sent since the bootstrap began, and those of the attempt before.
        var (sent, earlier): (Set<ObjectKey>, Set<ObjectKey>) = ([], [])
        for number in 0..<random.below(30) {
            switch random.below(10) {
            case 0: for side in sides.indices { try sides[side].slice() }
            case 1:
                for side in sides.indices { sides[side].collection.restart() }
                (earlier, sent) = (sent.union(earlier), [])
            default:
                var message = BootstrapRowsWriter(RowCodec(StageDatabase.item))
                var buffer = RowBuffer()
                for object in keys where random.chance(15) {
                    let tags = random.chance(50) ? ["x"] : []
                    let row = buffer.append(BridgeStage.item(object.text, "row \(number)", size: Int64(number), tags: tags))
                    buffer.withView(row) { message.add($0) }
                    sent.insert(object)
                    earlier.remove(object)
                }
                for object in sent.sorted(by: { $0.text < $1.text }) where random.chance(10) {
                    message.addGone(object.key)
                    sent.remove(object)
                }
                for object in earlier.sorted(by: { $0.text < $1.text }) where random.chance(30) {
                    message.addKept(object.key)
                    earlier.remove(object)
                    sent.insert(object)
                }
                let bytes = message.finish()
                for side in sides.indices { try sides[side].add(bytes) }
            }
        }
        for side in sides.indices { try sides[side].end(leftovers) }
        let (encoded, kept) = (sides[0], sides[1])
        #expect(encoded.file.objects == kept.file.objects, "seed \(seed)")
        #expect(Set(encoded.file.objects.keys) == sent && encoded.content.memory.view == sent, "seed \(seed)")
        #expect(kept.content.memory.view == sent, "seed \(seed)")
        for object in keys { #expect(encoded.model.holds(try OutgoingOperation.Object(object)) == sent.contains(object), "seed \(seed)") }
        for object in sent { #expect(encoded.content.memory.isBarred(object, after: 8), "seed \(seed): \(object)") }
    }

    @Test func `are cut before an entry has more bytes than a client stores`() throws {
        let writer = RealmObjectWriter(SessionMessages.schema.schema)
        var (pieces, whole) = (BridgePieces(maximum: 5_000), RealmChangesetWriter())
        var buffer = RowBuffer()
        for number in 0..<300 {
            let item = BridgeStage.item("k\(number)", String(repeating: "x", count: number == 150 ? 9_000 : 40))
            let row = buffer.append(item)
            try buffer.withView(row) { row throws(SluiceError) in
                try pieces.append(.item("k\(number)"), row, writer)
                _ = try whole.append(.item("k\(number)"), row, writer)
            }
        }
        #expect(pieces.isFull)
        let parts = pieces.take()
        // An object is never cut.
        #expect(parts.count { $0.changeset.count > 5_000 } == 1 && parts.count > 6)
        #expect(parts.allSatisfy { $0.count == $0.changeset.count })
        let instructions = try parts.flatMap { try RealmChangesetReader.instructions(of: $0.changeset) }
        #expect(try instructions == RealmChangesetReader.instructions(of: whole.bytes))
        let entered = parts.flatMap(\.operations).reduce(0) { if case .enter(let objects) = $1 { $0 + objects.count } else { $0 } }
        #expect(entered == 300)
    }
}

extension ObjectKey {
    fileprivate var text: String { if case .string(let text) = key { text } else { "" } }
}
