import SluiceCore
import SluicePorts
import SluicePostgres

/// One object on its way into its table, in the order of its type's properties.
struct IngestRow: Sendable {
    var type: String
    var row: Row
    var record: IngestRecord
}

extension [IngestRow] {
    /// The same as the store takes them, one element for each type.
    fileprivate var flat: [AcceptedObjects] {
        Dictionary(grouping: self, by: \.type).sorted { $0.key < $1.key }.map { type, objects in
            var accepted = AcceptedObjects(ObjectType(name: type, properties: [], primaryKey: nil))
            accepted.rows = objects.map { accepted.buffer.append($0.row) }
            accepted.records = objects.map(\.record)
            return accepted
        }
    }
}

extension IngestOutcome {
    /// What records of one partition came to.
    init(topic: String, partition: Int32, offsets: Range<Int64>, accepted: [IngestRow], refused: [RejectedObject] = []) {
        var (accepted, refused) = (accepted, refused)
        for index in accepted.indices { accepted[index].record.partition = LogPartition(topic, partition) }
        for index in refused.indices { refused[index].record.partition = LogPartition(topic, partition) }
        self.init(topic: topic, offsets: [partition: offsets], accepted: accepted.flat, refused: refused)
    }
}

extension PostgresIngestStore {
    @discardableResult
    func insert(_ accepted: [IngestRow], refused: [RejectedObject] = []) async throws -> (written: Int, refused: Int) {
        try await insert(accepted.flat, refused: refused)
    }
}
