import Foundation
import SluiceReplica
import SluiceSDK
import Testing

/// Several who look at and change one Realm's subscriptions at a time.
@Suite struct ConcurrentSubscriptionTests {
    let folder: TemporaryFolder
    let configuration: Realm.Configuration

    init() throws {
        folder = try TemporaryFolder()
        configuration = try folder.synced()
    }

    @Test(.timeLimit(.minutes(1))) func `everything that is subscribed to at once is in the set, with a number of its own`() async throws {
        let realm = try await Realm(configuration: configuration)
        let (threads, each) = (4, 25)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for thread in 0..<threads { group.addTask { try await subscribe(thread, each) } }
            try await group.waitForAll()
        }
        let set = try _replica(of: realm).currentSubscriptionSet().subscriptions
        #expect(set.count == threads * each && Set(set.compactMap(\.name)).count == threads * each)
        #expect(Set(set.map(\.id)).count == threads * each)
    }

    // The pool of tasks may have one thread only.
    private func subscribe(_ thread: Int, _ count: Int) async throws {
        let states = try await onThread { [configuration] in
            let realm = try Realm(configuration: configuration)
            return (0..<count).map { number in
                realm.objects(Task.self).where { $0.progressMinutes > number }.subscribe(named: "\(thread)-\(number)").state
            }
        }
        #expect(states.allSatisfy { $0 == .pending })
    }

    @Test func `updates that overlap do not share numbers`() throws {
        let realm = try Realm(configuration: configuration)
        let (outer, inner) = (realm.subscriptions, realm.subscriptions)
        outer.update {
            inner.update { inner.append(QuerySubscription<Task>(name: "inner")) }
            outer.append(QuerySubscription<Team>(name: "outer"))
        }
        let replica = _replica(of: realm)
        let ids = try [1, 2].map { try replica.subscriptionSet(version: $0).subscriptions.map(\.id) }
        #expect(ids[0].count == 1 && ids[1].count == 1 && ids[0] != ids[1], "\(ids)")
    }

    @Test(.timeLimit(.minutes(1))) func `the set is read within a write transaction, and while others write`() async throws {
        let realm = try await Realm(configuration: configuration)
        try await realm.objects(Task.self).subscribe(name: "all", waitForSync: .never)
        try realm.write {
            #expect(realm.subscriptions.first(named: "all") != nil && realm.subscriptions.state == .pending)
            realm.create(Task.self, value: ["taskName": "written"])
        }
        let writing = try _replica(of: realm).beginWrite()
        #expect(realm.subscriptions.count == 1)
        writing.cancel()
    }
}
