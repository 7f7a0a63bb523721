import Dispatch
import SluiceReplica
import SluiceSDK
import Synchronization
import TestSupport
import Testing

@Suite struct ObservationTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private struct Seen: Sendable {
        var initial: [String]?
        var deletions: [Int] = []
        var insertions: [Int] = []
        var modifications: [Int] = []
        var names: [String] = []
    }

    @Test func `observers hear the initial state and every change`() async throws {
        let realm = try await Realm(configuration: folder.local)
        try realm.write { _ = realm.create(Task.self, value: ["taskName": "a", "progressMinutes": 1]) }
        let (events, continuation) = AsyncStream<Seen>.makeStream(bufferingPolicy: .bufferingOldest(16))
        let queue = DispatchQueue(label: "observer")
        let token = realm.objects(Task.self).sorted(byKeyPath: "taskName").observe(on: queue) { change in
            switch change {
            case .initial(let tasks): continuation.yield(Seen(initial: tasks.map(\.taskName)))
            case .update(let tasks, let deletions, let insertions, let modifications):
                continuation.yield(
                    Seen(
                        deletions: deletions, insertions: insertions, modifications: modifications,
                        names: tasks.map(\.taskName)))
            case .error: continuation.finish()
            }
        }
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next()?.initial == ["a"])
        try realm.write { _ = realm.create(Task.self, value: ["taskName": "0"]) }
        let inserted = await iterator.next()
        #expect(inserted?.insertions == [0] && inserted?.deletions == [] && inserted?.modifications == [])
        #expect(inserted?.names == ["0", "a"])
        try realm.write { realm.objects(Task.self).where { $0.taskName == "a" }.first?.progressMinutes = 5 }
        let modified = await iterator.next()
        #expect(modified?.modifications == [1] && modified?.insertions == [])
        try realm.write { realm.delete(realm.objects(Task.self).where { $0.taskName == "0" }) }
        let deleted = await iterator.next()
        #expect(deleted?.deletions == [0] && deleted?.names == ["a"])
        token.invalidate()
    }

    @MainActor @Test func `a Realm of the main actor moves on by itself`() async throws {
        let realm = try await Realm(configuration: folder.local)
        let tasks = realm.objects(Task.self)
        let (events, continuation) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingOldest(16))
        let token = tasks.observe { change in
            MainActor.assertIsolated()
            switch change {
            case .initial(let tasks): continuation.yield(tasks.count)
            case .update(let tasks, _, _, _): continuation.yield(tasks.count)
            case .error: continuation.finish()
            }
        }
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == 0)
        let configuration = folder.local
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            DispatchQueue(label: "elsewhere").async {
                done.resume(
                    with: Result {
                        let realm = try Realm(configuration: configuration)
                        try realm.write { _ = realm.create(Task.self, value: ["taskName": "from elsewhere"]) }
                    })
            }
        }
        #expect(await iterator.next() == 1)
        #expect(tasks.first?.taskName == "from elsewhere")
        token.invalidate()
    }

    /// News of a commit come a moment after it can be seen: an observer that looks in between must not hear of it twice.
    @Test func `what came is never told as modified too, however fast commits follow each other`() async throws {
        let realm = try await Realm(configuration: folder.local)
        let commits = 2_000
        let told = Mutex((inserted: 0, others: [String]()))
        let (done, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = realm.objects(Task.self).observe(on: DispatchQueue(label: "observer")) { change in
            let count = told.withLock { told in
                guard case .update(_, let deletions, let insertions, let modifications) = change else {
                    if case .initial(let tasks) = change { told.inserted = tasks.count }
                    return told.inserted
                }
                told.inserted += insertions.count
                if !deletions.isEmpty || !modifications.isEmpty { told.others.append("-\(deletions) ~\(modifications)") }
                return told.inserted
            }
            if count >= commits { continuation.yield() }
        }
        for number in 0..<commits { try realm.write { _ = realm.create(Task.self, value: ["taskName": "\(number)"]) } }
        for await _ in done { break }
        #expect(told.withLock { $0.others } == [])
        #expect(told.withLock { $0.inserted } == commits)
        token.invalidate()
    }

    @Test func `an observation that has ended lets its Realm go`() async throws {
        let queue = DispatchQueue(label: "observer")
        weak var replica: Replica?
        do {
            let realm = try await Realm(configuration: folder.local)
            replica = _replica(of: realm)
            let (begun, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            let token = realm.objects(Task.self).observe(on: queue) { _ in continuation.yield() }
            for await _ in begun { break }
            token.invalidate()
        }
        await withCheckedContinuation { done in queue.async { done.resume() } }
        #expect(replica == nil)
    }

    /// The oracle: replaying the indices on a plain list gives what the results hold.
    @Test(arguments: [UInt64(1), 2, 3])
    func `indices replay to the results under random writes`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let realm = try await Realm(configuration: folder.local)
        let results = realm.objects(Every.self).where { $0.int > 3 }.sorted(byKeyPath: "int")
        let list = Mutex<[Int]>([])
        let (turns, continuation) = AsyncStream<[Int]>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = results.observe(on: DispatchQueue(label: "observer")) { change in
            switch change {
            case .initial(let all): list.withLock { $0 = all.map(\._id) }
            case .update(let all, let deletions, let insertions, _):
                list.withLock { list in
                    for index in deletions.reversed() { list.remove(at: index) }
                    for index in insertions { list.insert(all[index]._id, at: index) }
                }
            case .error: break
            }
            continuation.yield(list.withLock { $0 })
        }
        defer { token.invalidate() }
        for _ in 0..<40 {
            try realm.write {
                for _ in 0..<3 {
                    let id = Int.random(in: 0..<12, using: &random)
                    if let object = realm.object(ofType: Every.self, forPrimaryKey: id), Bool.random(using: &random) {
                        realm.delete(object)
                    } else {
                        let value = Int.random(in: 0..<9, using: &random)
                        _ = realm.create(Every.self, value: ["_id": id, "int": value], update: .modified)
                    }
                }
            }
        }
        // A last change that is sure to be seen tells that everything before has been delivered.
        try realm.write { _ = realm.create(Every.self, value: ["_id": 99, "int": 1_000], update: .modified) }
        for await turn in turns where turn.last == 99 { break }
        #expect(list.withLock { $0 } == results.map(\._id), "seed \(seed)")
    }
}
