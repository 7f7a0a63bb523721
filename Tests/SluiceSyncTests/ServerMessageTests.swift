import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceWire
import Testing

@Suite struct ServerMessageTests {
    let schema = ServerSchema(local: clientTypes, server: serverTypes)

    @Test func `rows come in the file's order of properties, whatever numbers the gateway has`() throws {
        var writer = BootstrapRowsWriter(RowCodec(itemType))
        var rows = RowBuffer()
        let row = rows.append(Row([.int(5), .string("north"), .string("v"), .int(7), .list([])]))
        rows.withView(row) { writer.add($0) }
        writer.addGone(.int(9))
        guard case .bootstrapRows(let staged?) = try ServerMessage.decode(writer.finish(), schema: schema) else {
            Issue.record("not the rows")
            return
        }
        #expect(staged.type == 0 && staged.removed == [.int(9)])
        #expect(
            staged.rows.map { row in staged.buffer.withView(row) { Row($0) } } == [
                Row([.string("v"), .int(5), .string("north"), .int(7), .list([])])
            ])
    }

    @Test func `an acknowledgement names what came to nothing`() throws {
        let object = ObjectKey(type: "Item", key: .int(5))
        var (message, ack) = (PBServerMessage(), PBUploadAck())
        (ack.number, ack.lsn, ack.futile) = (7, 9, [PBFutileWrite(changeset: 6, object)])
        message.uploadAck = ack
        guard
            case .uploadAck(7, LSN(rawValue: 9), let futile) = try ServerMessage.decode(try WireProtocol.encode(message), schema: schema)
        else {
            Issue.record("not the acknowledgement")
            return
        }
        #expect(futile == [FutileWrite(changeset: 6, object: object)])
    }

    @Test func `commits keep their order, and what the file does not know is passed over`() throws {
        var row = ByteWriter()
        RowCodec(itemType).encode(Row([.int(1), .string("s"), .string("v"), .int(7), .list([])]), into: &row)
        var writer = CommitsWriter()
        writer.beginCommit(LSN(rawValue: 5), commitTime: 9)
        writer.addChange("Item", .entered, row.bytes)
        writer.addChange("Unheard", .updated, row.bytes)
        writer.addChange("Item", .lostPermission, ValueCodec.encode(.int(4)))
        writer.endCommit()
        writer.beginCommit(LSN(rawValue: 6), commitTime: 9)
        writer.endCommit()
        guard case .commits(let batch, let more) = try ServerMessage.decode(writer.finish(LSN(rawValue: 7), more: true), schema: schema)
        else {
            Issue.record("not the commits")
            return
        }
        #expect(more && batch.lsn == LSN(rawValue: 7))
        #expect(batch.commits.map(\.lsn) == [LSN(rawValue: 5), LSN(rawValue: 6)] && batch.commits.map(\.changes) == [0..<2, 2..<2])
        #expect(batch.changes.map(\.event) == [.entered, .lostPermission] && batch.changes[1].key == .int(4))
    }

    @Test func `a property that the gateway lacks is absent, and cannot be written`() throws {
        let poorer = Schema([ObjectType(name: "Item", properties: [Property(id: 3, name: "_id", type: .int)])])
        let schema = ServerSchema(local: clientTypes, server: poorer)
        #expect(schema.schema["Item"]?.properties.map(\.id) == [0, 3, 0, 0, 0])
        let change = ObjectChange(object: ObjectKey(type: "Item", key: .int(1)), kind: .set, values: ["value": .string("v")])
        #expect(throws: SluiceError.self) { try PBObjectChange(change, schema: schema.schema) }
    }

    @Test func `a Welcome with numbers that no clock and no file has is refused`() throws {
        func welcome(_ fill: (inout PBWelcome) -> Void) throws -> ServerMessage.Welcome {
            var welcome = PBWelcome()
            welcome.protocol = WireProtocol.version
            fill(&welcome)
            guard
                case .welcome(let read) = try ServerMessage.decode(try WireProtocol.encode(PBServerMessage(.welcome(welcome))), schema: nil)
            else { throw SluiceError(.internalError, "no Welcome") }
            return read
        }
        #expect(try welcome { $0.time = HybridTime.lastMillisecond }.time == HybridTime.lastMillisecond)
        #expect(try welcome { $0.changeset = 1 << 48 }.changeset == 1 << 48)
        #expect(try welcome { ($0.ingest, $0.ingestTaken) = (7, 10) }.ingestTaken == 10)
        let wrong: [(inout PBWelcome) -> Void] = [
            { $0.time = .max }, { $0.time = HybridTime.lastMillisecond + 1 }, { $0.changeset = .max }, { $0.changeset = 1 << 48 + 1 },
            { $0.ingest = .max }, { $0.ingestTaken = .max },
        ]
        for fill in wrong {
            let error = #expect(throws: SluiceError.self) { try welcome(fill) }
            #expect(error?.code == .badSyntax)
        }
    }

    @Test func `rows before Welcome, empty messages, garbage and a foreign version are errors`() throws {
        func code(_ bytes: [UInt8], _ schema: ServerSchema?) -> ErrorCode? {
            #expect(throws: SluiceError.self) { _ = try ServerMessage.decode(bytes, schema: schema) }?.code
        }
        var writer = CommitsWriter()
        #expect(code(writer.finish(LSN(rawValue: 1)), nil) == .badMessageOrder)
        #expect(code([], schema) == .unknownMessage)
        #expect(code([0xff], schema) == .badSyntax)
        var welcome = PBWelcome()
        welcome.protocol = 9
        #expect(code(try WireProtocol.encode(PBServerMessage(.welcome(welcome))), nil) == .wrongProtocolVersion)
    }
}
