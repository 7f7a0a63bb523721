package import SluiceCore
package import SluicePorts

/// Accepts asymmetric objects and acknowledges them once they are durable.
package protocol IngestIntake: Sendable {
    /// Accepts objects of one client message. Those not returned are durable when this returns.
    /// Rejects, one by one, objects that the session may not insert, that misfit their class, or that are too large for the log. The
    /// caller stores the rejected ones through `keep`.
    /// - Parameter sender: The source to record with a dead letter.
    func submit(_ objects: [ObjectChange], from sender: String, permissions: SessionPermissions) async throws -> [WriteRejection]
    /// Stores rejected objects of a client message. They are among the dead letters when this returns.
    func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws
    /// Accepts objects of one class as JSON texts, from HTTP.
    /// - Parameter rights: The sending user's rights; nil for an operator.
    /// - Returns: for each object its place in the log (nil without a log), or the reason of its rejection.
    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>]
}

/// The place of an accepted object in the ingest log `<app>.ingest.<Class>`.
package struct IngestPlace: Hashable, Sendable {
    package var partition: Int32
    package var offset: Int64
}

/// The intake with Kafka: appends to `<app>.ingest.<Class>`, one object a record, as extended JSON, with acks=all.
/// Any other producer can write to these topics too.
package final class LogIntake: IngestIntake {
    private let log: any MessageLog
    private let topics: Topics
    private let refusals: IngestRejections
    private let partitions: @Sendable (String) async throws -> Int32

    /// - Parameter partitions: Returns the number of partitions of a class's ingest topic.
    package init(
        log: any MessageLog, topics: Topics, refusals: IngestRejections, partitions: @escaping @Sendable (String) async throws -> Int32
    ) {
        self.log = log
        self.topics = topics
        self.refusals = refusals
        self.partitions = partitions
    }

    package func submit(
        _ objects: [ObjectChange], from sender: String, permissions: SessionPermissions
    ) async throws -> [WriteRejection] {
        let (accepted, refused) = IngestCheck.split(objects, permissions: permissions)
        let outcomes = try await append(accepted.map { Entry(type: $0.change.object.type, key: $0.change.object.key, json: $0.json) })
        let tooLarge = zip(accepted, outcomes).compactMap { accepted, outcome -> WriteRejection? in
            guard case .failure(let error) = outcome else { return nil }
            return WriteRejection(accepted.change, IngestRights.Rejection(error: error, rule: error.code.name))
        }
        return refused + tooLarge
    }

    package func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws {
        try await refusals.keep(refused, from: sender, schema: schema)
    }

    package func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] {
        let keys = IngestCheck.check(records, type: type, schema: schema, rights: rights)
        var accepted: [Entry] = []
        for (record, key) in zip(records, keys) {
            if case .success(let key) = key { accepted.append(Entry(type: type.name, key: key, json: record)) }
        }
        var places = try await append(accepted).makeIterator()
        // Only accepted records have places, in their order.
        return keys.map { key in key.flatMap { _ in places.next() ?? .success(nil) } }
    }

    private struct Entry {
        var type: String
        var key: Value
        var json: [UInt8]
    }

    /// Appends objects.
    /// - Returns: for each object its place, or an error if it is too large for the log.
    private func append(_ objects: [Entry]) async throws -> [Result<IngestPlace?, SluiceError>] {
        do {
            return try await place(objects).map { .success($0) }
        } catch let error as SluiceError where error.code == .logRecordTooLarge {
            guard objects.count > 1 else { return objects.map { .failure(Self.tooLarge($0)) } }
            // The log identifies neither the large object nor the stored ones. Retrying one by one may append some twice.
            var outcomes: [Result<IngestPlace?, SluiceError>] = []
            for object in objects { outcomes += try await append([object]) }
            return outcomes
        }
    }

    private static func tooLarge(_ object: Entry) -> SluiceError {
        SluiceError(
            .logRecordTooLarge, "An object of class \(object.type) has \(object.json.count) bytes, more than the server's log accepts.")
    }

    private func place(_ objects: [Entry]) async throws -> [IngestPlace] {
        guard !objects.isEmpty else { return [] }
        let types = Set(objects.map(\.type)).sorted()
        var counts: [Int32] = []
        for type in types { counts.append(try await partitions(type)) }
        var batch = LogBatch(topics: types.map(topics.ingest(of:)))
        for object in objects {
            let topic = types.firstIndex(of: object.type) ?? 0
            let text = PartitionKey.text(of: object.key)
            let partition = Partitioner.partition(of: text, partitions: counts[topic])
            batch.append(topic: topic, partition: partition, key: text, value: object.json)
        }
        let offsets = try await log.place(batch)
        return zip(batch.entries, offsets).map { IngestPlace(partition: $0.partition, offset: $1) }
    }
}

/// The intake without Kafka: writes straight into the tables and acknowledges after PostgreSQL's commit.
package final class DirectIntake: IngestIntake {
    private let store: any IngestStore
    private let decider: IngestDecider
    private let refusals: IngestRejections
    private let observer: any IngestObserver

    package init(
        store: any IngestStore, rules: any Rules, authority: any SchemaAuthority, refusals: IngestRejections, observer: any IngestObserver
    ) {
        self.store = store
        self.refusals = refusals
        self.observer = observer
        decider = IngestDecider(rules: rules, authority: authority)
    }

    package func submit(
        _ objects: [ObjectChange], from sender: String, permissions: SessionPermissions
    ) async throws -> [WriteRejection] {
        let (accepted, refused) = IngestCheck.split(objects, permissions: permissions)
        for (type, objects) in Dictionary(grouping: accepted, by: \.change.object.type) {
            try await write(objects.map(\.json), of: type, from: sender)
        }
        return refused
    }

    package func keep(_ refused: [WriteRejection], from sender: String, schema: Schema) async throws {
        try await refusals.keep(refused, from: sender, schema: schema)
    }

    package func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>] {
        let keys = IngestCheck.check(records, type: type, schema: schema, rights: rights)
        let accepted = zip(records, keys).compactMap { record, key in (try? key.get()).map { _ in record } }
        if !accepted.isEmpty { try await write(accepted, of: type.name) }
        return keys.map { $0.map { _ in nil } }
    }

    private func write(_ records: [[UInt8]], of type: String, from sender: String? = nil) async throws {
        for start in stride(from: 0, to: records.count, by: Limits.ingestBatchObjects) {
            let piece = Array(records[start..<min(start + Limits.ingestBatchObjects, records.count)])
            let decision = try await decider.decide(piece.map { IngestRecord(type: type, bytes: $0[...], sender: sender) }, of: type)
            var tally = try await store.commit(accepted: decision.accepted, refused: decision.refused)
            tally.dropped = decision.dropped
            observer.took(type, tally)
        }
    }
}
