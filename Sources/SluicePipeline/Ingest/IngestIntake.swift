package import SluiceCore

/// Where asymmetric objects enter: acknowledged when they cannot be lost any more.
package protocol IngestIntake: Sendable {
    /// Takes objects of one client message: they are durable when this returns, save for those that it returns. It refuses one by one
    /// (ING-9) those that the session may not insert, that do not fit their type, or that are larger than the log takes; the caller has
    /// them kept.
    /// - Parameter sender: as the dead letters name where an object came from.
    func submit(_ objects: [ObjectChange], from sender: String, plan: SessionPlan, schema: AppSchema) async throws -> [RejectedWrite]
    /// Keeps refused objects of a client message: they are with the dead letters when this returns.
    func keep(_ refused: [RejectedWrite], from sender: String, schema: Schema) async throws
    /// Takes objects of one type as JSON texts, from HTTP.
    /// - Parameter rights: of the user who sends them; nil when an operator does.
    /// - Returns: for each one where it is in the log (nil without one), or why it was refused.
    func submit(
        _ records: [[UInt8]], type: ObjectType, schema: Schema, rights: IngestRights?
    ) async throws -> [Result<IngestPlace?, SluiceError>]
}

/// Where an accepted object is: in `<app>.ingest.<Type>`.
package struct IngestPlace: Hashable, Sendable {
    package var partition: Int32
    package var offset: Int64
}

/// The way into Kafka: `<app>.ingest.<Type>`, one object per record, as extended JSON, so that any other producer can write
/// there too. Acknowledged with acks=all.
package final class LogIntake: IngestIntake {
    private let log: any MessageLog
    private let topics: Topics
    private let refusals: IngestRefusals
    private let partitions: @Sendable (String) async throws -> Int32

    /// - Parameter partitions: the number of partitions of a type's ingest topic.
    package init(
        log: any MessageLog, topics: Topics, refusals: IngestRefusals, partitions: @escaping @Sendable (String) async throws -> Int32
    ) {
        self.log = log
        self.topics = topics
        self.refusals = refusals
        self.partitions = partitions
    }

    package func submit(
        _ objects: [ObjectChange], from sender: String, plan: SessionPlan, schema: AppSchema
    ) async throws -> [RejectedWrite] {
        let (accepted, refused) = IngestCheck.split(objects, plan: plan, schema: schema)
        let outcomes = try await append(accepted.map { Entry(type: $0.change.object.type, key: $0.change.object.key, json: $0.json) })
        let tooLarge = zip(accepted, outcomes).compactMap { accepted, outcome -> RejectedWrite? in
            guard case .failure(let error) = outcome else { return nil }
            return RejectedWrite(accepted.change, IngestRights.Refusal(error: error, rule: error.code.name))
        }
        return refused + tooLarge
    }

    package func keep(_ refused: [RejectedWrite], from sender: String, schema: Schema) async throws {
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
        return keys.map { key in key.flatMap { _ in places.next() ?? .success(nil) } }
    }

    private struct Entry {
        var type: String
        var key: Value
        var json: [UInt8]
    }

    /// - Returns: of each object where it is, or that it is larger than the log takes.
    private func append(_ objects: [Entry]) async throws -> [Result<IngestPlace?, SluiceError>] {
        do {
            return try await place(objects).map { .success($0) }
        } catch let error as SluiceError where error.code == .logRecordTooLarge {
            guard objects.count > 1 else { return objects.map { .failure(Self.tooLarge($0)) } }
            // The log does not say which one it is, nor which of the others it has. So it may get these twice, once.
            var outcomes: [Result<IngestPlace?, SluiceError>] = []
            for object in objects { outcomes += try await append([object]) }
            return outcomes
        }
    }

    private static func tooLarge(_ object: Entry) -> SluiceError {
        SluiceError(
            .logRecordTooLarge, "An object of class \(object.type) has \(object.json.count) bytes, more than the server's log takes.")
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

/// The way in without Kafka: straight into the tables, acknowledged when PostgreSQL has committed (LAYOUT section 6).
package final class DirectIntake: IngestIntake {
    private let store: any IngestStore
    private let decider: IngestDecider
    private let refusals: IngestRefusals
    private let observer: any IngestObserver

    package init(
        store: any IngestStore, rules: any Rules, authority: any SchemaAuthority, refusals: IngestRefusals, observer: any IngestObserver
    ) {
        self.store = store
        self.refusals = refusals
        self.observer = observer
        decider = IngestDecider(rules: rules, authority: authority)
    }

    package func submit(
        _ objects: [ObjectChange], from sender: String, plan: SessionPlan, schema: AppSchema
    ) async throws -> [RejectedWrite] {
        let (accepted, refused) = IngestCheck.split(objects, plan: plan, schema: schema)
        for (type, objects) in Dictionary(grouping: accepted, by: \.change.object.type) {
            try await write(objects.map(\.json), of: type, from: sender)
        }
        return refused
    }

    package func keep(_ refused: [RejectedWrite], from sender: String, schema: Schema) async throws {
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
