package import SluiceCore

/// The reason for a record's partition. A row whose partition key changed is published twice with one position.
package enum Passage: UInt8, Sendable {
    case stay = 0
    /// In the partition of the old key.
    case leave = 1
    /// In the partition of the new key.
    case enter = 2
}

/// A `ChangeRecord` decoded just far enough to route it. The images stay encoded, so that their bytes can be forwarded.
///
/// The ranges are offsets into the record's bytes. They cover the content of nested messages: `Value` for the key, `Row` for the images.
package struct ChangeRecordView: Hashable, Sendable {
    package var position: Position
    /// The position of the previous record in the partition. `nil` for the first one since the replication slot was created.
    package var previous: Position?
    package var xid: UInt32
    /// Microseconds since 1970, UTC.
    package var commitTime: Int64
    package var origin: Origin?
    /// The index in the reader's schema. `nil` if the schema does not have the class.
    package var type: Int?
    package var typeName: Range<Int>
    /// Empty for a truncation.
    package var primaryKey: Range<Int>
    package var operation: ChangeOperation
    package var passage: Passage
    package var before: Range<Int>?
    package var after: Range<Int>?
    /// The encoded write times. Empty for SQL.
    package var times: Range<Int>
}

/// The codec of `ChangeRecord`, the message that the gateway publishes for each change.
package struct ChangeRecordCodec: Sendable {
    package let types: SchemaCodec

    package init(_ types: SchemaCodec) { self.types = types }
    package init(_ schema: Schema) { types = SchemaCodec(schema) }

    /// Appends one record.
    /// - Parameters:
    ///   - rows: the buffer that holds the change's rows.
    ///   - previous: the position of the last record written to the same partition.
    /// - Precondition: the codec's schema has the change's class, and the images that are present are whole rows of it.
    package func encode(
        _ change: CapturedChange, of transaction: CapturedTransaction, rows: RowBuffer, previous: Position?,
        passage: Passage, into writer: inout ByteWriter
    ) {
        let codec = types[Int(change.type)]
        encodeOrder(of: change, of: transaction, previous: previous, into: &writer)
        if let key = codec.type.primaryKey, let image = change.after ?? change.before {
            rows.withView(image) { view in
                let content = writer.open(7)
                ValueCodec.encode(view[key], of: view, into: &writer)
                writer.close(content)
            }
        }
        writer.field(8, varint: UInt64(change.operation.rawValue))
        writer.ifNotZero(9, varint: UInt64(passage.rawValue))
        if let before = change.before { image(10, before, of: codec, rows, into: &writer) }
        if let after = change.after { image(11, after, of: codec, rows, into: &writer) }
        if !change.times.isEmpty {
            rows.arena.withUnsafeBytes { arena in
                let times = Int(change.times.lowerBound)..<Int(change.times.upperBound)
                writer.field(12, bytes: UnsafeRawBufferPointer(rebasing: arena[times]))
            }
        }
    }

    /// Appends a record without images, which states only that the object changed.
    /// - Parameter previous: the position of the last record written to the same partition.
    package func encodeHead(
        of change: CapturedChange, of transaction: CapturedTransaction, key: Value, previous: Position?, into writer: inout ByteWriter
    ) {
        encodeOrder(of: change, of: transaction, previous: previous, into: &writer)
        let content = writer.open(7)
        ValueCodec.encode(key, into: &writer)
        writer.close(content)
        writer.field(8, varint: UInt64(change.operation.rawValue))
    }

    /// Appends the fields up to the class: positions, transaction, origin.
    private func encodeOrder(
        of change: CapturedChange, of transaction: CapturedTransaction, previous: Position?, into writer: inout ByteWriter
    ) {
        ChangeRecordCodec.position(1, change.position, into: &writer)
        if let previous { ChangeRecordCodec.position(2, previous, into: &writer) }
        writer.ifNotZero(3, varint: UInt64(transaction.xid))
        writer.ifNotZero(4, zigzag: transaction.commitTime)
        if let origin = transaction.origin {
            let content = writer.open(5)
            writer.ifNotZero(1, varint: origin.client.rawValue)
            writer.ifNotZero(2, varint: origin.changeset)
            writer.ifNotZero(3, fixed64: origin.time.rawValue)
            writer.close(content)
        }
        writer.ifNotEmpty(6, string: types[Int(change.type)].type.name)
    }

    private func image(_ field: UInt32, _ row: RowRef, of codec: RowCodec, _ rows: RowBuffer, into writer: inout ByteWriter) {
        let content = writer.open(field)
        rows.withView(row) { codec.encode($0, into: &writer) }
        writer.close(content)
    }

    private static func position(_ field: UInt32, _ position: Position, into writer: inout ByteWriter) {
        let content = writer.open(field)
        writer.ifNotZero(1, fixed64: position.lsn.rawValue)
        writer.ifNotZero(2, varint: UInt64(position.ordinal))
        writer.close(content)
    }

    /// Decodes a record's head. Locates the images without decoding them.
    /// - Throws: `badSyntax` if the bytes are malformed, or lack the position, the key or the operation.
    package func decode(_ bytes: UnsafeRawBufferPointer) throws(SluiceError) -> ChangeRecordView {
        var head = Head()
        var reader = WireReader(bytes)
        while !reader.isAtEnd { try head.read(&reader) }
        guard let position = head.position, let operation = head.operation,
            let key = head.primaryKey ?? (operation == .truncate ? 0..<0 : nil)
        else {
            throw .malformed("a change record lacks its position, its operation or its primary key")
        }
        return ChangeRecordView(
            head, position: position, operation: operation, primaryKey: key, type: types.index(ofName: reader.slice(head.type)))
    }

    /// Decodes an image of a record and appends it to `rows`.
    package func row(
        _ range: Range<Int>, of type: Int, in bytes: UnsafeRawBufferPointer, into rows: inout RowBuffer
    ) throws(SluiceError) -> RowRef {
        try types[type].decode(UnsafeRawBufferPointer(rebasing: bytes[range]), into: &rows)
    }

    /// Returns the primary key of a record as an owning value.
    package func primaryKey(_ view: ChangeRecordView, in bytes: UnsafeRawBufferPointer) throws(SluiceError) -> Value {
        try ValueCodec.decode(UnsafeRawBufferPointer(rebasing: bytes[view.primaryKey]))
    }
}

extension ChangeRecordView {
    /// Creates the view from a record's fields, and from those that every record must have.
    fileprivate init(_ head: Head, position: Position, operation: ChangeOperation, primaryKey: Range<Int>, type: Int?) {
        self.position = position
        previous = head.previous
        xid = head.xid
        commitTime = head.commitTime
        origin = head.origin
        self.type = type
        typeName = head.type
        self.primaryKey = primaryKey
        self.operation = operation
        passage = head.passage
        before = head.before
        after = head.after
        times = head.times
    }
}

private struct Head {
    var position: Position?
    var previous: Position?
    var xid: UInt32 = 0
    var commitTime: Int64 = 0
    var origin: Origin?
    var type = 0..<0
    var primaryKey: Range<Int>?
    var operation: ChangeOperation?
    var passage = Passage.stay
    var before: Range<Int>?
    var after: Range<Int>?
    var times = 0..<0

    mutating func read(_ reader: inout WireReader) throws(SluiceError) {
        let tag = try reader.tag()
        switch (tag.field, tag.type) {
        case (1, .lengthDelimited): position = try Head.position(reader.nested(try reader.content()))
        case (2, .lengthDelimited): previous = try Head.position(reader.nested(try reader.content()))
        case (3, .varint): xid = UInt32(truncatingIfNeeded: try reader.varint())
        case (4, .varint): commitTime = try reader.zigzag()
        case (5, .lengthDelimited): origin = try Head.origin(reader.nested(try reader.content()))
        case (6, .lengthDelimited): type = try reader.text()
        case (7, .lengthDelimited): primaryKey = try reader.content()
        case (8, .varint):
            let raw = try reader.varint()
            guard let known = ChangeOperation(rawValue: UInt8(truncatingIfNeeded: raw)) else { throw .malformed("\(raw) is no operation") }
            operation = known
        case (9, .varint):
            let raw = try reader.varint()
            guard let known = Passage(rawValue: UInt8(truncatingIfNeeded: raw)) else { throw .malformed("\(raw) is no passage") }
            passage = known
        case (10, .lengthDelimited): before = try reader.content()
        case (11, .lengthDelimited): after = try reader.content()
        case (12, .lengthDelimited): times = try reader.content()
        default:
            guard !(1...12).contains(tag.field) else { throw .malformed("field \(tag.field) is a \(tag.type)") }
            try reader.skip(tag.type)
        }
    }

    static func position(_ reader: WireReader) throws(SluiceError) -> Position {
        var reader = reader
        var position = Position.zero
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .fixed64): position.lsn = LSN(rawValue: try reader.fixed64())
            case (2, .varint): position.ordinal = UInt32(truncatingIfNeeded: try reader.varint())
            default: try reader.skip(tag.type)
            }
        }
        return position
    }

    static func origin(_ reader: WireReader) throws(SluiceError) -> Origin {
        var reader = reader
        var origin = Origin(client: .server, changeset: 0)
        while !reader.isAtEnd {
            let tag = try reader.tag()
            switch (tag.field, tag.type) {
            case (1, .varint): origin.client = ClientID(rawValue: try reader.varint())
            case (2, .varint): origin.changeset = try reader.varint()
            case (3, .fixed64): origin.time = HybridTime(rawValue: try reader.fixed64())
            default: try reader.skip(tag.type)
            }
        }
        return origin
    }
}
