import Foundation
import SluiceCore
import SluiceQuery
import SluiceReplica
import TestSupport
import Testing

/// Files in which bits have changed.
@Suite struct DamageTests {
    private static let type = ObjectType(
        name: "Todo", properties: todoType.properties + [Property(id: 6, name: "blob", type: .binary)])
    private static let schema = Schema([type])

    private static func content(_ replica: Replica) throws -> [Row] {
        var rows: [Row] = []
        let store = try replica.makeReader().store
        try store.scan(type: 0) { rows.append(Row($0)) }
        // By the index too.
        let query = try ReplicaQuery(type: 0, in: schema).narrowed(by: "title BEGINSWITH 'a' SORT(title ASC)")
        rows.append(Row(try query.run(on: store)))
        return rows
    }

    private static func open(_ path: String) throws -> Replica {
        try Replica(path: path, schema: schema, isSynced: false, indexes: ["Todo": ["title"]])
    }

    private static func makeFile(_ path: String) throws -> [Row] {
        let replica = try open(path)
        for round in 0..<3 {
            try replica.write { transaction in
                for id in 0..<150 {
                    // Some fill pages of their own.
                    let size = id % 20 == 0 ? 9_000 : 40
                    try transaction.create(
                        type: 0, key: .int(Int64(id * 3 + round)),
                        values: [
                            "title": .string("\(["a", "b", "c"][id % 3])\(id)"), "priority": .int(Int64(id)),
                            "tags": .list([.string("x"), .string("\(id)")]), "blob": .binary([UInt8](repeating: UInt8(id), count: size)),
                        ])
                }
            }
        }
        try replica.write { for id in 200..<240 { try $0.delete(type: 0, key: .int(Int64(id))) } }
        return try content(replica)
    }

    @Test(arguments: seeds(1)) func `a flipped bit is an error or changes nothing`(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let folder = try TemporaryFolder()
        let expected = try DamageTests.makeFile(folder.file)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file))
        #expect(bytes[20] == 8)
        var errors = 0
        for round in 0..<150 {
            var damaged = bytes
            // Every third where the header is.
            let bit = random.below(round % 3 == 0 ? 800 : bytes.count * 8)
            damaged[bit / 8] ^= 1 << (bit % 8)
            let path = folder.path + "/damaged\(round)"
            try damaged.write(to: URL(fileURLWithPath: path))
            do {
                #expect(try DamageTests.content(try DamageTests.open(path)) == expected, "seed \(seed): bit \(bit)")
            } catch let error as SluiceError {
                errors += 1
                #expect(error.code == .replicaCorrupt || error.code == .replicaVersion, "seed \(seed): bit \(bit): \(error)")
                #expect(error.description.contains(path) || error.code == .replicaVersion, "seed \(seed): bit \(bit): \(error)")
            }
            ReplicaFile.remove(path)
        }
        // What is left are pages that are not in use.
        #expect(errors > 100, "seed \(seed): only \(errors) errors")
    }

    @Test func `a file that lost its end, or got another's page, is an error`() throws {
        let folder = try TemporaryFolder()
        _ = try DamageTests.makeFile(folder.file)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file))
        let short = folder.path + "/short"
        try bytes.prefix(bytes.count / 2 / 4_096 * 4_096 + 100).write(to: URL(fileURLWithPath: short))
        #expect(throws: SluiceError.self) { try DamageTests.content(try DamageTests.open(short)) }
        let swapped = folder.path + "/swapped"
        var pages = bytes
        // Two pages of the same table change places: each is whole in itself.
        let (first, second) = (bytes.count / 4_096 - 4, bytes.count / 4_096 - 3)
        let (a, b) = (first * 4_096..<first * 4_096 + 4_096, second * 4_096..<second * 4_096 + 4_096)
        pages.replaceSubrange(a, with: bytes[b])
        pages.replaceSubrange(b, with: bytes[a])
        try pages.write(to: URL(fileURLWithPath: swapped))
        #expect(throws: SluiceError.self) { try DamageTests.content(try DamageTests.open(swapped)) }
    }

    @Test func `a file of SQLite's that is not of this SDK is refused`() throws {
        let folder = try TemporaryFolder()
        _ = try DamageTests.makeFile(folder.file)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file))
        bytes[20] = 0
        try bytes.write(to: URL(fileURLWithPath: folder.file))
        let error = #expect(throws: SluiceError.self) { try DamageTests.open(folder.file) }
        #expect(error?.code == .replicaCorrupt && error?.message.contains("\(folder.file) is a database without page checksums") == true)
        #expect(error?.fix?.contains("Move it away") == true)
    }
}
