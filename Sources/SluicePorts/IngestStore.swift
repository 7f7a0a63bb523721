package import SluiceCore

/// One received object, as extended JSON.
package struct IngestRecord: Sendable {
    /// The class under which it was sent.
    package var type: String
    /// The object's bytes, often a slice of a larger piece read from the log.
    package var bytes: ArraySlice<UInt8>
    /// The partition that it was read from; nil if it did not pass a log.
    package var partition: LogPartition?
    /// The offset in its partition; nil if it did not pass a log.
    package var offset: Int64?
    /// The sending device; nil if the object passed a log.
    package var sender: String?
    /// The error that makes it unreadable, regardless of its class; nil if it may be readable.
    package var problem: SluiceError?

    package init(
        type: String, bytes: ArraySlice<UInt8>, partition: LogPartition? = nil, offset: Int64? = nil, sender: String? = nil,
        problem: SluiceError? = nil
    ) {
        self.type = type
        self.bytes = bytes
        self.partition = partition
        self.offset = offset
        self.sender = sender
        self.problem = problem
    }
}

/// Accepted objects of one class for its table.
package struct AcceptedObjects: Sendable {
    package var type: ObjectType
    /// The flat rows, with the class's properties in schema order.
    package var buffer = RowBuffer()
    package var rows: [RowRef] = []
    /// The record behind each row, kept in case PostgreSQL rejects the row.
    package var records: [IngestRecord] = []

    package init(_ type: ObjectType) { self.type = type }
}

/// An object that the rules or the schema rejected. It is stored with its reason and never lost.
package struct RejectedObject: Sendable {
    package var record: IngestRecord
    package var code: ErrorCode
    package var reason: String

    package init(record: IngestRecord, code: ErrorCode, reason: String) {
        self.record = record
        self.code = code
        self.reason = reason
    }
}

/// The decisions about a run of records of one topic.
package struct IngestOutcome: Sendable {
    package var topic: String
    /// For each partition, the offset of the first record and the offset after the last. The first must equal the stored offset.
    package var offsets: [Int32: Range<Int64>]
    /// The accepted objects, at most one element for each class.
    package var accepted: [AcceptedObjects]
    package var refused: [RejectedObject]

    package init(topic: String, offsets: [Int32: Range<Int64>], accepted: [AcceptedObjects], refused: [RejectedObject] = []) {
        self.topic = topic
        self.offsets = offsets
        self.accepted = accepted
        self.refused = refused
    }
}

/// The result of one ingest commit, as counts of objects.
package struct IngestTally: Hashable, Sendable {
    /// The number of rows new in their tables.
    package var written = 0
    /// The number of objects whose primary keys existed already.
    package var duplicates = 0
    /// The number of objects stored with a reason, rejected by the rules, the schema or PostgreSQL.
    package var refused = 0
    /// The number of objects dropped by the rules, by reason.
    package var dropped: [String: Int] = [:]

    package init(written: Int = 0, duplicates: Int = 0, refused: Int = 0, dropped: [String: Int] = [:]) {
        self.written = written
        self.duplicates = duplicates
        self.refused = refused
        self.dropped = dropped
    }
}

/// Receives ingest metrics.
package protocol IngestObserver: Sendable {
    /// Reports the result of one commit for a class.
    func took(_ type: String, _ tally: IngestTally)
    /// Reports how many records of a class's topic this gateway has yet to read, in its own partitions.
    func lags(_ type: String, records: Int64)
}

/// Stores ingested objects. Rows and log offsets commit in one transaction, so each record takes effect exactly once.
package protocol IngestStore: Sendable {
    /// Returns the next offset to read for each partition; 0 for a partition never read.
    func offsets(of partitions: [LogPartition]) async throws -> [LogPartition: Int64]
    /// Writes rows, rejected objects and offsets in one transaction.
    /// - Throws: `badMessageOrder` if a stored offset is not the outcome's, because another sink has moved it. Nothing is written then.
    func commit(_ outcome: IngestOutcome) async throws -> IngestTally
    /// Resets the stored offset to 0 after the log has been recreated and counts from there.
    /// - Throws: `badMessageOrder` when the stored offset is not `offset`.
    func rewind(_ partition: LogPartition, from offset: Int64) async throws
    /// Writes objects that passed no log and have no offset.
    func commit(accepted: [AcceptedObjects], refused: [RejectedObject]) async throws -> IngestTally
    /// Claims this gateway's share of a topic's partitions. All gateways that claim divide them among themselves.
    /// One caller a topic calls it repeatedly. A claim lasts until `release` or the loss of the connection.
    func claim(topic: String, partitions: Int32) async throws -> Set<Int32>
    /// Releases every claimed partition of a topic.
    func release(topic: String) async
}
