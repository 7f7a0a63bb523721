import SluiceCore
import SluicePorts
import SluiceQuery
import Synchronization

@testable import SluicePipeline

/// One changeset of one change, by a user with a plan and a view, to the table of one class.
struct OneCommit {
    let type: ObjectType
    var plan: TypePlan
    /// The query of the view.
    var view = "TRUEPREDICATE"
    var rules: any Rules = OpenRules()
    /// The row of the object that is written; nil for none.
    var stored: Row?

    /// - Returns: The rejections, and the keys that were written.
    func callAsFunction(_ change: ObjectChange) async throws -> (rejected: [WriteRejection], written: [Value]) {
        try await self([change])
    }

    /// - Parameters:
    ///   - changes: Changes of one object.
    ///   - seen: The rows that the client has seen. The transaction 90 wrote the stored one.
    func callAsFunction(
        _ changes: [ObjectChange], seen: ClientViewHistory = ClientViewHistory()
    ) async throws -> (rejected: [WriteRejection], written: [Value]) {
        let stored = stored.flatMap { row in
            changes.first.map { [$0.object: StoredObject(row: row, clocks: nil, rowTime: 10, writer: 90)] }
        }
        let store = Table(stored: stored ?? [:])
        let schema = AppSchema(
            version: 1, schema: Schema([type]), fields: QueryableFields(global: Set(type.properties.map(\.name))), isDevelopment: false)
        let predicate = try Query.parse(view).predicate(on: type, in: schema.schema)
        let writer = Committer.Writer(
            client: ClientID(rawValue: 7), session: 1, user: UserContext(id: "ann"),
            permissions: SessionPermissions(SessionPlan(types: [type.name: plan]), schema: schema),
            view: View(version: 1, types: [TypeView(type: 0, predicate: predicate, mask: nil)], partitions: []), compensation: 0,
            seen: seen)
        let changeset = Changeset(number: 1, time: HybridTime(milliseconds: 1_000), base: LSN(rawValue: 50), changes: changes)
        let outcome = try await Committer(store: store, rules: rules, environment: SystemEnvironment()).commit(changeset, by: writer)
        return (outcome.rejected, store.written.withLock { $0 })
    }

    private final class Table: WriteStore {
        let written = Mutex<[Value]>([])
        private let stored: [ObjectKey: StoredObject]

        init(stored: [ObjectKey: StoredObject]) { self.stored = stored }

        func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome {
            let basis = WriteBasis(changeset: 0, now: LSN(rawValue: 100), horizon: .zero, rejected: [], stored: stored)
            let decision: WriteDecision
            switch decide {
            case .atOnce(let decide): decision = try decide(basis)
            case .waiting(let decide): decision = try await decide(basis)
            }
            written.withLock { $0 += decision.writes.map(\.key) }
            return WriteOutcome(lsn: basis.now, rejected: decision.rejected, compensation: nil)
        }
        func durable() async throws {}
    }
}
