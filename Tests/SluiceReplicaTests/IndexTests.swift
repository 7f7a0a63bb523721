import SluiceCore
import SluiceQuery
import SluiceReplica
import Testing

@Suite struct IndexTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open(_ indexed: Set<String>) throws -> Replica {
        try Replica(path: folder.file, schema: testSchema, isSynced: false, indexes: ["Todo": indexed])
    }

    private func plan(_ replica: Replica, _ text: String) throws -> String {
        try ReplicaQuery(type: 0, in: replica.schema).narrowed(by: text).explanation(on: try replica.makeReader().store)
    }

    @Test func `a condition on an indexed property reads the index`() throws {
        let replica = try open(["title", "priority", "tags", "_id", "nothing"])
        #expect(try plan(replica, "title == 'a'").contains("INDEX _sluice_index_Todo.title (title=?)"))
        #expect(try plan(replica, "priority > 3 AND note != 'x'").contains("_sluice_index_Todo.priority (priority>?)"))
        #expect(try plan(replica, "title IN {'a', 'b'} AND priority == 1").contains("INDEX _sluice_index_Todo"))
        #expect(try plan(replica, "TRUEPREDICATE SORT(priority DESC) LIMIT(3)").contains("_sluice_index_Todo.priority"))
        #expect(try plan(replica, "_id == 3").contains("INTEGER PRIMARY KEY"))
        #expect(try plan(replica, "note == 'x'") == "SCAN t0")
    }

    @Test func `an index comes and goes with the schema`() throws {
        var replica = try open([])
        #expect(try plan(replica, "title == 'a'") == "SCAN t0")
        try replica.write { try $0.create(type: 0, key: .int(1), values: ["title": .string("a")]) }
        replica = try open(["title"])
        #expect(try plan(replica, "title == 'a'").contains("_sluice_index_Todo.title"))
        let query = try ReplicaQuery(type: 0, in: replica.schema).narrowed(by: "title == 'a'")
        #expect(try query.run(on: try replica.makeReader().store) == [.int(1)])
        replica = try open(["priority"])
        #expect(try plan(replica, "title == 'a'") == "SCAN t0")
    }
}
