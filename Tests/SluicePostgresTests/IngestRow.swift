import SluiceCore
import SluicePostgres

/// One object on its way into its table, in the order of its type's properties.
struct IngestRow: Sendable {
    var type: String
    var row: Row
    var source: IngestSource
}

extension [IngestRow] {
    /// The same as the store takes them, one element for each type.
    fileprivate var flat: [IngestRows] {
        Dictionary(grouping: self, by: \.type).sorted { $0.key < $1.key }.map { type, objects in
            var buffer = RowBuffer()
            let rows = objects.map { buffer.append($0.row) }
            return IngestRows(type: type, buffer: buffer, rows: rows) { objects[$0].source }
        }
    }
}

extension IngestBatch {
    /// What records of one partition came to.
    init(topic: String, partition: Int32, offsets: Range<Int64>, accepted: [IngestRow], refused: [StoredRejectedObject] = []) {
        var (accepted, refused) = (accepted, refused)
        for index in accepted.indices { accepted[index].source.origin = "\(topic)/\(partition)" }
        for index in refused.indices { refused[index].source.origin = "\(topic)/\(partition)" }
        self.init(topic: topic, offsets: [partition: offsets], accepted: accepted.flat, refused: refused)
    }
}

extension PostgresIngestStore {
    @discardableResult
    func insert(_ accepted: [IngestRow], refused: [StoredRejectedObject] = []) async throws -> (written: Int, refused: Int) {
        try await insert(accepted.flat, refused: refused)
    }
}
