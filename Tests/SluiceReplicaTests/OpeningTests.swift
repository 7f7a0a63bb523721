import Foundation
import ReplicaTestSupport
import SluiceCore
import Synchronization
import Testing

@testable import SluiceReplica

/// Ways to open a file, and to copy it.
@Suite struct OpeningTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open(_ options: ReplicaOptions = ReplicaOptions(), schema: Schema = testSchema) throws -> Replica {
        try Replica(path: folder.file, schema: schema, isSynced: false, options: options)
    }

    @Test func `a temporary file is gone with its replica`() throws {
        do {
            let replica = try open(ReplicaOptions(isTemporary: true))
            try replica.create(1, "a")
            #expect(try replica.titles() == [1: "a"])
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func `no commit of a temporary file waits for the disk`() async throws {
        let replica = try await Replica.make(folder, options: ReplicaOptions(isTemporary: true))
        func mode() throws -> Int64 {
            try replica.readNow { parts throws(SluiceError) in
                let statement = try parts.database.connection.statement("PRAGMA synchronous")
                defer { statement.reset() }
                return try statement.step() ? statement.int(0) : -1
            }
        }
        #expect(try mode() == 0)
        // Durable in other files: an app's write, and the server's number for the file.
        try replica.create(1, "a")
        #expect(try mode() == 0)
        try await replica.setIdentity(ReplicaIdentity(client: ClientID(rawValue: 9), secret: [1]))
        #expect(try mode() == 0)
    }

    @Test func `a temporary file leaves alone what has taken its place`() throws {
        var first: Replica? = try open(ReplicaOptions(isTemporary: true))
        try first?.create(1, "a")
        // As an opening does with what a crash may have left.
        ReplicaFile.remove(folder.file)
        let second = try open(ReplicaOptions(isTemporary: true))
        try second.create(2, "b")
        first = nil
        #expect(try second.titles() == [2: "b"])
        try second.create(3, "c")
        #expect(try second.titles() == [2: "b", 3: "c"])
    }

    @Test func `a file opened for reading only shows what is there and refuses to write`() throws {
        try open().create(1, "a")
        let replica = try open(ReplicaOptions(isReadOnly: true))
        #expect(try replica.titles() == [1: "a"])
        let error = #expect(throws: SluiceError.self) { try replica.beginWrite() }
        #expect(error?.code == .writeNotAllowed)
        let wider = ObjectType(name: "Todo", properties: todoType.properties + [Property(id: 6, name: "done", type: .bool)])
        let mismatch = #expect(throws: SluiceError.self) {
            try open(ReplicaOptions(isReadOnly: true), schema: Schema([wider, readingType]))
        }
        #expect(mismatch?.code == .invalidSchemaChange)
    }

    @Test func `the words of SQLite about a file that it cannot open are the cause`() throws {
        let path = folder.path + "/missing/replica.sqlite"
        let thrown = #expect(throws: SluiceError.self) { try Replica(path: path, schema: testSchema, isSynced: false) }
        let error = try #require(thrown)
        #expect(error.code == .replicaCorrupt && error.message == "The local file \(path) cannot be opened.")
        guard case .sqlite(let code, let text)? = error.cause else {
            Issue.record("another cause: \(error)")
            return
        }
        #expect(code & 0xFF == 14 && !text.isEmpty && error.description.contains(text))
    }

    @Test func `a file that is not there cannot be opened for reading only`() throws {
        let error = #expect(throws: SluiceError.self) { try open(ReplicaOptions(isReadOnly: true)) }
        #expect(error?.code == .replicaCorrupt)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test func `compaction is asked for with the sizes and gives room back`() throws {
        do {
            let replica = try open()
            try replica.write { transaction in
                for id in 0..<2_000 {
                    try transaction.create(
                        type: 0, key: .int(Int64(id)), values: ["title": .string(String(repeating: "x", count: 500))])
                }
            }
            try replica.write { for id in 1..<2_000 { try $0.delete(type: 0, key: .int(Int64(id))) } }
        }
        let sizes = Mutex<[Int]>([])
        let replica = try open(
            ReplicaOptions { total, used in
                sizes.withLock { $0 = [total, used] }
                return used < total / 2
            })
        let (total, used) = sizes.withLock { ($0[0], $0[1]) }
        #expect(total > 1_000_000 && used < 300_000)
        let size = try FileManager.default.attributesOfItem(atPath: folder.file)[.size] as? Int
        #expect(try #require(size) < 300_000)
        #expect(try replica.titles().count == 1)
        // A new file has nothing to compact.
        let other = folder.path + "/other"
        _ = try Replica(path: other, schema: testSchema, isSynced: false, options: ReplicaOptions { _, _ in fatalError("asked") })
    }

    @Test func `a copy has what is committed and is written once`() async throws {
        let replica = try await Replica.make(folder)
        try await replica.setIdentity(ReplicaIdentity(client: ClientID(rawValue: 9), secret: [1]))
        try replica.create(1, "a")
        let target = folder.path + "/copy"
        try replica.writeCopy(to: target)
        try replica.create(2, "b")
        let copy = try Replica(path: target, schema: testSchema)
        #expect(try copy.titles() == [1: "a"])
        #expect(try await copy.identity() == nil)
        #expect(try await copy.pendingChangesets(after: 0, maximumBytes: 1 << 20).count == 1)
        #expect(throws: SluiceError.self) { try replica.writeCopy(to: target) }
    }
}
