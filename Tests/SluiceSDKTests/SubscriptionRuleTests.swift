import Foundation
import ReplicaTestSupport
import SluiceReplica
import SluiceSDK
import Synchronization
import Testing

/// The rules by which a set is built, with RealmSwift's peculiarities.
@Suite struct SubscriptionRuleTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: try folder.synced())
    }

    private func names(_ set: SyncSubscriptionSet) -> String { set.map { $0.name ?? "-" }.joined() }

    // In async code the same words mean the calls that wait.
    private func change(_ set: SyncSubscriptionSet, _ block: () -> Void) { set.update(block) }
    private func open(_ configuration: Realm.Configuration) throws -> Realm { try Realm(configuration: configuration) }

    private func set(_ names: String) -> SyncSubscriptionSet {
        let set = realm.subscriptions
        set.update { for name in names { set.append(QuerySubscription<Task>(name: "\(name)") { $0.progressMinutes == 1 }) } }
        return set
    }

    @Test func `a removed subscription's place is taken by the last`() {
        let set = set("abcde")
        set.update { set.remove(named: "b") }
        #expect(names(set) == "aecd")
        set.update { if let d = set.first(named: "d") { set.remove(d) } }
        #expect(names(set) == "aec")
        set.update { set.append(QuerySubscription<Team>(name: "t"), QuerySubscription<Team>()) }
        set.update { set.removeAll(ofType: Task.self) }
        #expect(names(set) == "-t")
        set.update { set.removeAll(unnamedOnly: true) }
        #expect(names(set) == "t" && set.first?.name == "t" && set.last?.name == "t" && set[0]?.name == "t")
        set.update { set.removeAll() }
        #expect(set.isEmpty && set.first == nil)
    }

    @Test func `within an update the committed set is shown`() {
        let set = set("a")
        set.update {
            set.append(QuerySubscription<Task>(name: "new"))
            #expect(set.count == 1 && set.first(named: "new") == nil && names(set) == "a")
            // Not there yet, so it stays.
            set.remove(named: "new")
            set.remove(ofType: Task.self) { $0.progressMinutes == 2 }
        }
        #expect(names(set) == "anew")
        set.update {
            set.removeAll()
            #expect(set.count == 2)
            set.append(QuerySubscription<Task>(name: "a"))
        }
        #expect(names(set) == "a")
    }

    @Test func `within an update queries are looked for in the committed set, and a handle removes from the new one`() throws {
        let set = set("a")
        let named = try #require(set.first)
        set.update {
            set.append(QuerySubscription<Team> { $0.teamName == "new" })
            #expect(set.first(ofType: Team.self) { $0.teamName == "new" } == nil && set.last?.name == "a")
            set.remove(named)
            #expect(set.first(named: "a") != nil)
            // The name is free again in the set that is built.
            set.append(QuerySubscription<Task>(name: "a"))
        }
        #expect(names(set) == "-a" && set.first(ofType: Task.self, where: "TRUEPREDICATE")?.name == "a")
    }

    @Test func `the error of a set is that of its state`() async throws {
        let set = set("a")
        #expect(set.error == nil)
        try await _replica(of: realm).setSubscriptionState(version: 1, .error(code: 310, message: "not queryable"))
        let error = try #require(set.error as? SyncError)
        #expect(error.code == .invalidFlexibleSyncSubscriptions && error.message.contains("not queryable"))
        #expect(set.state == .error(error) && realm.subscriptions.state == .error(error))
    }

    @Test func `a handle's update begins with its own set, not with the newest`() {
        let (first, second) = (set("a"), realm.subscriptions)
        first.update { first.append(QuerySubscription<Task>(name: "b")) }
        second.update { second.append(QuerySubscription<Task>(name: "c")) }
        #expect(names(realm.subscriptions) == "ac")
        // Its version is the highest all the same.
        #expect(first.state == .pending && second.state == .pending)
    }

    @Test func `a named subscription keeps its place and its birth when its query changes, an unnamed one does not`() throws {
        let set = set("ab")
        set.update { set.append(QuerySubscription<Task>()) }
        let (named, unnamed) = (try #require(set[0]), try #require(set[2]))
        set.update {
            named.updateQuery(toType: Task.self) { $0.progressMinutes > 7 }
            unnamed.updateQuery(to: "progressMinutes > %@", 8)
        }
        let (later, other) = (try #require(set.first(named: "a")), try #require(set.first(ofType: Task.self, where: "progressMinutes > 8")))
        #expect(names(set) == "ab-" && later.createdAt == named.createdAt && later.updatedAt > named.updatedAt)
        #expect(other.createdAt > unnamed.createdAt && set.first(ofType: Task.self, where: "TRUEPREDICATE") == nil)
        set.update { set.first(named: "a")?.updateQuery(toType: Task.self) }
        #expect(set.first(ofType: Task.self, where: NSPredicate(format: "TRUEPREDICATE"))?.name == "a")
    }

    @Test func `one query twice is one unnamed subscription, and as many named ones as there are names`() throws {
        let set = realm.subscriptions
        set.update { set.append(QuerySubscription<Task> { $0.progressMinutes > 5 }) }
        let first = try #require(set.first)
        set.update {
            set.append(QuerySubscription<Task>(where: "progressMinutes > 5"))
            set.append(QuerySubscription<Task>(name: "n", where: "progressMinutes > 5"))
            set.append(QuerySubscription<Task> { $0.progressMinutes > 5 && $0.completed })
            set.append(QuerySubscription<Task> { $0.completed && $0.progressMinutes > 5 })
        }
        #expect(set.count == 4 && set.first?.createdAt == first.createdAt)
        #expect(try #require(set.first).updatedAt > first.updatedAt)
        // The first of two with one query goes.
        set.update { set.remove(ofType: Task.self, where: "progressMinutes > 5") }
        #expect(set.count == 3 && set.first(ofType: Task.self, where: "progressMinutes > 5")?.name == "n")
    }

    @Test func `subscribing again changes nothing, always makes a new set, and a name gets the newest query`() async throws {
        let results = realm.objects(Task.self).where { $0.completed }
        try await results.subscribe(name: "done", waitForSync: .never)
        let first = try #require(realm.subscriptions.first(named: "done"))
        let again = realm.objects(Task.self).where { $0.completed }
        try await again.subscribe(name: "done")
        #expect(realm.subscriptions.first(named: "done")?.updatedAt == first.updatedAt)
        try await again.subscribe(name: "done", waitForSync: .never)
        #expect(try #require(realm.subscriptions.first(named: "done")).updatedAt > first.updatedAt)
        try await realm.objects(Team.self).subscribe(name: "done", waitForSync: .never)
        #expect(realm.subscriptions.count == 1 && realm.subscriptions.first(ofType: Team.self, where: "TRUEPREDICATE")?.name == "done")
        // An unnamed one does not count as there when a named one has its query.
        try await realm.objects(Team.self).subscribe(waitForSync: .never)
        #expect(realm.subscriptions.count == 2)
    }

    @Test func `waiting ends with ETIMEDOUT when its time is over, and the subscription stays`() async throws {
        let error = await #expect(throws: NSError.self) {
            _ = try await realm.objects(Task.self).subscribe(name: "late", timeout: 0.01)
        }
        #expect(error?.domain == NSPOSIXErrorDomain && error?.code == Int(ETIMEDOUT))
        #expect(error?.localizedDescription == "Waiting for update timed out after 0.0 seconds.")
        #expect(realm.subscriptions.first(named: "late") != nil)
    }

    @Test func `what is new is waited for, what only has another's query too, and a query under another's name`() async throws {
        func timesOut(_ results: Results<Task>, _ name: String?) async {
            let error = await #expect(throws: NSError.self) { _ = try await results.subscribe(name: name, timeout: 0.01) }
            #expect(error?.domain == NSPOSIXErrorDomain && error?.code == Int(ETIMEDOUT), "\(String(describing: error))")
        }
        try await realm.objects(Task.self).where { $0.completed }.subscribe(name: "done", waitForSync: .never)
        await timesOut(realm.objects(Task.self).where { $0.completed }, nil)
        #expect(realm.subscriptions.count == 2)
        await timesOut(realm.objects(Task.self).where { $0.progressMinutes > 5 }, "done")
        #expect(realm.subscriptions.count == 2)
        #expect(realm.subscriptions.first(ofType: Task.self) { $0.progressMinutes > 5 }?.name == "done")
    }

    @Test func `waiting for subscriptions to end is over with its time, and they are gone all the same`() async throws {
        let results = realm.objects(Task.self)
        try await results.subscribe(name: "a", waitForSync: .never)
        let error = await #expect(throws: NSError.self) { try await results.unsubscribe(waitForSync: .onCreation, timeout: 0.01) }
        #expect(error?.domain == NSPOSIXErrorDomain && error?.code == Int(ETIMEDOUT))
        #expect(realm.subscriptions.isEmpty)
    }

    @Test func `waiting until everything is here is over with its time, with a refusal, and with the session`() async throws {
        try await realm.objects(Task.self).subscribe(name: "a", waitForSync: .never)
        let late = await #expect(throws: NSError.self) { try await realm.waitUntilSynced(timeout: 0.01) }
        #expect(late?.domain == NSPOSIXErrorDomain && late?.code == Int(ETIMEDOUT))
        try await _replica(of: realm).setSubscriptionState(version: 1, .error(code: 310, message: "not queryable"))
        let refused = await #expect(throws: Realm.Error.self) { try await realm.waitUntilSynced(timeout: 60) }
        #expect(refused?.code == .subscriptionFailed && refused?.message == "not queryable")
        try await realm.objects(Task.self).subscribe(name: "b", waitForSync: .never)
        let user = try #require(realm.syncSession?.parentUser())
        // Unstructured because: the log-out comes while the test waits, or before; either ends the wait.
        let leaving = _Concurrency.Task { try await user.logOut() }
        let ended = await #expect(throws: SyncError.self) { try await realm.waitUntilSynced(timeout: 60) }
        #expect(ended?.code == .clientUserError)
        try await leaving.value
    }

    @Test func `unsubscribing removes what was subscribed, or else the unnamed one with the query`() async throws {
        let all = realm.objects(Task.self)
        try await all.subscribe(name: "a", waitForSync: .never)
        // It did not make it, and that one has a name.
        realm.objects(Task.self).unsubscribe()
        #expect(realm.subscriptions.count == 1)
        all.unsubscribe()
        #expect(realm.subscriptions.isEmpty)
        try await realm.objects(Task.self).subscribe(waitForSync: .never)
        try await realm.objects(Task.self).unsubscribe(waitForSync: .never)
        #expect(realm.subscriptions.isEmpty)
    }

    @Test func `ids are not used twice, so that results never end another's subscription`() async throws {
        let results = realm.objects(Task.self).where { $0.completed }
        try await results.subscribe(name: "a", waitForSync: .never)
        let set = realm.subscriptions
        change(set) { set.removeAll() }
        // The store forgets what was before.
        try await _replica(of: realm).setSubscriptionState(version: 2, .complete)
        try await realm.objects(Team.self).subscribe(name: "b", waitForSync: .never)
        results.unsubscribe()
        #expect(realm.subscriptions.first(named: "b") != nil)
    }

    @Test func `sets and their states are there when the file is opened again`() async throws {
        var folder: TemporaryFolder? = try TemporaryFolder()
        let configuration = try #require(folder).synced()
        do {
            let set = try open(configuration).subscriptions
            change(set) { set.append(QuerySubscription<Task>(name: "kept")) }
        }
        do {
            let realm = try open(configuration)
            #expect(realm.subscriptions.first(named: "kept") != nil && realm.subscriptions.state == .pending)
            try await _replica(of: realm).setSubscriptionState(version: 1, .error(code: 310, message: "not queryable"))
        }
        let realm = try open(configuration)
        guard case .error(let error) = realm.subscriptions.state else {
            Issue.record("\(realm.subscriptions.state)")
            return
        }
        #expect((error as NSError).domain == "io.realm.sync" && (error as NSError).code == 10)
        folder = nil
    }

    @Test func `initial subscriptions run again at the first opening in a process when they are to`() throws {
        var configuration = try folder.user().flexibleSyncConfiguration(
            initialSubscriptions: { subscriptions in
                subscriptions.append(QuerySubscription<Task> { $0.dueDate > Date() })
            }, rerunOnOpen: true)
        configuration.objectTypes = [Task.self, Team.self, Reading.self]
        configuration.fileURL = folder.url.appendingPathComponent("rerun.realm")
        do {
            let realm = try Realm(configuration: configuration)
            #expect(realm.subscriptions.count == 1)
            #expect(try Realm(configuration: configuration).subscriptions.count == 1)
        }
        #expect(try Realm(configuration: configuration).subscriptions.count == 2)
    }

    /// Whoever is second finds what the first has made.
    @Test func `of several places that open a new file at once one runs the initial subscriptions`() throws {
        let runs = Mutex(0)
        var configuration = try folder.user().flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
            runs.withLock { $0 += 1 }
            subscriptions.append(QuerySubscription<Task>(name: "all"))
        })
        configuration.objectTypes = [Task.self, Team.self, Reading.self]
        configuration.fileURL = folder.url.appendingPathComponent("crowd.realm")
        let shared = configuration
        let counts = Mutex<[Int]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            let count = (try? Realm(configuration: shared))?.subscriptions.count
            counts.withLock { $0.append(count ?? -1) }
        }
        #expect(counts.withLock { $0 } == Array(repeating: 1, count: 8))
        #expect(runs.withLock { $0 } == 1)
    }

    // MARK: Options

    @Test func `another limit, order or other links under a name are refused, or overwritten`() async throws {
        typealias Options = SyncSubscriptionOptions
        let tasks = realm.objects(Task.self)
        let ascending = [SortDescriptor(keyPath: "progressMinutes")]
        func subscribe(_ options: Options, to results: Results<Task>? = nil) async throws {
            try await (results ?? tasks).subscribe(options: options, waitForSync: .never)
        }
        try await subscribe(Options(name: "n", limit: 5, sort: ascending))
        for other in [
            Options(name: "n", limit: 6, sort: ascending), Options(name: "n", limit: 5), Options(name: "n"),
            Options(name: "n", limit: 5, sort: ascending, distinct: ["progressMinutes"]),
            Options(name: "n", limit: 5, sort: [SortDescriptor(keyPath: "progressMinutes", ascending: false)]),
        ] {
            let error = await #expect(throws: Realm.Error.self) { try await subscribe(other) }
            #expect(error?.message.contains("different limit, order, DISTINCT or links") == true, "\(other)")
        }
        // The results' own order is one.
        try await subscribe(Options(name: "n", limit: 5), to: tasks.sorted(byKeyPath: "progressMinutes"))
        try await subscribe(Options(name: "n", overwriteExisting: true, limit: 6))
        #expect(realm.subscriptions.count == 1)
        // Without a name each is a subscription of its own.
        for _ in 0..<2 {
            try await subscribe(Options())
            try await subscribe(Options(limit: 1))
        }
        #expect(realm.subscriptions.count == 3)
    }

    @Test func `a time to live stays as it is, and begins again, unless it is overwritten`() async throws {
        let tasks = realm.objects(Task.self)
        for name in ["n", nil] {
            func subscribe(_ seconds: Double?, _ overwrite: Bool = false) async throws -> TimeInterval? {
                try await tasks.subscribe(
                    options: SyncSubscriptionOptions(name: name, overwriteExisting: overwrite, timeToLive: seconds), waitForSync: .never)
                return realm.subscriptions.first { $0.name == name }?.timeToLive
            }
            #expect(try await subscribe(60) == 60)
            #expect(try await subscribe(nil) == 60)
            #expect(try await subscribe(90) == 60)
            #expect(try await subscribe(90, true) == 90)
            #expect(try await subscribe(nil, true) == nil)
            // RealmSwift's own call has no such option, and changes none.
            #expect(try await subscribe(60, true) == 60)
            try await tasks.subscribe(name: name, waitForSync: .never)
            #expect(realm.subscriptions.first { $0.name == name }?.timeToLive == 60)
        }
    }

    @Test func `an unnamed subscription that is added again keeps its time to live, which begins again`() throws {
        let set = realm.subscriptions
        var isRefused = false
        set.update {
            do {
                try set.append(QuerySubscription<Task>(), options: SyncSubscriptionOptions(timeToLive: 60))
            } catch {
                isRefused = true
            }
        }
        let first = try #require(set.first)
        set.update { set.append(QuerySubscription<Task>()) }
        let again = try #require(set.first)
        #expect(!isRefused && set.count == 1 && again.timeToLive == 60)
        #expect(try #require(again.expiresAt) > #require(first.expiresAt))
    }

    // MARK: Time to live

    /// The handle shows the set as it was, and its update begins with that, whether or not the newest has lost the subscription by itself.
    @Test func `a subscription with a time to live is not in a set that an older handle makes when its time is over`() throws {
        let set = realm.subscriptions
        var isRefused = false
        set.update {
            do {
                try set.append(QuerySubscription<Task>(name: "short"), options: SyncSubscriptionOptions(timeToLive: 0.02))
                try set.append(QuerySubscription<Team>(), options: SyncSubscriptionOptions(timeToLive: 3_600))
            } catch {
                isRefused = true
            }
        }
        let short = try #require(set.first(named: "short"))
        #expect(!isRefused && short.timeToLive == 0.02)
        #expect(try #require(short.expiresAt).timeIntervalSince(short.updatedAt) - 0.02 < 0.000_1)
        #expect(set.last?.expiresAt != nil)
        while try Date() <= #require(short.expiresAt) {}
        #expect(set.count == 2)
        set.update { set.append(QuerySubscription<Task>(name: "other")) }
        #expect(names(set) == "-other" && set.last?.expiresAt == nil)
    }

    @Test func `a subscription with a time to live goes when it is over and the file is opened`() async throws {
        let configuration = try TemporaryFolder().synced()
        let ends: Date
        do {
            let realm = try open(configuration)
            try await realm.objects(Team.self).subscribe(options: SyncSubscriptionOptions(timeToLive: -1), waitForSync: .never)
            try await realm.objects(Task.self).subscribe(
                options: SyncSubscriptionOptions(name: "short", timeToLive: 0.5), waitForSync: .never)
            ends = try #require(realm.subscriptions.first(named: "short")?.expiresAt)
        }
        while Date() <= ends {}
        let set = try open(configuration).subscriptions
        #expect(set.count == 1 && set.first?.expiresAt == nil)
    }

    @Test func `an existing name is renewed, refused or overwritten, and never given to another class`() async throws {
        func subscribe(_ minutes: Int, _ overwrite: Bool = false) async throws {
            try await realm.objects(Task.self).where { $0.progressMinutes > minutes }.subscribe(
                options: SyncSubscriptionOptions(name: "n", overwriteExisting: overwrite, timeToLive: 60), waitForSync: .never)
        }
        try await subscribe(1)
        let first = try #require(realm.subscriptions.first(named: "n"))
        try await subscribe(1)
        let renewed = try #require(realm.subscriptions.first(named: "n"))
        #expect(renewed.createdAt == first.createdAt && renewed.updatedAt > first.updatedAt)
        #expect(try #require(renewed.expiresAt) > #require(first.expiresAt))
        let error = await #expect(throws: Realm.Error.self) { try await subscribe(2) }
        #expect(error?.code == .subscriptionFailed && error?.message.contains("with a different query") == true)
        try await subscribe(2, true)
        #expect(realm.subscriptions.first(ofType: Task.self, where: "progressMinutes > 2")?.name == "n")
        await #expect(throws: Realm.Error.self) {
            _ = try await realm.objects(Team.self).subscribe(
                options: SyncSubscriptionOptions(name: "n", overwriteExisting: true), waitForSync: .never)
        }
    }
}
