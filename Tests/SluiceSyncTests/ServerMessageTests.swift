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

    // MARK: A hostile server

    private func refusal(_ bytes: [UInt8]) -> SluiceError? {
        #expect(throws: SluiceError.self) { _ = try ServerMessage.decode(bytes, schema: schema) }
    }

    /// A message with one field, whose content has `count` empty messages in another.
    private static func many(_ field: UInt32, in kind: UInt32, count: Int = Limits.serverParts) -> [UInt8] {
        let content = [UInt8]([UInt8(field << 3 | 2), 0]).repeated(count)
        var (length, bytes) = (content.count, [UInt8(kind << 3 | 2)])
        while length > 127 {
            bytes.append(UInt8(length & 127 | 128))
            length >>= 7
        }
        return bytes + [UInt8(length)] + content
    }

    @Test(arguments: [(1, 4), (4, 4), (5, 1), (6, 3), (7, 2), (8, 2)])
    func `a message of many empty parts, which would take hundreds of megabytes in memory, is not decoded`(kind: UInt32, field: UInt32) {
        let error = refusal(Self.many(field, in: kind, count: Limits.serverParts + 1))
        #expect(error?.code == .limitsExceeded, "\(String(describing: error))")
    }

    @Test(arguments: [2, 3, 4, 7])
    func `a bootstrap of more rows and keys than a gateway sends is not decoded`(field: UInt8) throws {
        // Of a class that the replica does not have, so the smallest message and the least work.
        let part: [UInt8] = field == 2 || field == 7 ? [] : ValueCodec.encode(.int(1))
        let parts = ([field << 3 | 2, UInt8(part.count)] + part).repeated(Limits.serverParts + 1)
        let error = refusal([3 << 3 | 2] + Self.varint(parts.count) + parts)
        #expect(error?.code == .limitsExceeded, "\(String(describing: error))")
    }

    @Test func `one commit of more changes than a gateway sends is not decoded`() {
        let change: [UInt8] = [3 << 3 | 2, 2, 2 << 3, UInt8(ViewEvent.entered.rawValue)]
        let commit = change.repeated(Limits.serverParts + 1)
        let commits = [1 << 3 | 2] + Self.varint(commit.count) + commit
        let error = refusal([5 << 3 | 2] + Self.varint(commits.count) + commits)
        #expect(error?.code == .limitsExceeded, "\(String(describing: error))")
    }

    @Test func `short rows of a class with many properties do not fill the memory`() throws {
        let key = Property(id: 1, name: "_id", type: .int)
        let columns = (2...2_000).map { Property(id: UInt32($0), name: "p\($0)", type: .int, isOptional: true) }
        let wide = Schema([ObjectType(name: "Wide", properties: [key] + columns)])
        var row = ByteWriter()
        RowCodec(ObjectType(name: "Wide", properties: [key])).encode(Row([.int(1)]), into: &row)
        let name = Array("Wide".utf8)
        // In memory, each takes 32,000 bytes.
        let rows = ([2 << 3 | 2] + Self.varint(row.bytes.count) + row.bytes).repeated(Limits.decodedBytes / 16_000)
        let content = [1 << 3 | 2, UInt8(name.count)] + name + rows
        let error = #expect(throws: SluiceError.self) {
            _ = try ServerMessage.decode(
                [3 << 3 | 2] + Self.varint(content.count) + content, schema: ServerSchema(local: wide, server: wide))
        }
        #expect(error?.code == .limitsExceeded, "\(String(describing: error))")
    }

    @Test func `values that are nested without an end are not decoded, and end no thread`() throws {
        // A list in a list, as the key of a rejected write.
        var value: [UInt8] = []
        for _ in 0..<2_000 {
            let list = [1 << 3 | 2] + Self.varint(value.count) + value
            value = [12 << 3 | 2] + Self.varint(list.count) + list
        }
        let write = [3 << 3 | 2] + Self.varint(value.count) + value
        let writes = [2 << 3 | 2] + Self.varint(write.count) + write
        #expect(refusal([7 << 3 | 2] + Self.varint(writes.count) + writes)?.code == .badSyntax)
    }

    @Test func `a field that claims more bytes than there are is an error, whatever it claims`() {
        for claim in [UInt64(1) << 31, 1 << 32, 1 << 62, .max] {
            #expect(refusal([3 << 3 | 2] + Self.varint(claim))?.code == .badSyntax)
            #expect(refusal([7 << 3 | 2] + Self.varint(claim))?.code == .badSyntax)
        }
    }

    private static func varint(_ value: some BinaryInteger) -> [UInt8] {
        var (value, bytes) = (UInt64(value), [UInt8]())
        while value > 127 {
            bytes.append(UInt8(value & 127 | 128))
            value >>= 7
        }
        return bytes + [UInt8(value)]
    }
}

extension [UInt8] {
    fileprivate func repeated(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * self.count)
        for _ in 0..<count { bytes += self }
        return bytes
    }
}
