import Dispatch
import Foundation
import SluiceSDK
import Synchronization
import Testing

/// Where notifications come, by where the Realm lives, and when they end.
@Suite struct DeliveryTests {
    let folder: TemporaryFolder
    let configuration: Realm.Configuration

    init() throws {
        folder = try TemporaryFolder()
        configuration = folder.configuration([Horse.self])
    }

    private func write(_ id: Int) async throws {
        let configuration = configuration
        try await onThread {
            let realm = try Realm(configuration: configuration)
            try realm.write { _ = realm.create(Horse.self, value: ["_id": id]) }
        }
    }

    private func counts() -> (AsyncStream<Int>, AsyncStream<Int>.Continuation) {
        AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(16))
    }

    @Test func `a Realm of a queue tells there`() async throws {
        let queue = DispatchQueue(label: "delivery")
        let (counts, count) = counts()
        let configuration = configuration
        let kept = try queue.sync {
            let realm = try Realm(configuration: configuration, queue: queue)
            let token = realm.objects(Horse.self).observe { change in
                dispatchPrecondition(condition: .onQueue(queue))
                if case .initial(let horses) = change { count.yield(horses.count) }
                // The Realm's own objects, which show what is told.
                if case .update(let horses, _, _, _) = change { count.yield(horses.realm == realm ? horses.count : -1) }
            }
            return Sent((realm, token))
        }
        var iterator = counts.makeAsyncIterator()
        #expect(await iterator.next() == 0)
        try await write(1)
        #expect(await iterator.next() == 1)
        queue.sync { kept.content.1.invalidate() }
    }

    private actor Keeper {
        private var realm: Realm?
        private var token: NotificationToken?

        func watch(_ configuration: Realm.Configuration, _ count: AsyncStream<Int>.Continuation) async throws {
            let realm = try await Realm(configuration: configuration, actor: self)
            self.realm = realm
            token = realm.objects(Horse.self).observe { change in
                self.preconditionIsolated()
                if case .initial(let horses) = change { count.yield(horses.count) }
                if case .update(let horses, _, _, _) = change { count.yield(horses.realm == realm ? horses.count : -1) }
            }
        }

        var count: Int? { realm?.objects(Horse.self).count }
        func stop() { token = nil }
    }

    @Test func `a Realm of an actor tells there`() async throws {
        let (counts, count) = counts()
        let keeper = Keeper()
        try await keeper.watch(configuration, count)
        var iterator = counts.makeAsyncIterator()
        #expect(await iterator.next() == 0)
        try await write(1)
        #expect(await iterator.next() == 1)
        #expect(await keeper.count == 1)
        await keeper.stop()
    }

    @Test func `a Realm of a thread stays where it is until it is refreshed, and its observers hear on a queue of their own`() async throws
    {
        let configuration = configuration
        let (counts, count) = counts()
        let (go, end) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        async let seen: [Int] = onThread {
            let realm = try Realm(configuration: configuration)
            let horses = realm.objects(Horse.self)
            let token = horses.observe { change in
                if case .initial(let all) = change { count.yield(all.count) }
                if case .update(let all, _, _, _) = change { count.yield(all.realm == realm ? -1 : all.count) }
            }
            go.wait()
            let before = horses.count
            realm.refresh()
            let after = horses.count
            end.wait()
            // A write begins with the newest state too.
            try realm.write {}
            token.invalidate()
            return [before, after, horses.count]
        }
        var iterator = counts.makeAsyncIterator()
        #expect(await iterator.next() == 0)
        try await write(1)
        #expect(await iterator.next() == 1)
        go.signal()
        try await write(2)
        end.signal()
        let counted = try await seen
        #expect(counted[0] == 0 && (1...2).contains(counted[1]) && counted[2] == 2)
    }

    @MainActor @Test func `an observation ends with its token`() async throws {
        let realm = try await Realm(configuration: configuration)
        let horses = realm.objects(Horse.self)
        let heard = Mutex<[String]>([])
        let (turns, turn) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingOldest(16))
        var first: NotificationToken? = horses.observe { _ in heard.withLock { $0.append("first") } }
        let second = horses.observe { _ in
            heard.withLock { $0.append("second") }
            turn.yield()
        }
        var iterator = turns.makeAsyncIterator()
        await iterator.next(isolation: #isolation)
        #expect(first != nil && heard.withLock { $0 } == ["first", "second"])
        first = nil
        try realm.write { _ = realm.create(Horse.self, value: ["_id": 1]) }
        await iterator.next(isolation: #isolation)
        #expect(heard.withLock { $0 } == ["first", "second", "second"])
        second.invalidate()
    }

    @MainActor @Test func `asyncRefresh says whether there was something newer`() async throws {
        let realm = try await Realm(configuration: configuration)
        realm.autorefresh = false
        #expect(await realm.asyncRefresh() == false)
        try await write(1)
        #expect(realm.isEmpty)
        #expect(await realm.asyncRefresh() == true)
        #expect(await realm.asyncRefresh() == false)
        #expect(realm.objects(Horse.self).count == 1)
    }
}

/// What may go from one thread to another. That this compiles is the test.
@Suite struct SendableTests {
    private func requireSendable<each T: Sendable>(_ types: repeat (each T).Type) {}

    @Test func `what RealmSwift lets pass between threads does`() {
        requireSendable(
            Realm.Configuration.self, SyncConfiguration.self, App.self, AppConfiguration.self, User.self, SyncSession.self,
            SyncManager.self,
            Credentials.self, AnyBSON.self, ObjectId.self, Decimal128.self)
        requireSendable(
            NotificationToken.self, ThreadSafeReference<Horse>.self, ThreadSafeReference<Results<Horse>>.self, ThreadSafe<Horse>.self,
            StringOptions.self, SyncSession.Progress.self, SyncSession.ProgressNotificationToken.self, Realm.AsyncOpenTask.self)
        requireSendable(Realm.Error.self, SyncError.self, AppError.self, Realm.UpdatePolicy.self, Schema.self, ObjectSchema.self)
    }
}

/// Collections in variables that any thread may read.
@Suite struct ThreadSafeCollectionTests {
    private final class Holder: @unchecked Sendable {
        @ThreadSafe var list: List<Crowd>?
        @ThreadSafe var map: Map<String, Int>?
        @ThreadSafe var results: Results<Crowd>?
    }

    @Test func `lists, maps and results are those of whoever reads them`() async throws {
        let folder = try TemporaryFolder()
        let configuration = folder.configuration([Crowd.self])
        let holder = Holder()
        try await onThread {
            let realm = try Realm(configuration: configuration)
            let crowd = try realm.write {
                realm.create(Crowd.self, value: ["_id": 1, "intMap": ["a": 1], "friends": [["_id": 2]]] as [String: Any])
            }
            (holder.list, holder.map, holder.results) = (crowd.friends, crowd.intMap, realm.objects(Crowd.self).where { $0._id > 1 })
        }
        try await onThread {
            let (list, map, results) = (try #require(holder.list), try #require(holder.map), try #require(holder.results))
            #expect(list.map(\._id) == [2] && map["a"] == 1 && results.map(\._id) == [2] && list.realm == results.realm)
            try #require(list.realm).write {
                list.append(Crowd(value: ["_id": 3]))
                map["b"] = 2
            }
        }
        let counts = try await onThread { [holder.list?.count, holder.map?.count, holder.results?.count] }
        #expect(counts == [2, 2, 2])
        try await onThread {
            let realm = try Realm(configuration: configuration)
            try realm.write { realm.deleteAll() }
        }
        let isGone = try await onThread { holder.list == nil && holder.map == nil && holder.results?.isEmpty == true }
        #expect(isGone)
    }
}
