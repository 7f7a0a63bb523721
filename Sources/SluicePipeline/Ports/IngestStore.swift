package import SluiceCore

/// One object as it came, as extended JSON.
package struct IngestRecord: Sendable {
    /// The type that it was sent as.
    package var type: String
    /// Often a piece of what was read from the log at once.
    package var bytes: ArraySlice<UInt8>
    /// Where it came from; nil when it came by no log.
    package var partition: LogPartition?
    /// Its place in its partition; nil when it came by no log.
    package var offset: Int64?
    /// The device that it came from, when it came by no log.
    package var sender: String?
    /// Why it cannot be read, whatever its type; nil when it may be.
    package var problem: SluiceError?
}

/// Accepted objects of one type on their way into its table.
package struct AcceptedObjects: Sendable {
    package var type: ObjectType
    /// Flat rows in the order of the type's properties.
    package var buffer = RowBuffer()
    package var rows: [RowRef] = []
    /// What each row came from, for the case that PostgreSQL refuses it.
    package var records: [IngestRecord] = []

    package init(_ type: ObjectType) { self.type = type }
}

/// An object that the rules or the schema refused: kept, never lost.
package struct RefusedObject: Sendable {
    package var record: IngestRecord
    package var code: ErrorCode
    package var reason: String
}

/// What records of one topic came to.
package struct IngestOutcome: Sendable {
    package var topic: String
    /// Of each partition the offset of the first record, which must be the one stored, and the offset after the last.
    package var offsets: [Int32: Range<Int64>]
    /// At most one element for each type.
    package var accepted: [AcceptedObjects]
    package var refused: [RefusedObject]
}

/// What became of objects that were taken in.
package struct IngestTally: Hashable, Sendable {
    /// Rows that are new in their tables.
    package var written = 0
    /// Objects whose primary keys were there already.
    package var duplicates = 0
    /// Objects that are kept with a reason, by the rules', the schema's or PostgreSQL's decision.
    package var refused = 0
    /// How many objects the rules let go for which reason.
    package var dropped: [String: Int] = [:]

    package init(written: Int = 0, duplicates: Int = 0, refused: Int = 0, dropped: [String: Int] = [:]) {
        self.written = written
        self.duplicates = duplicates
        self.refused = refused
        self.dropped = dropped
    }
}

/// Who hears what becomes of asymmetric objects.
package protocol IngestObserver: Sendable {
    func took(_ type: String, _ tally: IngestTally)
    /// How many records of a type's topic this gateway has still to read, in the partitions that it has.
    func lags(_ type: String, records: Int64)
}

/// Where asymmetric objects land: rows and log offsets in one transaction, which makes it once.
package protocol IngestStore: Sendable {
    /// Where to go on reading; 0 for a partition never read.
    func offsets(of partitions: [LogPartition]) async throws -> [LogPartition: Int64]
    /// Throws `badMessageOrder` when another sink has been here (a stored offset is not the outcome's): nothing is written.
    func commit(_ outcome: IngestOutcome) async throws -> IngestTally
    /// Sets the stored offset to 0: the log has been made anew and counts from there.
    /// Throws `badMessageOrder` when the stored offset is not `offset`.
    func rewind(_ partition: LogPartition, from offset: Int64) async throws
    /// Writes objects that came by no log, and so have no offset.
    func commit(accepted: [AcceptedObjects], refused: [RefusedObject]) async throws -> IngestTally
    /// Says which partitions of a topic are this gateway's to read now: its share, as all gateways that ask share them. For one
    /// caller a topic, who asks again and again. Held until `release` or the loss of the connection.
    func claim(topic: String, partitions: Int32) async throws -> Set<Int32>
    func release(topic: String) async
}
