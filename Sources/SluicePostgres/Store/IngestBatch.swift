package import SluiceCore

/// What an object was made from, for the case that it is refused.
package struct IngestSource: Hashable, Sendable {
    /// The type that it was sent as.
    package var type: String
    /// The object as it came.
    package var bytes: [UInt8]
    /// Where it came from: `topic/partition`, `device/USER/CLIENT`, or `direct`.
    package var origin: String
    /// Its place in its partition; nil when it came by no log.
    package var offset: Int64?

    package init(type: String, bytes: [UInt8], origin: String = "direct", offset: Int64? = nil) {
        self.type = type
        self.bytes = bytes
        self.origin = origin
        self.offset = offset
    }

    /// As people read it, and as PostgreSQL can hold it.
    var text: String { StoreText.printable(String(decoding: bytes, as: UTF8.self)) }
    /// The bytes where their text does not hold them.
    func kept(beside text: String) -> [UInt8]? { text.utf8.elementsEqual(bytes) ? nil : bytes }
}

/// Objects of one type on their way into its table: flat rows in the order of the type's properties.
package struct IngestRows: Sendable {
    package var type: String
    package var buffer: RowBuffer
    package var rows: [RowRef]
    /// What the row at an index of `rows` was made from; asked only about those that PostgreSQL refuses.
    package var source: @Sendable (Int) -> IngestSource

    package init(type: String, buffer: RowBuffer, rows: [RowRef], source: @escaping @Sendable (Int) -> IngestSource) {
        self.type = type
        self.buffer = buffer
        self.rows = rows
        self.source = source
    }
}

/// An object that is kept instead of written.
package struct RefusedRecord: Hashable, Sendable {
    package var source: IngestSource
    package var code: ErrorCode
    package var reason: String

    package init(source: IngestSource, code: ErrorCode, reason: String) {
        self.source = source
        self.code = code
        self.reason = reason
    }
}

/// What records of one topic came to.
package struct IngestBatch: Sendable {
    package var topic: String
    /// Of each partition the offset of the first record, and the offset after the last.
    package var offsets: [Int32: Range<Int64>]
    /// At most one element for each type.
    package var accepted: [IngestRows]
    package var refused: [RefusedRecord]

    package init(topic: String, offsets: [Int32: Range<Int64>], accepted: [IngestRows], refused: [RefusedRecord] = []) {
        self.topic = topic
        self.offsets = offsets
        self.accepted = accepted
        self.refused = refused
    }
}
