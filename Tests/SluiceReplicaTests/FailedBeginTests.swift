import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import TestSupport
import Testing

/// Transactions that cannot begin.
@Suite struct FailedBeginTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `a transaction that cannot begin leaves the values of the file as they are`() async throws {
        let replica = try await Replica.make(folder)
        let identity = ReplicaIdentity(client: ClientID(rawValue: 9), secret: [1, 2])
        try await replica.setIdentity(identity)
        let other = try SQLiteLibrary(replica: folder.file)
        // The next transaction compares the schema with the classes, as another process has changed both the record and the schema.
        let before = try other.rows("SELECT kind FROM _sluice_property WHERE type = 'Todo' AND name = 'title'")
        let change = "UPDATE _sluice_property SET kind = ? WHERE type = 'Todo' AND name = 'title'"
        try other.run(change, [.string("other")])
        try other.run("CREATE TABLE other (a)")
        for _ in 0..<2 {
            do {
                try await replica.setIdentity(ReplicaIdentity(client: ClientID(rawValue: 10), secret: [3]))
                Issue.record("The transaction began.")
            } catch {
                #expect(error.code == .invalidSchemaChange)
            }
            #expect(try await replica.identity() == identity)
        }
        try other.run(change, [try #require(before.first?.first)])
        try await replica.observe(5)
        #expect(try await replica.identity() == identity)
    }
}
