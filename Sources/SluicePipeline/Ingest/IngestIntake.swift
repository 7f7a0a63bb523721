package import SluiceCore

/// Where asymmetric objects enter: acknowledged when they cannot be lost any more.
package protocol IngestIntake: Sendable {
    /// Takes objects of one client message. Those that the session may not insert, or that do not fit their type, are
    /// refused one by one (ING-9); the others are durable when this returns.
    func submit(_ objects: [ObjectChange], plan: SessionPlan, schema: AppSchema) async throws -> [RejectedWrite]
    /// Takes objects of one type as JSON, one per element, from HTTP.
    /// - Returns: for each element nil, or why it was refused.
    func submit(_ objects: [JSON], type: ObjectType) async throws -> [SluiceError?]
}

/// The way into Kafka: `<app>.ingest.<Type>`, one object per record, as extended JSON, so that any other producer can write
/// there too. Acknowledged with acks=all.
package final class LogIntake: IngestIntake {
    private let log: any MessageLog
    private let topics: Topics
    private let partitions: @Sendable (String) async throws -> Int32

    /// - Parameter partitions: the number of partitions of a type's ingest topic.
    package init(log: any MessageLog, topics: Topics, partitions: @escaping @Sendable (String) async throws -> Int32) {
        self.log = log
        self.topics = topics
        self.partitions = partitions
    }

    package func submit(_ objects: [ObjectChange], plan: SessionPlan, schema: AppSchema) async throws -> [RejectedWrite] {
        let (accepted, refused) = IngestCheck.split(objects, plan: plan, schema: schema)
        try await append(accepted.map { ($0.object.type, $0.object.key, ExtendedJSON.json(IngestCheck.document($0, schema.schema))) })
        return refused
    }

    package func submit(_ objects: [JSON], type: ObjectType) async throws -> [SluiceError?] {
        let results = objects.map { IngestCheck.check($0, type: type) }
        var accepted: [(String, Value, JSON)] = []
        for (object, result) in zip(objects, results) {
            if case .success(let key) = result { accepted.append((type.name, key, object)) }
        }
        try await append(accepted)
        return results.map { if case .failure(let error) = $0 { error } else { nil } }
    }

    private func append(_ objects: [(type: String, key: Value, json: JSON)]) async throws {
        guard !objects.isEmpty else { return }
        let types = Set(objects.map(\.type)).sorted()
        var batch = LogBatch(topics: types.map(topics.ingest(of:)))
        for (type, key, json) in objects {
            let text = PartitionKey.text(of: key)
            let partition = Partitioner.partition(of: text, partitions: try await partitions(type))
            batch.append(topic: types.firstIndex(of: type) ?? 0, partition: partition, key: text, value: json.text.utf8)
        }
        _ = try await log.append(batch)
    }
}

/// The way in without Kafka: straight into the tables, acknowledged when PostgreSQL has committed (LAYOUT section 6).
package final class DirectIntake: IngestIntake {
    private let store: any IngestStore
    private let decider: IngestDecider
    private let report: @Sendable (_ type: String, _ accepted: Int, _ refused: Int) -> Void

    package init(
        store: any IngestStore, rules: any Rules, authority: any SchemaAuthority,
        report: @escaping @Sendable (_ type: String, _ accepted: Int, _ refused: Int) -> Void
    ) {
        self.store = store
        self.report = report
        decider = IngestDecider(rules: rules, authority: authority)
    }

    package func submit(_ objects: [ObjectChange], plan: SessionPlan, schema: AppSchema) async throws -> [RejectedWrite] {
        let (accepted, refused) = IngestCheck.split(objects, plan: plan, schema: schema)
        for (type, objects) in Dictionary(grouping: accepted, by: \.object.type) {
            try await write(objects.map { ExtendedJSON.json(IngestCheck.document($0, schema.schema)).utf8 }, of: type)
        }
        return refused
    }

    package func submit(_ objects: [JSON], type: ObjectType) async throws -> [SluiceError?] {
        let results = objects.map { IngestCheck.check($0, type: type) }
        let accepted = zip(objects, results).compactMap { object, result in (try? result.get()).map { _ in object.utf8 } }
        if !accepted.isEmpty { try await write(accepted, of: type.name) }
        return results.map { if case .failure(let error) = $0 { error } else { nil } }
    }

    private func write(_ records: [[UInt8]], of type: String) async throws {
        for start in stride(from: 0, to: records.count, by: Limits.ingestBatchObjects) {
            let piece = Array(records[start..<min(start + Limits.ingestBatchObjects, records.count)])
            let outcome = try await decider.decide(piece, of: type)
            try await store.commit(accepted: outcome.accepted, refused: outcome.refused)
            report(type, outcome.accepted.count, outcome.refused.count)
        }
    }
}
