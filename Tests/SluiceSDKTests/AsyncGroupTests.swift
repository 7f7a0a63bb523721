import Dispatch
import Foundation
import SluiceSDK
import Testing

/// Asynchronous writes that go to the disk together, and limits of the versions that are read.
@MainActor @Suite struct AsyncGroupTests {
    let folder: TemporaryFolder
    let configuration: Realm.Configuration
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        configuration = folder.configuration([Horse.self])
        realm = try Realm(configuration: configuration)
    }

    /// What says how much of the log is on the disk: it changes with every commit that waits for it.
    private var mark: Data? { configuration.fileURL.flatMap { try? Data(contentsOf: URL(fileURLWithPath: $0.path + "-wal.synced")) } }

    @Test(.timeLimit(.minutes(1))) func `commits of a group wait for the disk once, and are told of when all are there`() async throws {
        try realm.write { _ = realm.create(Horse.self, value: ["_id": 0]) }
        let (done, continuation) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingOldest(16))
        var marks = [mark]
        for id in 1...5 {
            realm.beginAsyncWrite {
                marks.append(mark)
                _ = realm.create(Horse.self, value: ["_id": id])
                realm.commitAsyncWrite(allowGrouping: true) { error in
                    #expect(error == nil)
                    marks.append(mark)
                    continuation.yield(id)
                }
            }
        }
        #expect(realm.isPerformingAsynchronousWriteOperations)
        var order: [Int] = []
        for await id in done {
            order.append(id)
            if order.count == 5 { break }
        }
        #expect(order == [1, 2, 3, 4, 5] && !realm.isPerformingAsynchronousWriteOperations)
        #expect(Set(marks.prefix(6)).count == 1, "no commit but the last waits")
        #expect(Set(marks.suffix(5)).count == 1 && marks.last != marks.first)
        #expect(realm.objects(Horse.self).count == 6)
    }

    @Test(.timeLimit(.minutes(1))) func `a group whose last write is taken back is told of too`() async throws {
        var last: AsyncTransactionId = 0
        let error: (any Error)? = await withCheckedContinuation { told in
            realm.beginAsyncWrite {
                _ = realm.create(Horse.self, value: ["_id": 1])
                realm.commitAsyncWrite(allowGrouping: true) { told.resume(returning: $0) }
                try? realm.cancelAsyncWrite(last)
            }
            last = realm.beginAsyncWrite { Issue.record("it was taken back") }
        }
        #expect(error == nil && realm.objects(Horse.self).count == 1 && mark != nil)
    }

    @Test(.timeLimit(.minutes(1))) func `a limit of the versions that are read is kept`() async throws {
        var limited = configuration
        limited.fileURL = folder.url.appendingPathComponent("limited.realm")
        limited.maximumNumberOfActiveVersions = 3
        let realm = try await Realm(configuration: limited)
        for id in 0..<10 { try realm.write { _ = realm.create(Horse.self, value: ["_id": id]) } }
        var frozen: Realm? = realm.freeze()
        for id in 10..<13 { try realm.write { _ = realm.create(Horse.self, value: ["_id": id]) } }
        let error = #expect(throws: Realm.Error.self) { try realm.write { _ = realm.create(Horse.self, value: ["_id": 13]) } }
        #expect(
            error?.code == .fail && error?.message.contains("Number of active versions (4) in the Realm exceeded the limit of 3") == true)
        #expect(!realm.isInWriteTransaction)
        await #expect(throws: Realm.Error.self) { try await realm.asyncWrite { _ = realm.create(Horse.self, value: ["_id": 13]) } }
        let told: (any Error)? = await withCheckedContinuation { told in
            realm.writeAsync({ Issue.record("it must not begin") }, onComplete: { told.resume(returning: $0) })
        }
        #expect((told as? Realm.Error)?.code == .fail && frozen?.objects(Horse.self).count == 10)
        frozen = nil
        try realm.write { _ = realm.create(Horse.self, value: ["_id": 13]) }
        try await realm.asyncWrite { _ = realm.create(Horse.self, value: ["_id": 14]) }
        #expect(realm.objects(Horse.self).count == 15)
    }
}

/// Files that turn out to be damaged while a Realm shows them.
@Suite(.serialized) struct FileErrorTests {
    @Test func `what cannot be read is told, and nothing is written because of it`() throws {
        let folder = try TemporaryFolder()
        let configuration = folder.configuration([Horse.self])
        let path = try #require(configuration.fileURL).path
        do {
            let realm = try Realm(configuration: configuration)
            try realm.write {
                for id in 0..<2_000 { realm.create(Horse.self, value: ["_id": id, "name": String(repeating: "x", count: 200)]) }
            }
        }
        try untilClosed(configuration)
        // Every page behind those that opening reads.
        try damage(path, from: 40)
        let heard = Heard()
        Realm.onFileError { error, url in heard.add("\(error.code) \(url.path)") }
        defer { Realm.onFileError(nil) }
        let realm = try Realm(configuration: configuration)
        _ = realm.objects(Horse.self).map(\.name)
        #expect(heard.all.contains("invalidDatabase \(path)"))
        for _ in 0..<2 {
            let error = #expect(throws: Realm.Error.self) { try realm.write { realm.deleteAll() } }
            #expect(error?.code == .invalidDatabase && error?.message.contains("byte") == true)
        }
        realm.beginWrite()
        #expect(realm.isInWriteTransaction)
        realm.create(Horse.self, value: ["_id": -1])
        let error = #expect(throws: Realm.Error.self) { try realm.commitWrite() }
        #expect(error?.code == .invalidDatabase && !realm.isInWriteTransaction)
        realm.beginWrite()
        realm.cancelWrite()
        #expect(!realm.isInWriteTransaction)
        #expect(throws: Realm.Error.self) { try Realm(configuration: configuration) }
    }

    @Test func `freezing and thawing what cannot be read gives Realms that show nothing`() throws {
        let folder = try TemporaryFolder()
        let configuration = folder.configuration([Horse.self])
        let path = try #require(configuration.fileURL).path
        let realm = try Realm(configuration: configuration)
        try realm.write { for id in 0..<100 { realm.create(Horse.self, value: ["_id": id]) } }
        let whole = realm.freeze()
        realm.invalidate()
        let heard = Heard()
        Realm.onFileError { error, url in heard.add("\(error.code) \(url.path)") }
        defer { Realm.onFileError(nil) }
        try damage(path, from: 0)
        let frozen = realm.freeze()
        #expect(frozen.isFrozen && frozen.objects(Horse.self).isEmpty && frozen.object(ofType: Horse.self, forPrimaryKey: 1) == nil)
        #expect(heard.all.contains("invalidDatabase \(path)"))
        #expect(frozen.thaw().objects(Horse.self).isEmpty && whole.thaw().objects(Horse.self).isEmpty)
    }

    @Test func `what cannot be read of a synced file is told as of any other if sync has no error handler`() throws {
        let folder = try TemporaryFolder()
        let configuration = try folder.synced([Task.self])
        let path = try #require(configuration.fileURL).path
        let realm = try Realm(configuration: configuration)
        let heard = Heard()
        Realm.onFileError { error, url in heard.add("\(error.code) \(url.path)") }
        defer { Realm.onFileError(nil) }
        realm.invalidate()
        try damage(path, from: 0)
        #expect(realm.objects(Task.self).isEmpty && heard.all.contains("invalidDatabase \(path)"))
    }

    @Test func `results of which only an index can be read show as many defaults, and end no app`() throws {
        let folder = try TemporaryFolder()
        let configuration = folder.configuration([Task.self])
        let path = try #require(configuration.fileURL).path
        do {
            let realm = try Realm(configuration: configuration)
            try realm.write {
                for _ in 0..<2_000 { realm.create(Task.self, value: ["taskName": String(repeating: "x", count: 200)]) }
            }
        }
        try untilClosed(configuration)
        // The leaves of tables; those of indices begin with another byte.
        try damage(path, from: 40) { $0 == 0x0D }
        let heard = Heard()
        Realm.onFileError { error, _ in heard.add("\(error.code)") }
        defer { Realm.onFileError(nil) }
        let tasks = try Realm(configuration: configuration).objects(Task.self)
        #expect(tasks.count == 2_000 && heard.all.isEmpty)
        #expect(tasks[0].taskName == "" && tasks[1_999].taskName == "" && !heard.all.isEmpty)
        #expect(tasks.last == nil && tasks.first == nil && Array(tasks).isEmpty)
        #expect(tasks.map(\.taskName).count < 2_000, "those before the damage")
        // The state has as many as it had.
        #expect(tasks.count == 2_000 && names(tasks).count == 2_000 && names(tasks.reversed()).count == 2_000)
    }

    /// As code does that knows of collections only.
    private func names(_ tasks: some Collection<Task>) -> [String] { tasks.map(\.taskName) }

    /// Waits until the last connection to a file is gone, whose close takes the log into the file: a log that is left has pages that
    /// opening reads. Of two that close at the same moment each may leave that to the other; then one more has to come and go.
    private func untilClosed(_ configuration: Realm.Configuration) throws {
        let log = try #require(configuration.fileURL).path + "-wal"
        let end = ContinuousClock.now + .seconds(60)
        while FileManager.default.contents(atPath: log)?.isEmpty == false {
            try #require(ContinuousClock.now < end, "the file is still open")
            // In a test without await, since opening a Realm is another call there.
            Thread.sleep(forTimeInterval: 0.1)
            if FileManager.default.contents(atPath: log)?.isEmpty == false { _ = try Realm(configuration: configuration) }
        }
    }

    /// Flips a bit of each page of a file and of its log, or of those that begin with certain bytes.
    private func damage(_ path: String, from first: Int, _ isMeant: (UInt8) -> Bool = { _ in true }) throws {
        for path in [path, path + "-wal"] {
            guard var bytes = FileManager.default.contents(atPath: path) else { continue }
            for page in stride(from: first * 4_096, to: bytes.count, by: 4_096) where isMeant(bytes[page]) { bytes[page + 100] ^= 1 }
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try file.write(contentsOf: bytes)
            try file.close()
        }
    }

    private final class Heard: @unchecked Sendable {
        private let lock = NSLock()
        private var texts: [String] = []
        func add(_ text: String) { lock.withLock { texts.append(text) } }
        var all: [String] { lock.withLock { texts } }
    }
}
