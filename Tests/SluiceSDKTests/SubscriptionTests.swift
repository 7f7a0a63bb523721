import Foundation
import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import SluiceSDK
import Synchronization
import TestSupport
import Testing

@Suite struct SubscriptionTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `subscriptions are added, found, changed and removed in updates`() throws {
        let realm = try Realm(configuration: try folder.synced())
        let subscriptions = realm.subscriptions
        #expect(subscriptions.count == 0 && subscriptions.state == .complete)
        subscriptions.update {
            subscriptions.append(
                QuerySubscription<Task>(name: "long-running-completed") { $0.completed == true && $0.progressMinutes > 120 })
            subscriptions.append(QuerySubscription<Team> { $0.teamName == "Developer Education" })
            subscriptions.append(QuerySubscription<Team> { $0.teamName == "Developer Education" })
        }
        #expect(subscriptions.count == 2 && subscriptions.state == .pending)
        #expect(subscriptions.first(named: "long-running-completed")?.name == "long-running-completed")
        #expect(subscriptions.first(ofType: Team.self, where: { $0.teamName == "Developer Education" }) != nil)
        #expect(subscriptions.first(ofType: Team.self, where: "teamName == %@", "Developer Education") != nil)
        subscriptions.update {
            if let found = subscriptions.first(ofType: Team.self, where: { $0.teamName == "Developer Education" }) {
                found.updateQuery(toType: Team.self, where: { $0.teamName == "Documentation" })
            }
        }
        #expect(subscriptions.first(ofType: Team.self, where: { $0.teamName == "Documentation" }) != nil)
        #expect(subscriptions.count == 2)
        subscriptions.update { subscriptions.removeAll(unnamedOnly: true) }
        #expect(subscriptions.count == 1)
        subscriptions.update { subscriptions.remove(named: "long-running-completed") }
        #expect(realm.subscriptions.count == 0)
    }

    @Test func `an old handle reads as superseded`() async throws {
        let realm = try await Realm(configuration: try folder.synced())
        let old = realm.subscriptions
        old.update({ old.append(QuerySubscription<Task>(name: "a")) }, onComplete: nil)
        let new = realm.subscriptions
        new.update({ new.append(QuerySubscription<Task>(name: "b")) }, onComplete: nil)
        try await _replica(of: realm).setSubscriptionState(version: 2, .complete)
        #expect(old.state == .superseded && new.state == .complete)
    }

    @Test func `an update ends with the server's answer`() async throws {
        let realm = try await Realm(configuration: try folder.synced())
        let replica = _replica(of: realm)
        let answer = replica.onLocalChange {
            _Concurrency.Task {  // Unstructured because: the engine's place is taken by the test.
                let set = try await replica.latestSubscriptionSet()
                let isBad = set.subscriptions.contains { $0.query.contains("bad") }
                try await replica.setSubscriptionState(
                    version: set.version, isBad ? .error(code: 226, message: "not queryable: bad") : .complete)
            }
        }
        defer { replica.removeObserver(answer) }
        let subscriptions = realm.subscriptions
        try await subscriptions.update { subscriptions.append(QuerySubscription<Task>(name: "all")) }
        #expect(subscriptions.state == .complete)
        let error = await #expect(throws: Realm.Error.self) {
            try await subscriptions.update { subscriptions.append(QuerySubscription<Task>(name: "x") { $0.taskName == "bad" }) }
        }
        #expect(error?.code == .subscriptionFailed && error?.message.contains("not queryable") == true)
        let results = try await realm.objects(Team.self).where { $0.teamName == "T" }.subscribe(name: "team", waitForSync: .never)
        #expect(results.count == 0 && realm.subscriptions.first(named: "team") != nil)
        results.unsubscribe()
        #expect(realm.subscriptions.first(named: "team") == nil)
    }

    /// A Realm of its own and what it does with its subscriptions.
    private actor Keeper {
        func subscribe(_ configuration: Realm.Configuration) async throws -> [String?] {
            let realm = try await Realm(configuration: configuration, actor: self)
            let subscriptions = realm.subscriptions
            try await subscriptions.update {
                subscriptions.append(QuerySubscription<Task>(name: "of an actor"))
            }
            assertIsolated()
            return realm.subscriptions.map(\.name)
        }
    }

    @MainActor @Test(.timeLimit(.minutes(1))) func `the block of an update that waits runs at once, where it is written`() async throws {
        let configuration = try folder.synced()
        let realm = try await Realm(configuration: configuration)
        let replica = _replica(of: realm)
        let answer = replica.onLocalChange {
            // Unstructured because: the engine's place is taken by the test.
            _Concurrency.Task { try await replica.setSubscriptionState(version: replica.latestSubscriptionSet().version, .complete) }
        }
        defer { replica.removeObserver(answer) }
        let subscriptions = realm.subscriptions
        var ran: [String] = []
        try await subscriptions.update {
            MainActor.assertIsolated()
            ran.append("block")
            subscriptions.append(QuerySubscription<Team>(name: "of the main actor"))
        }
        ran.append("after")
        #expect(ran == ["block", "after"] && subscriptions.state == .complete)
        #expect(try await Keeper().subscribe(configuration) == ["of the main actor", "of an actor"])
    }

    @Test func `writing a class that is not subscribed fails by name`() throws {
        let realm = try Realm(configuration: try folder.synced())
        #expect {
            try realm.write { realm.add(Task()) }
        } throws: { error in
            if case Realm.Error.noSubscriptionForWrite = error { true } else { false }
        }
        #expect(realm.objects(Task.self).isEmpty)
    }

    @Test func `initial subscriptions are there when the Realm is opened`() throws {
        var configuration = try folder.user().flexibleSyncConfiguration(initialSubscriptions: { subs in
            subs.append(QuerySubscription<Team> { $0.teamName == "Developer Education" })
        })
        configuration.objectTypes = [Task.self, Team.self]
        let realm = try Realm(configuration: configuration)
        #expect(realm.subscriptions.count == 1 && realm.subscriptions.state == .pending)
        #expect(try Realm(configuration: configuration).subscriptions.count == 1)
        // Not in `mongodb-realm`, where RealmSwift may have left a file of its own format.
        #expect(configuration.fileURL?.pathComponents.suffix(3) == ["tasks", "u1", "flx_sync_default.realm"])
        #expect(configuration.fileURL?.pathComponents.contains("mongodb-realm") == false)
        try realm.write { realm.add(Team(value: ["teamName": "mine"])) }
        #expect(realm.objects(Team.self).count == 1)
    }

    @Test func `asymmetric objects leave the Realm at once and wait to be sent`() async throws {
        let realm = try await Realm(configuration: try folder.synced())
        try realm.write { realm.create(Reading.self, value: ["celsius": 21.5]) }
        let batch = try await _replica(of: realm).pendingIngest(after: 0)
        #expect(batch?.objects.count == 1)
        #expect(batch?.objects.first?.values["celsius"] == .double(21.5))
    }

    @Test func `Scenario 36: two asymmetric objects with one key are refused with their transaction`() async throws {
        let realm = try await Realm(configuration: try folder.synced())
        let error = #expect(throws: Realm.Error.self) {
            try realm.write {
                for celsius in [1.0, 2] {
                    realm.create(Reading.self, value: ["_id": ObjectId("0123456789abcdef01234567"), "celsius": celsius] as [String: Any])
                }
            }
        }
        #expect(error?.message.contains("Two objects of the asymmetric class Reading have the key") == true)
        #expect(try await _replica(of: realm).pendingIngest(after: 0) == nil)
    }
}
