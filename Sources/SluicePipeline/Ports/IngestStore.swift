package import SluiceCore

/// An accepted object on its way into its table.
package struct AcceptedObject: Sendable {
    package var type: ObjectType
    package var row: Row

    package init(type: ObjectType, row: Row) {
        self.type = type
        self.row = row
    }
}

/// An object that the rules or the schema refused: kept, never lost.
package struct RefusedObject: Sendable {
    package var type: String
    package var code: ErrorCode
    package var reason: String
    /// The object as it came, as text.
    package var object: String

    package init(type: String, code: ErrorCode, reason: String, object: String) {
        self.type = type
        self.code = code
        self.reason = reason
        self.object = object
    }
}

/// What one run of records of one partition came to.
package struct IngestOutcome: Sendable {
    package var partition: LogPartition
    /// The offset of the first record, which must be the one stored.
    package var from: Int64
    /// The offset after the last record.
    package var to: Int64
    package var accepted: [AcceptedObject]
    package var refused: [RefusedObject]

    package init(partition: LogPartition, from: Int64, to: Int64, accepted: [AcceptedObject], refused: [RefusedObject]) {
        self.partition = partition
        self.from = from
        self.to = to
        self.accepted = accepted
        self.refused = refused
    }
}

/// Where asymmetric objects land: rows and log offsets in one transaction, which makes it once.
package protocol IngestStore: Sendable {
    /// Where to go on reading; 0 for a partition never read.
    func offsets(of partitions: [LogPartition]) async throws -> [LogPartition: Int64]
    /// Throws `badMessageOrder` when another sink has been here (the stored offset is not `from`): nothing is written.
    func commit(_ outcome: IngestOutcome) async throws
    /// Sets the stored offset to 0: the log has been made anew and counts from there.
    /// Throws `badMessageOrder` when the stored offset is not `offset`.
    func rewind(_ partition: LogPartition, from offset: Int64) async throws
    /// Writes objects that came by no log, and so have no offset.
    func commit(accepted: [AcceptedObject], refused: [RefusedObject]) async throws
    /// Tries to become the one sink of a topic; held until `release` or the loss of the connection.
    func acquire(topic: String) async throws -> Bool
    func release(topic: String) async
}
