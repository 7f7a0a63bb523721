import SluiceCore
import SluiceReplica
import TestSupport
import Testing

/// Files without the index of links, or with parts of it: the index is derived from the rows, and made again.
@Suite struct LinkIndexRepairTests {
    let folder: TemporaryFolder

    private static let schema = Schema([
        ObjectType(
            name: "Person",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "friends", type: .link(to: "Person"), collection: .list),
                Property(id: 3, name: "best", type: .link(to: "Person"), isOptional: true),
            ])
    ])

    init() throws { folder = try TemporaryFolder() }

    private func open(_ file: String? = nil, readOnly: Bool = false) throws -> Replica {
        try Replica(
            path: file ?? folder.file, schema: Self.schema, isSynced: false, options: ReplicaOptions(isReadOnly: readOnly),
            environment: TestEnvironment())
    }

    /// Changes the closed file.
    private func rewrite(_ sql: String...) throws {
        let library = try SQLiteLibrary(replica: folder.file)
        for statement in sql { try library.run(statement) }
    }

    /// The tables, indexes and triggers of a closed file that its links have to do with.
    private func parts(_ file: String) throws -> [[Value]] {
        let sql = "SELECT name || ': ' || coalesce(sql, '') FROM sqlite_master WHERE name LIKE '\\_sluice\\_%in%' ESCAPE '\\' ORDER BY 1"
        return try SQLiteLibrary(replica: file).rows(sql)
    }

    /// 1 is a friend of 2 and 3, and of 2 once more; 3 is the best of 1; 4 has nobody.
    private func fill() throws {
        try open().write { transaction in
            for id in 1...4 { try transaction.create(type: 0, key: .int(Int64(id)), values: [:]) }
            try transaction.set(type: 0, key: .int(1), property: 1, .list([.int(2), .int(3), .int(2)]))
            try transaction.set(type: 0, key: .int(1), property: 2, .int(3))
        }
    }

    /// Who has an object among the friends, and whose best it is.
    private func fans(_ replica: Replica, of id: Int64) throws -> [[Value]] {
        let store = try replica.makeReader().store
        return try [1, 2].map { try store.origins(of: .int(id), type: 0, property: $0) }
    }

    private func expectWhole() throws {
        do {
            let replica = try open()
            #expect(try fans(replica, of: 2) == [[.int(1), .int(1)], []] && fans(replica, of: 3) == [[.int(1)], [.int(1)]])
            try replica.write { transaction in
                try transaction.set(type: 0, key: .int(4), property: 1, .list([.int(2)]))
                try transaction.set(type: 0, key: .int(1), property: 1, .list([]))
            }
            #expect(try fans(replica, of: 2) == [[.int(4)], []] && fans(replica, of: 3) == [[], [.int(1)]])
        }
        // It has become what a new file is.
        let new = folder.path + "/new"
        _ = try open(new)
        #expect(try parts(folder.file) == parts(new))
    }

    private static let withoutIndex = [
        "DROP TRIGGER _sluice_link_insert_Person", "DROP TRIGGER _sluice_link_delete_Person", "DROP TRIGGER _sluice_link_update_Person",
        "DROP TABLE _sluice_inverse", "DROP TABLE _sluice_link", "DROP TABLE _sluice_link_dirty",
        "DROP INDEX \"_sluice_inverse_Person.best\"",
    ]

    @Test func `a file without the index of links gets one`() throws {
        try fill()
        for statement in Self.withoutIndex { try rewrite(statement) }
        try expectWhole()
    }

    @Test func `a file without the index of links is read without one`() throws {
        try fill()
        for statement in Self.withoutIndex { try rewrite(statement) }
        let replica = try open(readOnly: true)
        #expect(try fans(replica, of: 2) == [[.int(1), .int(1)], []] && fans(replica, of: 3) == [[.int(1)], [.int(1)]])
    }

    /// The triggers of this index note every row that comes or goes.
    @Test func `a file whose index has the inverse links only gets all of them, and notes what links only`() throws {
        try fill()
        func note(_ row: String) -> String {
            """
            BEGIN INSERT INTO _sluice_link_dirty SELECT 'Person', \(row)."_id"
            WHERE NOT EXISTS (SELECT 1 FROM _sluice_link_dirty WHERE type = 'Person' AND key = \(row)."_id"); END
            """
        }
        for statement in Self.withoutIndex.prefix(3) { try rewrite(statement) }
        try rewrite(
            "DROP INDEX \"_sluice_inverse_Person.best\"",
            "CREATE TRIGGER _sluice_link_insert_Person AFTER INSERT ON \"Person\" \(note("new"))",
            "CREATE TRIGGER _sluice_link_delete_Person AFTER DELETE ON \"Person\" \(note("old"))",
            "CREATE TRIGGER _sluice_link_update_Person AFTER UPDATE OF \"friends\" ON \"Person\" \(note("new"))")
        try expectWhole()
    }

    @Test func `a file whose links were never asked for backwards has them all`() throws {
        try fill()
        for statement in Self.withoutIndex.prefix(3) { try rewrite(statement) }
        try rewrite("DELETE FROM _sluice_inverse", "DELETE FROM _sluice_link", "DROP INDEX \"_sluice_inverse_Person.best\"")
        try expectWhole()
    }
}
