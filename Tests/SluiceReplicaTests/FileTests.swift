import Foundation
import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import SluiceValues
import TestSupport
import Testing

@Suite struct FileTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `everything is still there after reopening`() async throws {
        do {
            let replica = try await Replica.make(folder)
            try await replica.setIdentity(ReplicaIdentity(client: ClientID(rawValue: 9), secret: [1, 2]))
            try await replica.apply(batch(10, put: [todo(1, "server")]))
            try replica.rename(1, "mine")
            try await replica.beginBootstrap(version: 1)
        }
        let replica = try await Replica.make(folder)
        #expect(try replica.titles() == [1: "mine"])
        #expect(try await replica.identity() == ReplicaIdentity(client: ClientID(rawValue: 9), secret: [1, 2]))
        #expect(try await replica.appliedPosition().lsn == LSN(rawValue: 10))
        #expect(try await replica.pendingChangesets(after: 0, maximumBytes: 1 << 20).count == 1)
        try replica.create(2, "more")
        #expect(try await replica.pendingChangesets(after: 1, maximumBytes: 1 << 20).map(\.number) == [2])
        try await replica.acknowledgeUpload(upTo: 1, lsn: LSN(rawValue: 10))
        #expect(try replica.titles() == [1: "server", 2: "more"])
    }

    @Test func `a file of a newer release is refused`() async throws {
        _ = try await Replica.make(folder)
        // The stored form of the integer 99.
        let newer: [UInt8] = [3, 99, 0, 0, 0, 0, 0, 0, 0]
        try SQLiteLibrary(replica: folder.file).run("UPDATE _sluice_meta SET value = ? WHERE name = 'format'", [.binary(newer)])
        let error = #expect(throws: SluiceError.self) { try Replica(path: folder.file, schema: testSchema) }
        #expect(error?.code == .replicaVersion)
    }

    @Test func `a file that is no database is refused by name`() async throws {
        try "not a database, only text that is long enough to be read as a header".write(
            toFile: folder.file, atomically: true, encoding: .utf8)
        let error = #expect(throws: SluiceError.self) { try Replica(path: folder.file, schema: testSchema) }
        #expect(error?.code == .replicaCorrupt)
    }

    @Test func `a file of RealmSwift is named as one, and kept`() throws {
        // The header: the positions of two top arrays, the mark, and the version of the format.
        var bytes = [UInt8](repeating: 0, count: 4_096)
        bytes.replaceSubrange(0..<24, with: [0x40, 2, 0, 0, 0, 0, 0, 0, 0x18, 1, 0, 0, 0, 0, 0, 0] + Array("T-DB".utf8) + [24, 24, 0, 0])
        let file = Data(bytes)
        try file.write(to: URL(fileURLWithPath: folder.file))
        let error = #expect(throws: SluiceError.self) { try Replica(path: folder.file, schema: testSchema) }
        #expect(error?.code == .replicaCorrupt)
        #expect(error?.message.contains("\(folder.file) is a file of RealmSwift") == true, "\(error as Any)")
        #expect(error?.fix?.contains("keep this file") == true)
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file)) == file)
    }

    @Test func `a new property gets its column and asks for the data again`() async throws {
        do {
            let replica = try await Replica.make(folder)
            try await replica.beginBootstrap(version: 1)
            try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 5), types: [0])
            try await replica.apply(batch(10, put: [todo(1, "kept")]))
        }
        let wider = ObjectType(
            name: "Todo", properties: todoType.properties + [Property(id: 6, name: "done", type: .bool)])
        let replica = try await Replica.make(folder, schema: Schema([wider, readingType]))
        #expect(try replica.titles() == [1: "kept"])
        #expect(try await replica.appliedPosition() == AppliedPosition(lsn: .zero, version: 0))
    }

    @Test func `every kind of value comes back as it was stored`() async throws {
        let kinds: [(PropertyType, [Value])] = [
            (.bool, [.bool(true), .bool(false)]), (.int, [.int(.min), .int(.max), .int(0)]),
            (.float, [.float(1.5), .float(-0.0), .float(.nan), .float(.infinity)]),
            (.double, [.double(0.1), .double(-0.0), .double(.nan), .double(-.infinity), .double(3)]),
            (.decimal, [.decimal(Decimal128(high: 0x3040_0000_0000_0000, low: 12))]),
            (.string, [.string(""), .string("é\u{0}x"), .string("日本")]), (.binary, [.binary([]), .binary([0, 255])]),
            (.timestamp, [.timestamp(Timestamp(seconds: -5, nanoseconds: -7)), .timestamp(Timestamp(seconds: .max))]),
            (.objectId, [.objectId(ObjectIdentifierBytes(high: .max, low: 3))]),
            (.uuid, [.uuid(UUIDBytes(high: 1, low: .max))]),
            (.mixed, [.int(3), .string("3"), .link(type: "Todo", key: .int(1)), .dictionary(["a": .list([.null])])]),
        ]
        var properties = [Property(id: 1, name: "_id", type: .int)]
        for (index, kind) in kinds.enumerated() {
            properties.append(Property(id: UInt32(index + 2), name: "p\(index)", type: kind.0, isOptional: true))
        }
        properties.append(Property(id: 90, name: "list", type: .double, collection: .list))
        let type = ObjectType(name: "Every", properties: properties)
        let replica = try Replica(path: folder.file, schema: Schema([type]))
        for round in 0..<5 {
            var values: [Value?] = [.int(Int64(round))]
            for kind in kinds { values.append(round < kind.1.count ? kind.1[round] : .null) }
            values.append(.list([.double(.nan), .double(Double(round))]))
            var batch = ReplicaBatch()
            batch.changes = [ReplicaRowChange(type: 0, event: .entered, row: batch.rows.append(Row(values)))]
            batch.lsn = LSN(rawValue: UInt64(round + 1))
            batch.commits = [ReplicaCommit(lsn: batch.lsn, changes: 0..<1)]
            try await replica.apply(batch)
            let stored = try replica.makeReader().store.row(type: 0, key: .int(Int64(round)))
            #expect(stored == Row(values))
        }
    }

    @Test func `a reader keeps its view until it is refreshed`() async throws {
        let replica = try await Replica.make(folder)
        try replica.create(1, "first")
        let reader = try replica.makeReader()
        try replica.create(2, "second")
        #expect(try reader.store.count(type: 0) == 1)
        #expect(try reader.refresh())
        #expect(try reader.store.count(type: 0) == 2)
        #expect(try !reader.refresh())
    }
}
