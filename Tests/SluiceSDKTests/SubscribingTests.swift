import Foundation
import ReplicaTestSupport
import SluiceReplica
import SluiceSDK
import Testing

/// What `subscribe`, `unsubscribe` and the forms of `remove` and `updateQuery` do to the set.
@Suite struct SubscribingTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: try folder.synced())
    }

    // In async code the same words mean the calls that wait.
    private func change(_ set: SyncSubscriptionSet, _ block: () -> Void) { set.update(block) }

    private func texts() async throws -> [String] {
        try await _replica(of: realm).latestSubscriptionSet().subscriptions.map { "\($0.name ?? "-") \($0.type) \($0.query)" }
    }

    @Test func `what already exists is not waited for, with a name or without`() async throws {
        for (minutes, name) in [(1, "done"), (2, nil)] {
            try await realm.objects(Task.self).where { $0.progressMinutes > minutes }.subscribe(name: name, waitForSync: .never)
            let version = try await _replica(of: realm).latestSubscriptionSet().version
            // There is no server: what waited would not come back.
            try await realm.objects(Task.self).where { $0.progressMinutes > minutes }.subscribe(name: name, timeout: 30)
            #expect(try await _replica(of: realm).latestSubscriptionSet().version == version)
        }
    }

    @Test func `results that found their subscription there do not end it`() async throws {
        try await realm.objects(Task.self).where { $0.completed }.subscribe(name: "done", waitForSync: .never)
        let again = realm.objects(Task.self).where { $0.completed }
        try await again.subscribe(name: "done")
        again.unsubscribe()
        #expect(realm.subscriptions.first(named: "done") != nil)
    }

    @Test func `results of results subscribe to all their conditions, and to no order`() async throws {
        let results = realm.objects(Task.self).where { $0.completed }.where { $0.progressMinutes > 5 }
        try await results.sorted(byKeyPath: "progressMinutes").distinct(by: ["progressMinutes"]).subscribe(name: "a", waitForSync: .never)
        let text = try #require(try await texts().first)
        #expect(text.contains("completed == true") && text.contains("progressMinutes > 5"), "\(text)")
        for word in ["SORT", "DISTINCT"] { #expect(!text.uppercased().contains(word), "\(text)") }
    }

    @Test func `a name that was removed in the same update is given anew by a change of its query`() async throws {
        let set = realm.subscriptions
        change(set) { set.append(QuerySubscription<Task>(name: "a"), QuerySubscription<Task>(name: "b")) }
        let named = try #require(set.first(named: "a"))
        change(set) {
            set.remove(named: "a")
            named.updateQuery(to: NSPredicate(format: "progressMinutes > 3"))
        }
        #expect(try await texts() == ["b Task TRUEPREDICATE", "a Task progressMinutes > 3"])
    }

    @Test func `every form of remove takes out what it names`() async throws {
        let set = realm.subscriptions
        func fill() {
            change(set) {
                set.removeAll()
                for minutes in 1...4 { set.append(QuerySubscription<Task> { $0.progressMinutes > minutes }) }
            }
        }
        fill()
        change(set) {
            set.remove(ofType: Task.self) { $0.progressMinutes > 1 }
            set.remove(ofType: Task.self, where: "progressMinutes > %@", 2)
            set.remove(ofType: Task.self, where: NSPredicate(format: "progressMinutes > 3"))
        }
        #expect(try await texts() == ["- Task progressMinutes > 4"])
        fill()
        let (first, third) = (try #require(set[0]), try #require(set[2]))
        change(set) { set.remove(first, third) }
        #expect(Set(try await texts()) == ["- Task progressMinutes > 2", "- Task progressMinutes > 4"])
    }

    @Test func `a set whose rows are coming is pending`() async throws {
        let set = realm.subscriptions
        change(set) { set.append(QuerySubscription<Task>(name: "a")) }
        try await _replica(of: realm).setSubscriptionState(version: 1, .bootstrapping)
        #expect(set.state == .pending)
    }

    @Test func `an upload of nothing is complete at once`() async throws {
        let (steps, step) = AsyncStream<Double>.makeStream()
        let token = try #require(realm.syncSession).addProgressNotification(for: .upload, mode: .forCurrentlyOutstandingWork) {
            step.yield($0.progressEstimate)
        }
        var told = steps.makeAsyncIterator()
        #expect(await told.next() == 1)
        token?.invalidate()
    }
}
