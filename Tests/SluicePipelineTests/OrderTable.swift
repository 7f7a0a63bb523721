import SluiceCore
import SluicePorts
import SluiceQuery
import Synchronization

@testable import SluicePipeline

/// Orders by key and size, of which whoever reads gets what PostgreSQL would give, as if they knew nothing.
final class OrderTable: SnapshotStore {
    private let orders = Mutex<[String: Int64]>([:])

    func insert(_ key: String, size: Int64) { orders.withLock { $0[key] = size } }

    func read(_ queries: [SnapshotQuery], into sink: some SnapshotSink) async throws -> SnapshotStart? {
        let start = SnapshotStart(snapshot: TransactionSnapshot(xmin: 100, xmax: 111, running: []), lsn: .zero, cluster: "c")
        guard try await sink.begin(start) else { return nil }
        if sink.needsEstimate { try await sink.expect(0) }
        let all = orders.withLock { $0.sorted { $0.key < $1.key } }
        for (number, query) in queries.enumerated() {
            var buffer = RowBuffer()
            var (found, gone): ([RowRef], [Value]) = ([], [])
            for (key, size) in all {
                let row = buffer.append(Row([.string(key), .int(size)]))
                if buffer.withView(row, { query.predicate.matches($0) }) {
                    found.append(row)
                } else if let lost = query.lost, buffer.withView(row, { lost.predicate.matches($0) }) {
                    gone.append(.string(key))
                }
            }
            let first = Array(found.prefix(query.first?.limit ?? found.count))
            try await sink.take(first, of: buffer, query: number, isInOrder: false)
            if !gone.isEmpty { try await sink.take(lost: gone, query: number) }
        }
        return start
    }

    func stored(_ type: ObjectType, keys: [Value]) async throws -> (objects: [Value: StoredObject], start: SnapshotStart) {
        let all = orders.withLock(\.self)
        let found = keys.compactMap { key -> (Value, StoredObject)? in
            guard case .string(let text) = key, let size = all[text] else { return nil }
            return (key, StoredObject(row: Row([key, .int(size)]), clocks: nil, rowTime: 0))
        }
        let start = SnapshotStart(snapshot: TransactionSnapshot(xmin: 1, xmax: 1, running: []), lsn: .zero, cluster: "c")
        return (Dictionary(uniqueKeysWithValues: found), start)
    }
    func hasSeen(_ witness: HistoryAnchor) async throws -> Bool { true }
    func currentLSN() async throws -> LSN { .zero }
    func place() async throws -> (lsn: LSN, point: SnapshotPoint) { (.zero, SnapshotPoint(cluster: "c", transaction: 100)) }
    func source(of type: ObjectType) throws -> String { "" }
}
