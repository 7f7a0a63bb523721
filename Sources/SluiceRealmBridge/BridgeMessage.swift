import SluiceCore
import SluiceMerge
import SluiceWire

/// One transaction of a file's session.
struct BridgeCommit: Sendable {
    struct Change: Hashable {
        var object: ObjectKey
        var event: ViewEvent
        /// The visible row, if the event has one.
        var row: Row?
        /// The numbers of the changed properties; nil for a new row, and if they are unknown.
        var changed: [UInt32]?
    }

    var lsn: LSN
    /// Microseconds since 1970.
    var time: Int64 = 0
    /// The file's own changeset; 0 for none.
    var changeset: UInt64 = 0
    var writeTime = HybridTime.zero
    var changes: [Change] = []
    /// The entry for files that hold all of the objects.
    let shared = SharedEntry()
}

/// The rows of one message of a bootstrap, still encoded.
struct BridgeRows {
    /// The index of the class.
    var type: Int
    var message: [UInt8]
    /// The places of rows in the message.
    var rows: [Range<Int>] = []
    /// The keys that left the view. They apply after `rows`.
    var removed: [Value] = []
    /// The keys of objects that the client has as they are.
    var kept: [Value] = []

    init(type: Int, of message: [UInt8]) { (self.type, self.message) = (type, message) }

    /// The bytes of the rows.
    var bytes: Int { rows.reduce(0) { $0 + $1.count } }
}

/// A message of a file's session.
enum BridgeMessage {
    case welcome(PBWelcome)
    /// The number of rows is an estimate; 0 if unknown.
    case bootstrapBegin(version: UInt64, rows: UInt64)
    /// Nil for a class that the app lacks.
    case rows(BridgeRows?)
    case bootstrapEnd(PBBootstrapEnd)
    case commits([BridgeCommit], lsn: LSN, witness: [UInt8], more: Bool)
    case uploadAck(UInt64, LSN)
    case ingestAck(UInt64)
    case compensation(UInt64, [RejectedWriteReport])
    case queryError(version: UInt64, SluiceError)
    case error(SluiceError)
    case other

    /// Decodes a message.
    /// - Throws: `badSyntax`, or the error of a row that does not fit its class.
    static func decode(_ bytes: [UInt8], _ codec: SchemaCodec) throws(SluiceError) -> BridgeMessage {
        let hot = try bytes.withUnsafeBufferPointer { buffer throws(SluiceError) -> BridgeMessage? in
            var reader = WireReader(UnsafeRawBufferPointer(buffer))
            guard !reader.isAtEnd else { return nil }
            let tag = try reader.tag()
            guard tag.type == .lengthDelimited, tag.field == 3 || tag.field == 5 else { return nil }
            let content = reader.nested(try reader.content())
            return tag.field == 3 ? .rows(try rows(content, of: bytes, codec)) : try commits(content, codec)
        }
        if let hot { return hot }
        return try plain(try WireProtocol.decode(from: bytes))
    }

    /// Decodes an acknowledgement, a compensating write, or the answer to a subscription set; `other` for every other message.
    static func answer(_ bytes: [UInt8]) -> BridgeMessage {
        // Fields of ServerMessage, length-delimited. They are below 16, so each key is one byte.
        let fields: [UInt8] = [4, 6, 7, 8, 10]
        guard let first = bytes.first, fields.contains(first >> 3), let message: PBServerMessage = try? WireProtocol.decode(from: bytes)
        else {
            return .other
        }
        return (try? plain(message)) ?? .other
    }

    private static func plain(_ message: PBServerMessage) throws(SluiceError) -> BridgeMessage {
        switch message.kind {
        case .welcome(let welcome): return .welcome(welcome)
        case .bootstrapBegin(let begin): return .bootstrapBegin(version: begin.version, rows: begin.rows)
        case .bootstrapEnd(let end): return .bootstrapEnd(end)
        case .uploadAck(let ack): return .uploadAck(ack.number, LSN(rawValue: ack.lsn))
        case .compensation(let compensation):
            var writes: [RejectedWriteReport] = []
            for write in compensation.writes { writes.append(try RejectedWriteReport(write)) }
            return .compensation(compensation.id, writes)
        case .queryError(let error): return .queryError(version: error.version, error.error)
        case .error(let error): return .error(error.error)
        case .ingestAck(let ack): return .ingestAck(ack.number)
        case .markReached, .bootstrapRows, .commits, nil: return .other
        }
    }

    // MARK: Rows

    private static func rows(_ reader: WireReader, of message: [UInt8], _ codec: SchemaCodec) throws(SluiceError) -> BridgeRows? {
        var reader = reader
        var type: Int?
        var (rows, removed, kept) = ([Range<Int>](), [Value](), [Value]())
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): type = codec.index(ofName: reader.slice(try reader.text()))
            case (2, .lengthDelimited): rows.append(try reader.content())
            case (3, .lengthDelimited): removed.append(try ValueCodec.decode(reader.slice(try reader.content())))
            case (4, .lengthDelimited): kept.append(try ValueCodec.decode(reader.slice(try reader.content())))
            default: try reader.skip(tag.type)
            }
        }
        guard let type else { return nil }
        var result = BridgeRows(type: type, of: message)
        (result.rows, result.removed, result.kept) = (rows, removed, kept)
        return result
    }

    // MARK: Commits

    private static func commits(_ reader: WireReader, _ codec: SchemaCodec) throws(SluiceError) -> BridgeMessage {
        var reader = reader
        var commits: [BridgeCommit] = []
        var (lsn, witness, more) = (LSN.zero, [UInt8](), false)
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): commits.append(try commit(reader.nested(try reader.content()), codec))
            case (2, .fixed64): lsn = LSN(rawValue: try reader.fixed64())
            case (3, .varint): more = try reader.varint() != 0
            case (4, .lengthDelimited): witness = Array(reader.slice(try reader.content()))
            default: try reader.skip(tag.type)
            }
        }
        return .commits(commits, lsn: lsn, witness: witness, more: more)
    }

    private static func commit(_ reader: WireReader, _ codec: SchemaCodec) throws(SluiceError) -> BridgeCommit {
        var reader = reader
        var commit = BridgeCommit(lsn: .zero)
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .fixed64): commit.lsn = LSN(rawValue: try reader.fixed64())
            case (2, .varint): commit.time = try reader.zigzag()
            case (3, .lengthDelimited):
                if let change = try change(reader.nested(try reader.content()), codec) { commit.changes.append(change) }
            case (4, .varint): commit.changeset = try reader.varint()
            case (5, .fixed64): commit.writeTime = HybridTime(rawValue: try reader.fixed64())
            default: try reader.skip(tag.type)
            }
        }
        return commit
    }

    private static func change(_ reader: WireReader, _ codec: SchemaCodec) throws(SluiceError) -> BridgeCommit.Change? {
        var reader = reader
        var (type, event, row, key): (Int?, ViewEvent?, Row?, Value?) = (nil, nil, nil, nil)
        var changed: [UInt32]?
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .lengthDelimited): type = codec.index(ofName: reader.slice(try reader.text()))
            case (2, .varint): event = ViewEvent(rawValue: UInt8(truncatingIfNeeded: try reader.varint()))
            case (3, .lengthDelimited):
                let content = reader.slice(try reader.content())
                guard let type else { continue }
                var buffer = RowBuffer()
                let place = try codec[type].decode(content, into: &buffer)
                row = buffer.withView(place) { Row($0) }
            case (4, .lengthDelimited): key = try ValueCodec.decode(reader.slice(try reader.content()))
            case (6, .lengthDelimited): changed = try numbers(reader.nested(try reader.content()))
            default: try reader.skip(tag.type)
            }
        }
        guard let type, let event else { return nil }
        let object = codec[type].type
        guard let key = key ?? object.primaryKey.flatMap({ row?[$0] }), !key.isNull || object.primaryKey != nil else { return nil }
        return BridgeCommit.Change(object: ObjectKey(type: object.name, key: key), event: event, row: row, changed: changed)
    }

    private static func numbers(_ reader: WireReader) throws(SluiceError) -> [UInt32] {
        var reader = reader
        var numbers: [UInt32] = []
        while !reader.isAtEnd { numbers.append(UInt32(truncatingIfNeeded: try reader.varint())) }
        return numbers
    }
}
