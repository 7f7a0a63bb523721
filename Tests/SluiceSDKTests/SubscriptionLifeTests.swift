import Dispatch
import Foundation
import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import SluiceSDK
import Testing

/// The end of a subscription, by the app or by its time, and what a set's end of the download shows.
@Suite(.timeLimit(.minutes(1))) struct SubscriptionLifeTests {
    final class Leaf: Object {
        @Persisted(primaryKey: true) var _id: Int
        @Persisted var name: String
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    let folder: TemporaryFolder
    let configuration: Realm.Configuration

    init() throws {
        folder = try TemporaryFolder()
        configuration = try folder.synced([Leaf.self])
    }

    private func open() throws -> Realm { try Realm(configuration: configuration) }

    // In async code the same words mean the call that waits.
    private func change(_ set: SyncSubscriptionSet, _ block: () -> Void) { set.update(block) }

    private func names(_ realm: Realm) -> [String] { realm.subscriptions.map { $0.name ?? "-" } }

    // MARK: Unsubscribing

    /// RealmSwift: "In order for a named subscription to be removed, the Results must have previously created the subscription."
    @Test func `a later launch ends the unnamed subscription that it finds, and a named one only if it makes it again`() async throws {
        do {
            let realm = try open()
            try await realm.objects(Leaf.self).where { $0.name == "named" }.subscribe(name: "named", waitForSync: .never)
            try await realm.objects(Leaf.self).where { $0.name == "other" }.subscribe(waitForSync: .never)
        }
        let realm = try open()
        let (named, other) = (realm.objects(Leaf.self).where { $0.name == "named" }, realm.objects(Leaf.self).where { $0.name == "other" })
        try await named.subscribe(name: "named")
        try await other.subscribe()
        #expect(names(realm) == ["named", "-"])
        other.unsubscribe()
        #expect(names(realm) == ["named"])
        named.unsubscribe()
        #expect(names(realm) == ["named"], "these results have found it")
        try await named.subscribe(name: "named", waitForSync: .never)
        named.unsubscribe()
        #expect(names(realm) == [])
    }

    // MARK: Time to live

    /// Subscribes by a handle that goes on showing the set as it was made.
    private func subscribe(_ realm: Realm, _ times: [(name: String, seconds: Double)]) throws -> SyncSubscriptionSet {
        let set = realm.subscriptions
        var failure: (any Error)?
        change(set) {
            for (name, seconds) in times {
                do {
                    try set.append(QuerySubscription<Leaf>(name: name), options: SyncSubscriptionOptions(timeToLive: seconds))
                } catch {
                    failure = error
                }
            }
        }
        if let failure { throw failure }
        return set
    }

    /// Waits until the newest set has just these.
    private func wait(_ realm: Realm, for expected: [String]) async throws {
        let replica = _replica(of: realm)
        let (news, signal) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let observer = replica.observeSubscriptions { signal.yield() }
        defer { replica.removeObserver(observer) }
        signal.yield()
        for await _ in news where names(realm) == expected { return }
        Issue.record("the subscriptions were \(names(realm))")
    }

    @Test func `a subscription goes by itself when its time is over`() async throws {
        let realm = try open()
        let set = try subscribe(realm, [("hour", 3_600), ("short", 0.05), ("longer", 0.2)])
        #expect(set.count == 3)
        try await wait(realm, for: ["hour"])
        // Not before its time.
        #expect(try Date() >= #require(set.first(named: "longer")?.expiresAt))
        // An earlier end than that which is waited for.
        _ = try subscribe(realm, [("new", 0.05)])
        try await wait(realm, for: ["hour"])
    }

    @Test func `a subscription that was renewed goes when its new time is over`() async throws {
        let realm = try open()
        let all = realm.objects(Leaf.self)
        try await all.subscribe(options: SyncSubscriptionOptions(name: "a", timeToLive: 0.3), waitForSync: .never)
        let first = try #require(realm.subscriptions.first(named: "a")?.expiresAt)
        try await all.subscribe(options: SyncSubscriptionOptions(name: "a", overwriteExisting: true, timeToLive: 0.6), waitForSync: .never)
        let second = try #require(realm.subscriptions.first(named: "a")?.expiresAt)
        #expect(second > first)
        try await wait(realm, for: [])
        #expect(Date() >= second)
    }

    @Test func `a subscription goes by itself in a file that was opened again before its time`() async throws {
        do { _ = try subscribe(try open(), [("hour", 3_600), ("short", 0.3)]) }
        try await wait(try open(), for: ["hour"])
    }

    // MARK: Overwriting

    @Test func `an overwrite that changes nothing sets updatedAt and expiresAt anew`() async throws {
        let realm = try open()
        let options = SyncSubscriptionOptions(name: "a", overwriteExisting: true, timeToLive: 60)
        var before: SyncSubscription?
        for _ in 0..<3 {
            try await realm.objects(Leaf.self).subscribe(options: options, waitForSync: .never)
            let now = try #require(realm.subscriptions.first(named: "a"))
            if let before {
                #expect(now.createdAt == before.createdAt && now.updatedAt > before.updatedAt && now.timeToLive == 60)
                #expect(try #require(now.expiresAt) > #require(before.expiresAt))
            }
            before = now
        }
        #expect(realm.subscriptions.count == 1)
    }

    // MARK: What a complete set shows

    /// The server's answer to the newest set: one row.
    private nonisolated static func answer(_ replica: Replica, _ row: Row) async throws {
        let version = try await replica.latestSubscriptionSet().version
        try await replica.beginBootstrap(version: version)
        var rows = RowBuffer()
        try await replica.stage(type: 0, rows: [rows.append(row)], of: rows)
        try await replica.endBootstrap(version: version, lsn: LSN(rawValue: version), types: [])
    }

    /// Blocks the main thread, so that its Realm hears nothing meanwhile.
    @MainActor private func answerNow(_ replica: Replica, _ row: Row) {
        let answered = DispatchSemaphore(value: 0)
        _Concurrency.Task.detached {  // Unstructured because: the caller must not leave the main thread.
            defer { answered.signal() }
            try await Self.answer(replica, row)
        }
        #expect(answered.wait(timeout: .now() + 60) == .success)
    }

    @MainActor @Test func `a Realm whose set reads as complete shows its rows, and its observers hear of them`() async throws {
        let realm = try open()
        let (told, tell) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let token = realm.observe { notification, realm in
            if notification == .didChange { tell.yield(realm.objects(Leaf.self).count) }
        }
        let set = realm.subscriptions
        change(set) { set.append(QuerySubscription<Leaf>(name: "all")) }
        #expect(set.state == .pending && realm.objects(Leaf.self).isEmpty)
        answerNow(_replica(of: realm), Row([.int(1), .string("one")]))
        #expect(set.state == .complete && realm.objects(Leaf.self).map(\.name) == ["one"])
        for await count in told where count == 1 { break }
        token.invalidate()
    }

    @MainActor @Test func `reading the state moves no Realm that is not to move by itself, and none within a transaction`() throws {
        let realm = try open()
        let set = realm.subscriptions
        change(set) { set.append(QuerySubscription<Leaf>(name: "all")) }
        realm.autorefresh = false
        answerNow(_replica(of: realm), Row([.int(1), .string("one")]))
        #expect(set.state == .complete && realm.objects(Leaf.self).isEmpty)
        realm.beginWrite()
        #expect(set.state == .complete)
        realm.cancelWrite()
    }

    /// An actor with a Realm. It has a queue of its own, so that it can be blocked.
    private actor Keeper {
        private final class Queue: SerialExecutor {
            private let queue = DispatchQueue(label: "keeper")

            func enqueue(_ job: consuming ExecutorJob) {
                let job = UnownedJob(job)
                queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
            }

            func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
        }

        private let executor = Queue()
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        private var realm: Realm?
        private var set: SyncSubscriptionSet?
        private var token: NotificationToken?

        /// Opens the Realm and asks for all leaves.
        func open(_ configuration: Realm.Configuration, _ tell: AsyncStream<Int>.Continuation) async throws {
            let realm = try await Realm(configuration: configuration, actor: self)
            token = realm.observe { notification, realm in
                if notification == .didChange { tell.yield(realm.objects(Leaf.self).count) }
            }
            self.realm = realm
            subscribe(realm.subscriptions)
        }

        // In async code the same words mean the call that waits.
        private func subscribe(_ set: SyncSubscriptionSet) {
            set.update { set.append(QuerySubscription<Leaf>(name: "all")) }
            self.set = set
        }

        /// Blocks the actor until the server has answered, so that its Realm has no turn, and looks in the same turn.
        func lookWhenAnswered() -> (isComplete: [Bool], names: [String])? {
            guard let realm else { return nil }
            let (replica, answered) = (_replica(of: realm), DispatchSemaphore(value: 0))
            _Concurrency.Task.detached {  // Unstructured because: the caller must not leave the actor.
                defer { answered.signal() }
                try await SubscriptionLifeTests.answer(replica, Row([.int(1), .string("one")]))
            }
            return answered.wait(timeout: .now() + 60) == .success ? look() : nil
        }

        func look() -> (isComplete: [Bool], names: [String])? {
            guard let realm, let set else { return nil }
            let old = realm.legacySubscription(named: "all")
            let isComplete = [set.state == .complete, old?.state == .complete]
            return (isComplete, realm.objects(Leaf.self).map(\.name))
        }
    }

    @Test func `a Realm of an actor shows the rows of a set by the time at which it reads as complete`() async throws {
        let (told, tell) = AsyncStream<Int>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let keeper = Keeper()
        try await keeper.open(configuration, tell)
        let early = await keeper.lookWhenAnswered()
        #expect(early?.isComplete == [false, false] && early?.names == [])
        for await count in told where count == 1 { break }
        let late = await keeper.look()
        #expect(late?.isComplete == [true, true] && late?.names == ["one"])
    }
}
