import Foundation
import SluiceCore
import SluiceReplica
import TestSupport
import Testing

/// Logs of commits in which bits have changed, and logs that a crash has left incomplete.
@Suite struct LogDamageTests {
    private static let schema = OtherProcess.schema
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open(_ path: String) throws -> Replica { try Replica(path: path, schema: LogDamageTests.schema, isSynced: false) }

    private typealias Content = [Int64: Int64]

    private func content(_ replica: Replica) throws -> Content {
        var values: Content = [:]
        try replica.makeReader().store.scan(type: 0) { row in
            if case .int(let id)? = row.value(0), case .int(let value)? = row.value(1) { values[id] = value }
        }
        return values
    }

    /// Changes objects of all of the file.
    private func write(_ replica: Replica, _ number: Int64, objects: Int = 20) throws {
        try replica.write { transaction in
            for id in 0..<Int64(objects) {
                let text = String(repeating: "\(number) ", count: 1 + Int(number + id) % 200)
                try transaction.create(
                    type: 0, key: .int(id * 7 % 97), values: ["value": .int(number), "text": .string(text)])
            }
        }
    }

    /// The files as a crash now would leave them, for another path.
    private struct Crash {
        var database: Data
        var log: Data
        var mark: Data?

        init(of path: String) throws {
            func read(_ ending: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path + ending)) }
            (database, log, mark) = (try read(""), try read("-wal"), try? read("-wal.synced"))
        }

        func put(at path: String) throws {
            try database.write(to: URL(fileURLWithPath: path))
            try log.write(to: URL(fileURLWithPath: path + "-wal"))
            try mark?.write(to: URL(fileURLWithPath: path + "-wal.synced"))
        }
    }

    @Test(arguments: seeds(1)) func `a flipped bit in a log that a crash left is an error`(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let replica = try open(folder.file)
        for number in 1...20 { try write(replica, Int64(number)) }
        let (crash, expected) = (try Crash(of: folder.file), try content(replica))
        let whole = folder.path + "/whole"
        try crash.put(at: whole)
        #expect(try content(open(whole)) == expected)
        for round in 0..<rounds(60, soak: 120) {
            var damaged = crash
            // Every fourth where the headers are.
            let bit = random.below(round % 4 == 0 ? 56 * 8 : crash.log.count * 8)
            damaged.log[bit / 8] ^= 1 << (bit % 8)
            let path = folder.path + "/damaged\(round)"
            try damaged.put(at: path)
            let error = #expect(throws: SluiceError.self, "seed \(seed): bit \(bit)") { try content(open(path)) }
            #expect(error?.code == .replicaCorrupt && error?.message.contains(path + "-wal") == true, "seed \(seed): bit \(bit)")
            ReplicaFile.remove(path)
        }
    }

    @Test func `what is before the damage can be had without the mark`() throws {
        let replica = try open(folder.file)
        try write(replica, 1)
        let before = try Crash(of: folder.file)
        try write(replica, 2)
        var crash = try Crash(of: folder.file)
        crash.log[before.log.count + 2_000] ^= 4
        let path = folder.path + "/damaged"
        try crash.put(at: path)
        let error = #expect(throws: SluiceError.self) { try open(path) }
        #expect(error?.message.contains("byte \(before.log.count)") == true && error?.fix?.contains("\(path)-wal.synced") == true)
        try FileManager.default.removeItem(atPath: path + "-wal.synced")
        #expect(try Set(content(open(path)).values) == [1])
    }

    /// Of commits that nobody was told of a crash may leave anything: parts, in any order, or nothing.
    @Test(arguments: seeds(1)) func `a log that a crash left incomplete is opened as it was at a commit`(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let replica = try open(folder.file)
        for number in 1...5 { try write(replica, Int64(number)) }
        let told = try Crash(of: folder.file)
        var states = [try content(replica)]
        for number in 6...10 {
            try write(replica, Int64(number))
            states.append(try content(replica))
        }
        var later = try Crash(of: folder.file)
        #expect(later.database == told.database)
        later.mark = told.mark
        for round in 0..<rounds(50, soak: 100) {
            var torn = later
            torn.log = later.log.prefix(told.log.count + random.below(later.log.count - told.log.count + 1))
            for start in stride(from: told.log.count, to: torn.log.count, by: 512) where random.below(4) == 0 {
                let block = start..<min(start + 512, torn.log.count)
                torn.log.replaceSubrange(block, with: Data(repeating: UInt8(random.below(2) * 255), count: block.count))
            }
            let path = folder.path + "/torn\(round)"
            try torn.put(at: path)
            #expect(states.contains(try content(open(path))), "seed \(seed): round \(round)")
            ReplicaFile.remove(path)
        }
    }

    /// SQLite itself does not look again at a page of a log that it knows.
    @Test(arguments: seeds(1)) func `a bit that flips under an open file is an error when it is read, and stays out of the database`(
        _ seed: UInt64
    ) throws {
        var random = SplitMix64(seed: seed)
        var errors = 0
        for round in 0..<20 {
            let path = folder.path + "/open\(round)"
            var replica: Replica? = try open(path)
            for number in 1...3 { try write(replica.unsafelyUnwrapped, Int64(number)) }
            let expected = try content(replica.unsafelyUnwrapped)
            let size = try Data(contentsOf: URL(fileURLWithPath: path + "-wal")).count
            let bit = random.below(size * 8)
            try flip(bit, path + "-wal")
            for _ in 0..<2 {
                do {
                    #expect(try content(replica ?? open(path)) == expected, "seed \(seed): bit \(bit)")
                } catch let error as SluiceError {
                    errors += 1
                    #expect(error.code == .replicaCorrupt, "seed \(seed): bit \(bit): \(error)")
                }
                // The second time after closing, when SQLite has tried to carry the log over.
                replica = nil
            }
        }
        // What is left are pages that were written again later.
        #expect(errors >= 8, "seed \(seed): only \(errors) errors")
    }

    private func flip(_ bit: Int, _ path: String) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64(bit / 8))
        let byte = try #require(try file.read(upToCount: 1)?.first)
        try file.seek(toOffset: UInt64(bit / 8))
        try file.write(contentsOf: Data([byte ^ 1 << (bit % 8)]))
        try file.close()
    }

    /// SQLite writes such pages into the log before the commit, some of them again and again, and reads them from there.
    @Test(arguments: seeds(1)) func `transactions larger than the cache are read, undone and stored`(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let replica = try open(folder.file)
        var expected: Content = [:]
        for round in 0..<rounds(3, soak: 6) {
            var next = expected
            let transaction = try replica.beginWrite()
            for _ in 0..<1_200 {
                let (id, value) = (Int64(random.below(600)), Int64(random.below(1_000)))
                let text = String(repeating: "x", count: 100 + random.below(10_000))
                try transaction.create(type: 0, key: .int(id), values: ["value": .int(value), "text": .string(text)])
                next[id] = value
                let other = Int64(random.below(600))
                let row = try transaction.store.row(type: 0, key: .int(other))
                #expect(row?[1] == next[other].map { .int($0) }, "seed \(seed): round \(round)")
            }
            if random.below(3) == 0 {
                transaction.cancel()
            } else {
                try transaction.commit()
                expected = next
            }
            try replica.write { try $0.create(type: 0, key: .int(-1), values: ["value": .int(Int64(round))]) }
            expected[-1] = Int64(round)
            #expect(try content(replica) == expected, "seed \(seed): round \(round)")
            let path = folder.path + "/crash\(round)"
            try Crash(of: folder.file).put(at: path)
            #expect(try content(open(path)) == expected, "seed \(seed): after a crash in round \(round)")
            ReplicaFile.remove(path)
        }
    }

    @Test(.timeLimit(.minutes(1))) func `the mark goes with the log`() async throws {
        var replica: Replica? = try open(folder.file)
        try write(replica.unsafelyUnwrapped, 1)
        #expect(FileManager.default.fileExists(atPath: folder.file + "-wal.synced"))
        replica = nil
        // News of its own commit may keep it a moment longer.
        while FileManager.default.fileExists(atPath: folder.file + "-wal") { await Task.yield() }
        #expect(!FileManager.default.fileExists(atPath: folder.file + "-wal.synced"))
    }
}
