import Foundation
import ReplicaTestSupport
import SluiceReplica
import SluiceSDK
import Testing

/// What may be written to a synced Realm, by what it is subscribed to.
@Suite struct SubscribedWritesTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: try folder.synced([Task.self, Team.self, Reading.self, Resident.self]))
    }

    private func change(_ block: (SyncSubscriptionSet) -> Void) {
        let set = realm.subscriptions
        set.update { block(set) }
    }

    private func add(_ minutes: Int = 0) throws { try realm.write { realm.add(Task(value: ["progressMinutes": minutes])) } }

    private func expectRefusal(of name: String, _ body: () throws -> Void, at place: SourceLocation = #_sourceLocation) {
        let error = #expect(throws: Realm.Error.self, sourceLocation: place, performing: body)
        #expect(error?.code == .noSubscriptionForWrite, sourceLocation: place)
        let text = "Cannot write to class \(name) when no flexible sync subscription has been created."
        #expect(error?.message.contains(text) == true, sourceLocation: place)
    }

    @Test func `a class without a subscription cannot be written, and the error says which`() throws {
        expectRefusal(of: "Task") { try add() }
        change { $0.append(QuerySubscription<Team>()) }
        expectRefusal(of: "Task") { try add() }
        try realm.write { realm.add(Team()) }
        #expect(realm.objects(Task.self).isEmpty && realm.objects(Team.self).count == 1 && !realm.isInWriteTransaction)
    }

    @Test func `removing all subscriptions is allowed, writing after it is not`() throws {
        change { $0.append(QuerySubscription<Task>(), QuerySubscription<Task>(name: "again")) }
        try add()
        change { $0.removeAll() }
        let task = try #require(realm.objects(Task.self).first)
        expectRefusal(of: "Task") { try add() }
        expectRefusal(of: "Task") { try realm.write { task.taskName = "changed" } }
        expectRefusal(of: "Task") { try realm.write { realm.delete(task) } }
        #expect(realm.objects(Task.self).count == 1 && task.taskName == "")
    }

    @Test func `the newest set counts, whatever has become of it`() async throws {
        change { $0.append(QuerySubscription<Task>(name: "a")) }
        let states: [SubscriptionState] = [.pending, .error(code: 310, message: "not queryable"), .complete]
        for (count, state) in states.enumerated() {
            if count > 0 { try await _replica(of: realm).setSubscriptionState(version: UInt64(count + 1), state) }
            try add()
            #expect(realm.objects(Task.self).count == count + 1)
            change { $0.first(named: "a")?.updateQuery(to: "progressMinutes > %@", count) }
        }
    }

    @Test func `an object that no subscription matches is written all the same`() throws {
        change { $0.append(QuerySubscription<Task> { $0.progressMinutes > 100 }) }
        try add(1)
        #expect(realm.objects(Task.self).map(\.progressMinutes) == [1])
    }

    @Test func `embedded and asymmetric objects need no subscription of their own`() async throws {
        change { $0.append(QuerySubscription<Resident>()) }
        try realm.write {
            realm.create(Resident.self, value: ["_id": 1, "home": ["street": "Elm", "country": ["code": "DE"]]] as [String: Any])
            realm.create(Reading.self, value: ["celsius": 3])
        }
        #expect(realm.objects(Resident.self).first?.home?.country?.code == "DE")
        #expect(try await _replica(of: realm).pendingIngest(after: 0)?.objects.count == 1)
    }
}
