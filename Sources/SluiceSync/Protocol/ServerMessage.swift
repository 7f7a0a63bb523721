package import SluiceCore
package import SluiceReplica
package import SluiceWire

/// Rows of one class of a bootstrap, in the form that the replica stages.
package struct StagedRows: Sendable {
    /// The index in the replica's schema.
    package var type: Int
    package var buffer = RowBuffer()
    package var rows: [RowRef] = []
    /// The keys that left the view. They apply after `rows`.
    package var removed: [Value] = []
    /// The reasons of `removed`, in its order. Empty if unknown.
    package var reasons: [LeftObject.Reason] = []
    /// The keys of objects that stay as the replica has them.
    package var kept: [Value] = []
    /// The resume offer that covers these rows, for the next `Hello`. Empty if the message had none.
    package var checkpoint: [UInt8] = []
    /// Write times of rows named as pending, and the property numbers that they use.
    package var times: [StagedTimes] = []
    package var numbers: [UInt32]

    package init(type: Int, numbers: [UInt32] = []) {
        self.type = type
        self.numbers = numbers
    }
}

/// A message of the gateway, in the terms of the client replica.
package enum ServerMessage: Sendable {
    case welcome(Welcome)
    /// - Parameter checkpoint: the staged rows that the bootstrap continues from. `nil` voids all staged rows.
    case bootstrapBegin(version: UInt64, rows: UInt64, checkpoint: Checkpoint? = nil)
    /// `nil` for a class that the replica does not have.
    case bootstrapRows(StagedRows?)
    /// `held` is the client view record for the next `Hello`, an encoded `PBHeld`.
    /// - Parameters:
    ///   - types: the classes that lose all objects that the bootstrap did not send. `nil`: the view was resumed and keeps all.
    ///   - taken: the client's changesets up to this number are reflected in the rows.
    ///   - writeTime: no client's write in the rows has a later time.
    case bootstrapEnd(
        version: UInt64, lsn: LSN, types: [Int]?, held: [UInt8] = [], taken: UInt64 = 0, writeTime: HybridTime = .zero)
    case commits(ReplicaBatch, more: Bool)
    case uploadAck(number: UInt64, lsn: LSN, futile: [FutileWrite] = [])
    case compensation(id: UInt64, [CompensatingWrite])
    case ingestAck(number: UInt64, [CompensatingWrite])
    case markReached(UInt64)
    /// - Parameter index: The index of the rejected query in the set; nil if the error is of the whole set.
    case queryError(version: UInt64, SluiceError, index: Int? = nil)
    case error(SluiceError, SessionAction, fatal: Bool, backoffMilliseconds: UInt64)

    /// The staged part of an interrupted bootstrap.
    package struct Checkpoint: Hashable, Sendable {
        /// The classes with staged rows.
        package var types: [Int]
        /// The encoded `PBCheckpoint`, unchanged.
        package var content: [UInt8]

        package init(types: [Int], content: [UInt8]) {
            self.types = types
            self.content = content
        }
    }

    package struct Welcome: Hashable, Sendable {
        package var identity: ReplicaIdentity
        package var schema: Schema
        /// The highest of this client's changesets that took effect.
        package var changeset: UInt64
        /// The highest batch of asymmetric objects that is final for the client: it needs no further answer.
        package var ingest: UInt64
        /// The highest batch of asymmetric objects that took effect. New batches are numbered above it.
        package var ingestTaken: UInt64
        /// The time of the changeset `changeset`, by the client's clock. Zero if the gateway does not know it.
        package var changesetTime: HybridTime
        package var maximumMessageBytes: Int
        /// The gateway's clock, in milliseconds since 1970. 0 if not sent.
        package var time: Int64

        package init(
            identity: ReplicaIdentity, schema: Schema, changeset: UInt64 = 0, ingest: UInt64 = 0, ingestTaken: UInt64 = 0,
            changesetTime: HybridTime = .zero, maximumMessageBytes: Int = Limits.messageBytes, time: Int64 = 0
        ) {
            self.identity = identity
            self.schema = schema
            self.changeset = changeset
            self.ingest = ingest
            self.ingestTaken = ingestTaken
            self.changesetTime = changesetTime
            self.maximumMessageBytes = maximumMessageBytes
            self.time = time
        }
    }
}

extension ServerMessage {
    /// Decodes a message. Rows and commits are decoded by hand, directly into the form that the replica stores.
    /// - Parameter schema: `nil` before `Welcome`; then neither rows nor commits are allowed.
    /// - Throws: `badSyntax`, `badMessageOrder`, `unknownMessage`, `limitsExceeded`, or the error of a row that cannot be decoded.
    package static func decode(_ bytes: [UInt8], schema: ServerSchema?) throws(SluiceError) -> ServerMessage {
        let hot = try bytes.withUnsafeBufferPointer { buffer throws(SluiceError) -> ServerMessage? in
            var reader = WireReader(UnsafeRawBufferPointer(buffer))
            guard !reader.isAtEnd else { return nil }
            let tag = try reader.tag()
            guard tag.type == .lengthDelimited, tag.field == 3 || tag.field == 5 else { return nil }
            guard let schema else { throw SluiceError(.badMessageOrder, "Rows arrived before Welcome.") }
            let content = reader.nested(try reader.content())
            guard reader.isAtEnd else { throw .malformed("a message says two things") }
            return tag.field == 3
                ? .bootstrapRows(try RowsReader.bootstrapRows(content, schema)) : try RowsReader.commits(content, schema)
        }
        if let hot { return hot }
        try ServerMessageParts.check(bytes)
        return try plain(try WireProtocol.decode(from: bytes), schema: schema)
    }

    private static func plain(_ message: PBServerMessage, schema: ServerSchema?) throws(SluiceError) -> ServerMessage {
        switch message.kind {
        case .welcome(let m): return .welcome(try Welcome(m))
        case .bootstrapBegin(let m):
            let checkpoint = m.hasCheckpoint ? try Checkpoint(m.checkpoint, schema) : nil
            return .bootstrapBegin(version: m.version, rows: m.rows, checkpoint: checkpoint)
        case .bootstrapEnd(let m):
            let types = m.resumed ? nil : m.types.compactMap { schema?.schema.index(of: $0) }
            return .bootstrapEnd(
                version: m.version, lsn: LSN(rawValue: m.lsn), types: types, held: m.hasHeld ? try WireProtocol.encode(m.held) : [],
                taken: m.changeset, writeTime: HybridTime(rawValue: m.writeTime))
        case .uploadAck(let m):
            let futile = try m.futile.map { write throws(SluiceError) in
                FutileWrite(changeset: write.changeset, object: ObjectKey(type: write.type, key: try Value(write.primaryKey)))
            }
            return .uploadAck(number: m.number, lsn: LSN(rawValue: m.lsn), futile: futile)
        case .compensation(let m): return .compensation(id: m.id, try refused(m.writes))
        case .ingestAck(let m): return .ingestAck(number: m.number, try refused(m.writes))
        case .markReached(let m): return .markReached(m.id)
        case .queryError(let m): return .queryError(version: m.version, m.error, index: m.index)
        case .error(let m):
            return .error(m.error, m.sessionAction, fatal: m.fatal, backoffMilliseconds: UInt64(m.backoffMilliseconds))
        case .bootstrapRows, .commits: throw .malformed("a message says two things")
        case nil: throw SluiceError(.unknownMessage, "The gateway sent a message of a kind that this SDK does not know.")
        }
    }

    private static func refused(_ writes: [PBRejectedWrite]) throws(SluiceError) -> [CompensatingWrite] {
        try writes.map { write throws(SluiceError) in
            let report = try RejectedWriteReport(write)
            return CompensatingWrite(
                changeset: write.changeset, object: report.object, code: UInt16(clamping: write.code), cause: write.cause,
                reason: write.reason, fields: write.fields, values: report.values)
        }
    }
}

extension ServerMessage.Checkpoint {
    fileprivate init(_ message: PBCheckpoint, _ schema: ServerSchema?) throws(SluiceError) {
        self.init(types: message.types.compactMap { schema?.schema.index(of: $0.name) }, content: try WireProtocol.encode(message))
    }
}

extension ServerMessage.Welcome {
    /// The bound of changeset and batch numbers. The client continues from the received number, in 63 bits.
    private static let highestNumber: UInt64 = 1 << 48

    init(_ message: PBWelcome) throws(SluiceError) {
        guard message.protocol == WireProtocol.version else {
            throw SluiceError(
                .wrongProtocolVersion, "The gateway speaks version \(message.protocol); this SDK speaks \(WireProtocol.version).")
        }
        let batch = max(message.ingest, message.ingestTaken)
        guard max(message.changeset, batch) <= Self.highestNumber else {
            throw .malformed("no file has the changeset \(message.changeset) or the batch \(batch)")
        }
        guard message.time <= HybridTime.lastMillisecond else { throw .malformed("\(message.time) ms since 1970 is no time of a clock") }
        self.init(
            identity: ReplicaIdentity(client: ClientID(rawValue: message.client), secret: Array(message.secret)),
            schema: try Schema(messages: message.schema), changeset: message.changeset, ingest: message.ingest,
            ingestTaken: message.ingestTaken, changesetTime: HybridTime(rawValue: message.changesetTime),
            maximumMessageBytes: message.maxMessageBytes == 0 ? Limits.messageBytes : Int(message.maxMessageBytes), time: message.time)
    }
}

/// The replica's classes with the property numbers that the gateway allotted in `Welcome`, for decoding rows and encoding changes. Type
/// indices and the order of cells are the replica's. A property unknown to the gateway keeps its place under number 0, which no message
/// carries.
package struct ServerSchema: Sendable {
    package let codec: SchemaCodec
    package var schema: Schema { codec.schema }
    /// The property numbers by type, in the order of its properties.
    let numbers: [[UInt32]]

    package init(local: Schema, server: Schema) {
        codec = SchemaCodec(local.numbered { type, index in server[type.name]?[type.properties[index].name]?.id ?? 0 })
        numbers = codec.schema.types.map { $0.properties.map(\.id) }
    }
}
