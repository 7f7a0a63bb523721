import SluiceCore
import SluicePorts
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

@Suite struct `A write that the rules amend` {
    private static let type = ObjectType(
        name: "Order",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "title", type: .string),
            Property(id: 3, name: "note", type: .string, isOptional: true), Property(id: 4, name: "store", type: .string, isOptional: true),
        ])

    /// - Returns: what was refused of the creation of an order with a title of so many bytes, and the keys that were written.
    private static func commit(title: Int, note: Int) async throws -> (rejected: [WriteRejection], written: [Value]) {
        let change = ObjectChange(
            object: ObjectKey(type: "Order", key: .string("k")), kind: .create,
            values: ["title": .string(String(repeating: "t", count: title)), "store": .string("north")])
        let plan = TypePlan(read: "TRUEPREDICATE", write: "TRUEPREDICATE", role: "clerk", checkWrite: true)
        return try await OneCommit(type: type, plan: plan, rules: Annotating(bytes: note))(change)
    }

    @Test func `is written up to the size that an object may have, and undone beyond`() async throws {
        let title = Limits.rowBytes - 1 << 20
        let fitting = try await Self.commit(title: title, note: 1 << 19)
        #expect(fitting.rejected.isEmpty && fitting.written == [.string("k")])
        let large = try await Self.commit(title: title, note: 1 << 20)
        #expect(large.written.isEmpty && large.rejected.map(\.cause) == [.database])
        let refusal = try #require(large.rejected.first)
        // The title is too large to be kept.
        #expect(refusal.code == .compensatingWrite && refusal.values == ["store": .string("north")])
        // What the rules set is no business of the user's.
        #expect(refusal.fields.isEmpty && !refusal.reason.contains("note"), "\(refusal.reason)")
        #expect(refusal.rule?.hasPrefix("check_write: ") == true && refusal.rule?.contains("9 MiB") == true)
    }
}
