package import SluiceCore

/// The origin of an object, kept in case it is rejected.
package struct IngestSource: Hashable, Sendable {
    /// The class that the object was sent as.
    package var type: String
    /// The object as received.
    package var bytes: [UInt8]
    /// The source: `topic/partition`, `device/USER/CLIENT`, or `direct`.
    package var origin: String
    /// The offset in the partition; nil if the object came from no log.
    package var offset: Int64?

    package init(type: String, bytes: [UInt8], origin: String = "direct", offset: Int64? = nil) {
        self.type = type
        self.bytes = bytes
        self.origin = origin
        self.offset = offset
    }

    /// The object as printable text that PostgreSQL can store.
    var text: String { StoreText.printable(String(decoding: bytes, as: UTF8.self)) }
    /// Returns the bytes if `text` does not represent them exactly, else nil.
    func kept(beside text: String) -> [UInt8]? { text.utf8.elementsEqual(bytes) ? nil : bytes }
}

/// Objects of one class on their way into its table: flat rows in the order of the class's properties.
package struct IngestRows: Sendable {
    package var type: String
    package var buffer: RowBuffer
    package var rows: [RowRef]
    /// Returns the source of the row at an index of `rows`. Called only for rows that PostgreSQL rejects.
    package var source: @Sendable (Int) -> IngestSource

    package init(type: String, buffer: RowBuffer, rows: [RowRef], source: @escaping @Sendable (Int) -> IngestSource) {
        self.type = type
        self.buffer = buffer
        self.rows = rows
        self.source = source
    }
}

/// An object that is stored as rejected instead of written.
package struct StoredRejectedObject: Hashable, Sendable {
    package var source: IngestSource
    package var code: ErrorCode
    package var reason: String

    package init(source: IngestSource, code: ErrorCode, reason: String) {
        self.source = source
        self.code = code
        self.reason = reason
    }
}

/// The result of processing records of one topic.
package struct IngestBatch: Sendable {
    package var topic: String
    /// The offset of the first record and the offset after the last, for each partition.
    package var offsets: [Int32: Range<Int64>]
    /// The accepted objects; at most one element for each class.
    package var accepted: [IngestRows]
    package var refused: [StoredRejectedObject]

    package init(topic: String, offsets: [Int32: Range<Int64>], accepted: [IngestRows], refused: [StoredRejectedObject] = []) {
        self.topic = topic
        self.offsets = offsets
        self.accepted = accepted
        self.refused = refused
    }
}
