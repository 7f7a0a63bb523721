import Foundation
import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import SluiceValues
import Synchronization

/// A clock that tests set.
final class TestEnvironment: Environment {
    let now = Atomic<Int64>(1_000)

    func wallMilliseconds() -> Int64 { now.load(ordering: .relaxed) }
    func monotonicNanoseconds() -> UInt64 { UInt64(wallMilliseconds()) * 1_000_000 }
    func random() -> UInt64 { 4 }
    func sleep(nanoseconds: UInt64) async throws {}
}

/// A folder that goes away with its owner.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    var file: String { "\(path)/replica.sqlite" }
}

let todoType = ObjectType(
    name: "Todo",
    properties: [
        Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "title", type: .string),
        Property(id: 3, name: "priority", type: .int), Property(id: 4, name: "note", type: .string, isOptional: true),
        Property(id: 5, name: "tags", type: .string, collection: .list),
    ])

let readingType = ObjectType(
    name: "Reading", kind: .asymmetric,
    properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "celsius", type: .double)])

let testSchema = Schema([todoType, readingType])

func todo(_ id: Int, _ title: String, priority: Int = 0) -> Row {
    Row([.int(Int64(id)), .string(title), .int(Int64(priority)), .null, .list([])])
}

/// A batch of one transaction.
func batch(_ lsn: UInt64, put: [Row] = [], leave: [Int] = []) -> ReplicaBatch {
    var batch = ReplicaBatch()
    for row in put { batch.changes.append(ReplicaRowChange(type: 0, event: .updated, row: batch.rows.append(row))) }
    for id in leave { batch.changes.append(ReplicaRowChange(type: 0, event: .leftQuery, key: .int(Int64(id)))) }
    batch.commits = [ReplicaCommit(lsn: LSN(rawValue: lsn), changes: batch.changes.indices)]
    batch.lsn = LSN(rawValue: lsn)
    return batch
}

extension Replica {
    /// A new file with a complete subscription on Todo.
    static func make(
        _ folder: TemporaryFolder, schema: Schema = testSchema, subscribed: Bool = true, options: ReplicaOptions = ReplicaOptions()
    ) async throws -> Replica {
        let replica = try Replica(path: folder.file, schema: schema, options: options, environment: TestEnvironment())
        if subscribed, try replica.currentSubscriptionSet().version == 0 {
            let version = try replica.addSubscriptionSet([subscription("Todo", "TRUEPREDICATE")])
            try await replica.setSubscriptionState(version: version, .complete)
        }
        return replica
    }

    /// What apps see, by key.
    func titles() throws -> [Int64: String] {
        var titles: [Int64: String] = [:]
        try makeReader().store.scan(type: 0) { row in
            if case .int(let id)? = row.value(0), case .string(let title)? = row.value(1) { titles[id] = title }
        }
        return titles
    }

    func write(_ body: (WriteTransaction) throws -> Void) throws {
        let transaction = try beginWrite()
        try body(transaction)
        try transaction.commit()
    }

    func create(_ id: Int, _ title: String) throws {
        try write { try $0.create(type: 0, key: .int(Int64(id)), values: ["title": .string(title)]) }
    }

    func rename(_ id: Int, _ title: String) throws {
        try write { try $0.set(type: 0, key: .int(Int64(id)), property: 1, .string(title)) }
    }
}

func subscription(_ type: String, _ query: String, id: UInt64 = 1, name: String? = nil) -> StoredSubscription {
    StoredSubscription(
        id: id, name: name, type: type, query: query, created: Timestamp(seconds: 1), updated: Timestamp(seconds: 2))
}
