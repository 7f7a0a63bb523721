import SluiceCore
import SluicePorts
import SluiceQuery
import Synchronization
import Testing

@testable import SluicePipeline

/// Rules that set the note of whatever is written to one of so many bytes.
private struct Annotating: Rules {
    let bytes: Int

    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan {
        try await OpenRules().openSession(user: user, types: types)
    }
    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] {
        try await OpenRules().checkSubscription(user: user, queries: queries)
    }
    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict] {
        writes.map { _ in .amend(["note": .string(String(repeating: "n", count: bytes))]) }
    }
    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]? { nil }
}

/// Tables with nothing in them, and what is written to them.
private final class WrittenKeys: WriteStore {
    let keys = Mutex<[Value]>([])

    func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome {
        let basis = WriteBasis(changeset: 0, now: LSN(rawValue: 100), horizon: .zero, rejected: [], stored: [:])
        let decision: WriteDecision
        switch decide {
        case .atOnce(let decide): decision = try decide(basis)
        case .waiting(let decide): decision = try await decide(basis)
        }
        keys.withLock { $0 += decision.writes.map(\.key) }
        return WriteOutcome(lsn: basis.now, rejected: decision.rejected, compensation: nil)
    }
    func durable() async throws {}
}

@Suite struct `A write that the rules amend` {
    private static let type = ObjectType(
        name: "Order",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "title", type: .string),
            Property(id: 3, name: "note", type: .string, isOptional: true),
        ])

    /// - Returns: what was refused of the creation of an order with a title of so many bytes, and the keys that were written.
    private static func commit(title: Int, note: Int) async throws -> (rejected: [WriteRejection], written: [Value]) {
        let store = WrittenKeys()
        let committer = Committer(store: store, rules: Annotating(bytes: note), environment: SystemEnvironment())
        let plan = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "clerk", checkWrite: true)
        let schema = AppSchema(version: 1, schema: Schema([type]), fields: QueryableFields(), isDevelopment: false)
        let writer = Committer.Writer(
            client: ClientID(rawValue: 7), session: 1, user: UserContext(id: "ann"),
            permissions: SessionPermissions(SessionPlan(types: ["Order": plan]), schema: schema),
            view: View(version: 1, types: [TypeView(type: 0, predicate: .true(type), mask: nil)], partitions: []), compensation: 0,
            seen: ClientViewHistory())
        let change = ObjectChange(
            object: ObjectKey(type: "Order", key: .string("k")), kind: .create,
            values: ["title": .string(String(repeating: "t", count: title))])
        let changeset = Changeset(number: 1, time: HybridTime(milliseconds: 1_000), base: LSN(rawValue: 50), changes: [change])
        let outcome = try await committer.commit(changeset, by: writer)
        return (outcome.rejected, store.keys.withLock { $0 })
    }

    @Test func `is written up to the size that an object may have, and undone beyond`() async throws {
        let title = Limits.rowBytes - 1 << 20
        let fitting = try await Self.commit(title: title, note: 1 << 19)
        #expect(fitting.rejected.isEmpty && fitting.written == [.string("k")])
        let large = try await Self.commit(title: title, note: 1 << 20)
        #expect(large.written.isEmpty && large.rejected.map(\.cause) == [.database])
        let refusal = try #require(large.rejected.first)
        #expect(refusal.code == .compensatingWrite && refusal.values.keys.sorted() == ["title"])
        // What the rules set is no business of the user's.
        #expect(refusal.fields.isEmpty && !refusal.reason.contains("note"), "\(refusal.reason)")
        #expect(refusal.rule?.hasPrefix("check_write: ") == true && refusal.rule?.contains("9 MiB") == true)
    }
}
