import Foundation
import SluiceCore
import SluiceReplica
import Synchronization
import TestSupport
import Testing

/// Files that several processes have open, and processes that die.
@Suite(.serialized) struct ProcessTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Replica { try Replica(path: folder.file, schema: OtherProcess.schema, isSynced: false) }

    @Test(.timeLimit(.minutes(1))) func `another process sees commits and its own are seen`() async throws {
        let replica = try open()
        let (news, continuation) = AsyncStream<ReplicaChange>.makeStream(bufferingPolicy: .bufferingNewest(100))
        let observer = replica.observeChanges { continuation.yield($0) }
        defer { replica.removeObserver(observer) }
        let other = try OtherProcess("answer", folder.file)
        #expect(other.line() == "ready")
        var changes = news.makeAsyncIterator()
        let reader = try replica.makeReader()
        for id in 1...5 {
            try replica.write { try $0.create(type: 0, key: .int(Int64(id)), values: [:]) }
            var seen: Set<Value> = []
            while !seen.contains(.int(Int64(1_000 + id))), let change = await changes.next() {
                #expect(change.types[0]?.isWhole == false)
                seen.formUnion(change.types[0]?.keys ?? [])
                try reader.refresh()
                #expect(reader.version >= change.version)
            }
            #expect(try reader.store.row(type: 0, key: .int(Int64(1_000 + id)))?[1] == .int(Int64(id)))
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a file is open elsewhere until the process ends that has it open`() throws {
        #expect(!ReplicaFile.isOpenElsewhere(folder.file))
        let other = try OtherProcess("answer", folder.file)
        #expect(other.line() == "ready" && ReplicaFile.isOpenElsewhere(folder.file))
        other.kill()
        _ = other.wait()
        #expect(!ReplicaFile.isOpenElsewhere(folder.file) && ReplicaFile.remove(folder.file))
    }

    @Test(.timeLimit(.minutes(1))) func `where nothing can be watched, others' commits are seen with the next own one`() async throws {
        // What processes tell each other by is a file of this name; a folder cannot be written.
        try FileManager.default.createDirectory(atPath: folder.file + ".note", withIntermediateDirectories: false)
        let replica = try open()
        let (news, continuation) = AsyncStream<ReplicaChange>.makeStream(bufferingPolicy: .bufferingNewest(100))
        let observer = replica.observeChanges { continuation.yield($0) }
        defer { replica.removeObserver(observer) }
        #expect(try OtherProcess("count", folder.file, "5").wait() == 0)
        try replica.write { try $0.create(type: 0, key: .int(2), values: [:]) }
        var seen: Set<Value> = []
        for await change in news {
            seen.formUnion(change.types[0]?.keys ?? [])
            if seen.isSuperset(of: [.int(1), .int(2)]) || change.types[0]?.isWhole == true { break }
        }
        #expect(try replica.makeReader().store.row(type: 0, key: .int(1))?[1] == .int(5))
    }

    @Test(.timeLimit(.minutes(1))) func `processes write one at a time`() async throws {
        let replica = try open()
        let others = try (0..<2).map { _ in try OtherProcess("count", folder.file, "150") }
        for _ in 0..<150 {
            try replica.write { transaction in
                let row = try transaction.store.row(type: 0, key: .int(1))
                let value: Int64 = if case .int(let last)? = row?[1] { last } else { 0 }
                try transaction.create(type: 0, key: .int(1), values: ["value": .int(value + 1)])
            }
        }
        for other in others { #expect(other.wait() == 0) }
        let reader = try replica.makeReader()
        #expect(try reader.store.row(type: 0, key: .int(1))?[1] == .int(450))
        #expect(reader.version == 450)
    }

    /// Deaths of a writer at random points, each followed by a look at all that it wrote.
    @Test(.timeLimit(.minutes(5))) func `a writer that is killed loses nothing committed and leaves nothing torn`() throws {
        var random = SplitMix64()
        let seed = random.seed
        var number: Int64 = 0
        for round in 0..<rounds(150, soak: 500) {
            let other = try OtherProcess("write", folder.file)
            let first = other.line().flatMap { Int64($0) }
            #expect(first == number, "seed \(seed), round \(round)")
            let told = kill(other, &random, within: 25_000) ?? number
            let found = try check("seed \(seed), round \(round)")
            // What it was told it has; the last commit may not have been told any more.
            #expect(found == told || found == told + 1, "seed \(seed), round \(round): found \(found), told \(told)")
            number = found
            if found != told && found != told + 1 { return }
        }
    }

    @Test(.timeLimit(.minutes(2)))
    func `Scenario 12: a device that is killed while a set's rows come has the set before, whole, or the next one, whole`() async throws {
        var random = SplitMix64()
        let seed = random.seed
        var number: Int64 = 0
        for round in 0..<rounds(50, soak: 150) {
            let other = try OtherProcess("bootstrap", folder.file)
            #expect(other.line().flatMap { Int64($0) } == number, "seed \(seed), round \(round)")
            let told = kill(other, &random, within: 12_000) ?? number
            let replica = try Replica(path: folder.file, schema: OtherProcess.schema)
            let position = try await replica.appliedPosition()
            number = Int64(position.version)
            // The end of the last one may not have been told any more.
            #expect(number == told || number == told + 1, "seed \(seed), round \(round): found \(number), told \(told)")
            var values: [Int64: Int64] = [:]
            try replica.makeReader().store.scan(type: 0) { row in
                if case .int(let id)? = row.value(0), case .int(let value)? = row.value(1) { values[id] = value }
            }
            let ids = number == 0 ? [] : Array(0..<20) + [100 + number]
            #expect(values == Dictionary(uniqueKeysWithValues: ids.map { ($0, number) }), "seed \(seed), round \(round)")
            #expect(position.lsn == LSN(rawValue: UInt64(number)), "seed \(seed), round \(round)")
        }
    }

    @Test(.timeLimit(.minutes(1))) func `a disk that is full loses nothing committed, and is written to again when it has room`() throws {
        let other = try OtherProcess("fill", folder.file)
        var last: Int64 = -1
        while let line = other.line() {
            guard let number = Int64(line) else {
                #expect(line.hasPrefix(ErrorCode.deviceFull.name) && line.contains("Free space") && last > 0, "\(line)")
                break
            }
            last = number
        }
        // It may have gone on already.
        #expect(try check("when it was full") >= last)
        // It begins with what the file had when it was full, and goes on behind it.
        #expect(other.line() == "\(last)")
        for number in last + 1...last + 3 { #expect(other.line() == "\(number)") }
        other.kill()
        _ = other.wait()
        #expect(try check("in the end") >= last + 3)
    }

    /// Kills a writer a random time after it has told of none, one or two commits: on a slow machine too, most rounds commit something.
    ///
    /// - Returns: the last number that it told, if any.
    private func kill(_ other: OtherProcess, _ random: inout SplitMix64, within microseconds: Int) -> Int64? {
        var told: Int64?
        for _ in 0..<random.below(3) { told = other.line().flatMap { Int64($0) } }
        usleep(UInt32(random.below(microseconds)))
        other.kill()
        _ = other.wait()
        return other.rest().compactMap { Int64($0) }.last ?? told
    }

    /// - Returns: the number of the last transaction in the file, all of which is there.
    private func check(_ comment: Comment) throws -> Int64 {
        let store = try open().makeReader().store
        var values: [Int64: Int64] = [:]
        try store.scan(type: 0) { row in
            if case .int(let id)? = row.value(0), case .int(let value)? = row.value(1) { values[id] = value }
        }
        guard let number = values[0] else { return 0 }
        for id in 0..<20 where values[Int64(id)] != number { Issue.record("object \(id) is of another transaction: \(comment)") }
        let kept = (1...number).filter { $0 % 7 == 0 || $0 > number / 7 * 7 }
        #expect(values.filter { $0.key >= 100 } == Dictionary(uniqueKeysWithValues: kept.map { (100 + $0, $0) }), comment)
        return number
    }
}
