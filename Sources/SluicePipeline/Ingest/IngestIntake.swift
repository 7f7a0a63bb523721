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
