import Dispatch
import SluiceSDK
import Synchronization
import Testing

@MainActor @Suite struct TransactionTests {
    let folder: TemporaryFolder
    let configuration: Realm.Configuration
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        configuration = folder.configuration([Resident.self, Horse.self])
        realm = try Realm(configuration: configuration)
    }

    private struct Failure: Error, Equatable {}

    private func wins(_ horse: Horse) throws -> Int { try #require(realm.object(ofType: Horse.self, forPrimaryKey: horse._id)).wins }

    @Test func `a block that throws leaves nothing behind`() throws {
        #expect(throws: Failure()) {
            try realm.write {
                _ = realm.create(Horse.self, value: ["_id": 1])
                throw Failure()
            }
        }
        #expect(realm.isEmpty && !realm.isInWriteTransaction)
        realm.beginWrite()
        _ = realm.create(Horse.self, value: ["_id": 1])
        #expect(realm.isInWriteTransaction)
        realm.cancelWrite()
        #expect(realm.isEmpty)
        try realm.write {
            _ = realm.create(Horse.self, value: ["_id": 1])
            realm.cancelWrite()
        }
        #expect(realm.isEmpty)
    }

    @Test func `asynchronous writes run in order and call back`() async throws {
        let order = Mutex<[String]>([])
        let (done, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingOldest(8))
        for id in 0..<3 {
            realm.writeAsync {
                order.withLock { $0.append("write \(id)") }
                _ = realm.create(Horse.self, value: ["_id": id])
            } onComplete: { error in
                #expect(error == nil)
                order.withLock { $0.append("stored \(id)") }
                continuation.yield()
            }
        }
        #expect(realm.isPerformingAsynchronousWriteOperations && !realm.isInWriteTransaction && realm.isEmpty)
        var turns = done.makeAsyncIterator()
        for _ in 0..<3 { await turns.next() }
        #expect(realm.objects(Horse.self).map(\._id) == [0, 1, 2] && !realm.isPerformingAsynchronousWriteOperations)
        let seen = order.withLock { $0 }
        #expect(seen.filter { $0.hasPrefix("write") } == ["write 0", "write 1", "write 2"])
        #expect(seen.filter { $0.hasPrefix("stored") } == ["stored 0", "stored 1", "stored 2"])
    }

    @Test func `an asynchronous write can be taken back, and one that does not commit is undone`() async throws {
        let (done, continuation) = AsyncStream<Bool>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let taken = realm.writeAsync { _ = realm.create(Horse.self, value: ["_id": 1]) }
        try realm.cancelAsyncWrite(taken)
        realm.beginAsyncWrite { _ = realm.create(Horse.self, value: ["_id": 2]) }
        realm.beginAsyncWrite { continuation.yield(realm.isEmpty) }
        var turns = done.makeAsyncIterator()
        #expect(await turns.next() == true)
        #expect(realm.isEmpty)
    }

    @Test func `a synchronous write goes before asynchronous ones that wait`() async throws {
        let (done, continuation) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingOldest(8))
        for id in 0..<5 {
            realm.writeAsync { continuation.yield(realm.objects(Horse.self).count) }
            try realm.write { _ = realm.create(Horse.self, value: ["_id": id]) }
        }
        var turns = done.makeAsyncIterator()
        for _ in 0..<5 { #expect(await turns.next() == 5) }
    }

    @Test func `asyncWrite waits for another writer without blocking the actor`() async throws {
        let configuration = configuration
        let (begun, begin) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingOldest(1))
        let end = DispatchSemaphore(value: 0)
        async let other: Void = onThread {
            let realm = try Realm(configuration: configuration)
            realm.beginWrite()
            begin.yield()
            end.wait()
            _ = realm.create(Horse.self, value: ["_id": 1, "wins": 1])
            try realm.commitWrite()
        }
        for await _ in begun { break }
        let realm = realm
        let sum = _Concurrency.Task { @MainActor in
            try await realm.asyncWrite {
                let horse = realm.object(ofType: Horse.self, forPrimaryKey: 1)
                horse?.wins += 1
                return horse?.wins
            }
        }
        // Runs on the actor while the write waits there.
        await _Concurrency.Task.yield()
        end.signal()
        #expect(try await sum.value == 2)
        try await other
        await realm.asyncRefresh()
        #expect(realm.objects(Horse.self).first?.wins == 2)
    }

    @Test func `a task that is cancelled while it waits does not write`() async throws {
        let configuration = configuration
        let (begun, begin) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingOldest(1))
        let end = DispatchSemaphore(value: 0)
        async let other: Void = onThread {
            let realm = try Realm(configuration: configuration)
            realm.beginWrite()
            begin.yield()
            end.wait()
            realm.cancelWrite()
        }
        for await _ in begun { break }
        let realm = realm
        let task = _Concurrency.Task { @MainActor in
            try await realm.asyncWrite { _ = realm.create(Horse.self, value: ["_id": 1]) }
        }
        await _Concurrency.Task.yield()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        end.signal()
        try await other
        try await realm.asyncWrite {}
        #expect(realm.isEmpty)
    }

    private actor Stable {
        private var realm: Realm?
        func open(_ configuration: Realm.Configuration) async throws {
            realm = try await Realm(configuration: configuration, actor: self)
        }
        func add(_ ids: Range<Int>) async throws {
            for id in ids { try await realm?.asyncWrite { _ = realm?.create(Horse.self, value: ["_id": id]) } }
        }
        func addAtOnce(_ ids: Range<Int>) throws {
            for id in ids { try realm?.write { _ = realm?.create(Horse.self, value: ["_id": id]) } }
        }
    }

    @Test(.timeLimit(.minutes(1))) func `writers of several actors, blocking and not, all get their turn`() async throws {
        let stables = [Stable(), Stable(), Stable()]
        for stable in stables { try await stable.open(configuration) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, stable) in stables.enumerated() {
                group.addTask { try await stable.add(index * 100..<index * 100 + 20) }
                group.addTask { try await stable.addAtOnce(index * 100 + 50..<index * 100 + 70) }
            }
            for id in 1_000..<1_020 {
                try await realm.asyncWrite { _ = realm.create(Horse.self, value: ["_id": id]) }
                try realm.write { _ = realm.create(Horse.self, value: ["_id": id + 100]) }
            }
            try await group.waitForAll()
        }
        await realm.asyncRefresh()
        #expect(realm.objects(Horse.self).count == 160)
    }

    @Test func `a Realm without autorefresh stays until it is refreshed`() async throws {
        let (events, continuation) = AsyncStream<Realm.Notification>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let token = realm.observe { notification, _ in continuation.yield(notification) }
        #expect(realm.autorefresh)
        realm.autorefresh = false
        let configuration = configuration
        try await onThread {
            let other = try Realm(configuration: configuration)
            try other.write { _ = other.create(Horse.self, value: ["_id": 1]) }
        }
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next() == .refreshRequired)
        #expect(realm.isEmpty)
        #expect(realm.refresh())
        #expect(await iterator.next() == .didChange)
        #expect(realm.objects(Horse.self).count == 1 && !realm.refresh())
        try realm.write { realm.deleteAll() }
        #expect(await iterator.next() == .didChange)
        token.invalidate()
        try realm.write { _ = realm.create(Horse.self, value: ["_id": 2]) }
        continuation.finish()
        #expect(await iterator.next() == nil)
    }

    @Test func `beginning a transaction tells what has changed before`() async throws {
        let configuration = configuration
        let told = Mutex<[Int]>([])
        let (begun, begin) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let token = realm.objects(Horse.self).observe { change in
            if case .update(let horses, _, _, _) = change { told.withLock { $0.append(horses.count) } }
            begin.yield()
        }
        for await _ in begun { break }
        // This blocks the main thread, so that nobody has told when the transaction begins.
        try DispatchQueue(label: "elsewhere").sync {
            let other = try Realm(configuration: configuration)
            try other.write { _ = other.create(Horse.self, value: ["_id": 1]) }
        }
        #expect(realm.isEmpty && told.withLock { $0 } == [])
        realm.beginWrite()
        #expect(told.withLock { $0 } == [1] && realm.objects(Horse.self).count == 1)
        realm.cancelWrite()
        token.invalidate()
    }

    @Test func `a token of another Realm keeps nothing from being told`() async throws {
        let other = try await Realm(configuration: folder.configuration([Horse.self], file: "other"))
        let foreign = other.objects(Horse.self).observe { _ in }
        let (counts, count) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let token = realm.objects(Horse.self).observe { change in
            if case .initial(let horses) = change { count.yield(horses.count) }
            if case .update(let horses, _, _, _) = change { count.yield(horses.count) }
        }
        var turns = counts.makeAsyncIterator()
        #expect(await turns.next(isolation: #isolation) == 0)
        try realm.write(withoutNotifying: [foreign]) { _ = realm.create(Horse.self, value: ["_id": 1]) }
        #expect(await turns.next(isolation: #isolation) == 1)
        token.invalidate()
        foreign.invalidate()
    }

    @Test func `misuse ends the program`() async {
        let twice = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let realm = try Realm(configuration: TemporaryFolder().configuration([Horse.self]))
            realm.beginWrite()
            realm.beginWrite()
        }
        #expect(message(twice).contains("The Realm is already in a write transaction"))
        let commit = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Realm(configuration: TemporaryFolder().configuration([Horse.self])).commitWrite()
        }
        #expect(message(commit).contains("Can't commit a non-existing write transaction"))
        let nowhere = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try Realm(configuration: TemporaryFolder().configuration([Horse.self])).writeAsync {}
        }
        #expect(message(nowhere).contains("Cannot schedule async transaction. Make sure you are running from inside a run loop."))
        let queue = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let queue = DispatchQueue(label: "place")
            try await Realm(configuration: TemporaryFolder().configuration([Horse.self]), queue: queue).asyncWrite {}
        }
        #expect(message(queue).contains("asyncWrite() can only be called on main thread or actor-isolated Realms"))
    }
}
