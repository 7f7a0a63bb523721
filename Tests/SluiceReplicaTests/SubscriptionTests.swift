import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import Testing

@Suite struct SubscriptionTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test func `a new file has the empty set of version 0`() async throws {
        let replica = try await Replica.make(folder, subscribed: false)
        let set = try replica.currentSubscriptionSet()
        #expect(set == StoredSubscriptionSet(version: 0, state: .complete, subscriptions: []))
    }

    @Test func `a committed set is pending and comes back as it was`() async throws {
        let replica = try await Replica.make(folder, subscribed: false)
        let subscriptions = [subscription("Todo", "priority > 1", id: 4, name: "urgent"), subscription("Todo", "TRUEPREDICATE", id: 5)]
        let version = try replica.addSubscriptionSet(subscriptions)
        #expect(version == 1)
        let expected = StoredSubscriptionSet(version: 1, state: .pending, subscriptions: subscriptions)
        #expect(try replica.currentSubscriptionSet() == expected)
        #expect(try await replica.latestSubscriptionSet() == expected)
    }

    @Test func `completion supersedes older sets and an error does not`() async throws {
        let replica = try await Replica.make(folder)
        let second = try replica.addSubscriptionSet([subscription("Todo", "bad")])
        try await replica.setSubscriptionState(version: second, .error(code: 226, message: "bad"))
        #expect(try replica.subscriptionSet(version: 1).state == .complete)
        #expect(try replica.subscriptionSet(version: second).state == .error(code: 226, message: "bad"))
        let third = try replica.addSubscriptionSet([])
        try await replica.beginBootstrap(version: third)
        #expect(try replica.subscriptionSet(version: third).state == .bootstrapping)
        try await replica.endBootstrap(version: third, lsn: LSN(rawValue: 1), types: [0])
        #expect(try replica.subscriptionSet(version: third).state == .complete)
        #expect(try replica.subscriptionSet(version: second).state == .superseded)
        #expect(try replica.subscriptionSet(version: 1).state == .superseded)
    }

    @Test func `waiting for a set ends with its answer`() async throws {
        let replica = try await Replica.make(folder, subscribed: false)
        let version = try replica.addSubscriptionSet([subscription("Todo", "TRUEPREDICATE")])
        async let answer = replica.answer(toSubscriptionSet: version)
        try await replica.setSubscriptionState(version: version, .bootstrapping)
        try await replica.setSubscriptionState(version: version, .complete)
        #expect(try await answer == .complete)
    }
}
