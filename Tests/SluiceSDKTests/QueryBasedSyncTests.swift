import Foundation
import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import SluiceSDK
import TestSupport
import Testing

/// The rules of query-based sync's subscriptions that need no server; its scenarios have the others.
@MainActor @Suite struct QueryBasedSyncTests {
    let folder: TemporaryFolder
    let realm: Realm

    init() throws {
        folder = try TemporaryFolder()
        realm = try Realm(configuration: try folder.synced([Terrier.self, Walker.self, Task.self]))
    }

    private func dogs(_ age: Int) -> Results<Terrier> { realm.objects(Terrier.self).where { $0.age > age } }

    /// The server's answer to the newest set: everything that it asks for, which is nothing.
    private func answer() async throws { try await Self.answer(_replica(of: realm)) }

    private nonisolated static func answer(_ replica: Replica) async throws {
        let version = try await replica.latestSubscriptionSet().version
        try await replica.beginBootstrap(version: version)
        try await replica.endBootstrap(version: version, lsn: LSN(rawValue: version), types: [])
    }

    private func includes(_ name: String) async throws -> [String] {
        let set = try await _replica(of: realm).latestSubscriptionSet()
        return set.subscriptions.first { $0.name == name }?.options.includes ?? []
    }

    @Test func `one query twice without a name is one subscription, which one call ends`() {
        let (first, second) = (dogs(3).subscribe(named: nil), dogs(3).subscribe(named: nil))
        #expect(realm.legacySubscriptions().count == 1 && first.name == nil && second.query == "age > 3")
        dogs(4).subscribe(named: nil)
        #expect(realm.legacySubscriptions().count == 2)
        second.unsubscribe()
        #expect(first.state == .invalidated && second.state == .invalidated && realm.legacySubscriptions().map(\.query) == ["age > 4"])
        // There is nothing left to end.
        first.unsubscribe()
        #expect(realm.legacySubscriptions().count == 1)
    }

    @Test func `subscribing again renews the times of what is there`() throws {
        let first = dogs(3).subscribe(named: "dogs", timeToLive: 100)
        let (created, updated, expires) = (first.createdAt, try #require(first.updatedAt), try #require(first.expiresAt))
        let second = dogs(3).subscribe(named: "dogs", timeToLive: 100)
        #expect(try #require(second.updatedAt) > updated && #require(second.expiresAt) > expires)
        #expect(second.createdAt == created && first.expiresAt == second.expiresAt && second.timeToLive == 100)
        // Overwritten with what it has.
        let (renewed, ends) = (try #require(second.updatedAt), try #require(second.expiresAt))
        let third = dogs(3).subscribe(named: "dogs", update: true, timeToLive: 100)
        #expect(try #require(third.updatedAt) > renewed && #require(third.expiresAt) > ends && third.createdAt == created)
        #expect(realm.legacySubscriptions().count == 1)
    }

    @Test func `another limit without a name is another subscription, under a name an error unless it is to be updated`() throws {
        dogs(3).subscribe(named: nil)
        let one = dogs(3).subscribe(named: nil, limit: 1)
        #expect(realm.legacySubscriptions().count == 2)
        one.unsubscribe()
        #expect(realm.legacySubscriptions().count == 1)
        let named = dogs(3).subscribe(named: "dogs", limit: 1, timeToLive: 100)
        guard case .error = dogs(3).subscribe(named: "dogs", limit: 5).state else {
            Issue.record("the limit was overwritten")
            return
        }
        dogs(3).subscribe(named: "dogs", limit: 1)
        #expect(named.timeToLive == 100)
        dogs(3).subscribe(named: "dogs", limit: 5, update: true)
        #expect(named.timeToLive == nil && named.state == .pending)
    }

    @Test func `another query under a name is an error, unless it is to be updated`() async throws {
        let first = dogs(3).subscribe(named: "dogs")
        try await answer()
        #expect(first.state == .complete)
        guard case .error(let error) = dogs(5).subscribe(named: "dogs").state else {
            Issue.record("the name was given another query")
            return
        }
        #expect("\(error)".contains("An existing subscription exists with the name 'dogs' but with a different query"))
        #expect(first.query == "age > 3" && first.state == .complete && first.timeToLive == nil)
        let updated = dogs(5).subscribe(named: "dogs", update: true, timeToLive: 60)
        #expect(updated.state == .pending && first.query == "age > 5" && first.timeToLive == 60)
        #expect(realm.legacySubscription(named: "dogs")?.query == "age > 5" && realm.legacySubscription(named: "cats") == nil)
    }

    @Test func `one that the server refuses is an error with its text, and so are the others of the set until it goes`() async throws {
        let first = dogs(3).subscribe(named: "dogs")
        try await answer()
        let bad = dogs(4).subscribe(named: "bad")
        let other = dogs(5).subscribe(named: "other")
        let replica = _replica(of: realm)
        let version = try await replica.latestSubscriptionSet().version
        try await replica.setSubscriptionState(version: version, .error(code: 310, message: "age is not queryable"))
        for subscription in [bad, other] {
            guard case .error(let error) = subscription.state else {
                Issue.record("\(subscription.state)")
                continue
            }
            #expect("\(error)".contains("age is not queryable"))
        }
        // What the set before had is here.
        #expect(first.state == .complete)
        bad.unsubscribe()
        #expect(bad.state == .invalidated && other.state == .pending)
        try await answer()
        #expect(other.state == .complete && first.state == .complete)
    }

    @Test func `an update with the query that is there goes on being complete`() async throws {
        let first = dogs(3).subscribe(named: "dogs")
        try await answer()
        dogs(3).subscribe(named: "dogs", update: true, timeToLive: 60)
        #expect(first.state == .complete && first.timeToLive == 60)
    }

    @Test func `a name is never given to another class`() {
        let first = dogs(3).subscribe(named: "dogs")
        for update in [false, true] {
            guard case .error(let error) = realm.objects(Walker.self).subscribe(named: "dogs", update: update).state else {
                Issue.record("the name was given to another class")
                continue
            }
            #expect("\(error)".contains("for class Terrier"))
        }
        #expect(first.state == .pending && realm.legacySubscriptions().count == 1)
    }

    @Test func `no time, less than none and more than there is mean forever`() {
        for (index, seconds) in ([nil, 0, -1, .nan, .infinity, .greatestFiniteMagnitude, 1e16] as [Double?]).enumerated() {
            let subscription = dogs(index).subscribe(named: "\(index)", limit: 0, timeToLive: seconds)
            #expect(subscription.state == .pending, "\(seconds ?? -1)")
            #expect(subscription.expiresAt.map { $0 > .distantFuture } ?? true, "\(seconds ?? -1)")
        }
        #expect(realm.legacySubscriptions().count == 7)
    }

    @Test func `an observer hears what became of it, and where it began when it asks to`() async throws {
        let subscription = dogs(3).subscribe(named: "dogs")
        let (states, state) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let (others, other) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let tokens = [
            subscription.observe(\.state, options: [.initial, .new]) { state.yield("\($0)") },
            subscription.observe(\.state) { other.yield("\($0)") },
        ]
        var (told, heard) = (states.makeAsyncIterator(), others.makeAsyncIterator())
        #expect(await told.next(isolation: #isolation) == "pending")
        try await answer()
        #expect(await told.next(isolation: #isolation) == "complete")
        #expect(await heard.next(isolation: #isolation) == "complete")
        subscription.unsubscribe()
        #expect(await told.next(isolation: #isolation) == "invalidated")
        for token in tokens { token.invalidate() }
    }

    @Test func `an observer hears of an answer that comes while it is told where it began`() async throws {
        let subscription = dogs(3).subscribe(named: "dogs")
        let replica = _replica(of: realm)
        let (states, state) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingOldest(8))
        var isFirst = true
        let token = subscription.observe(\.state, options: .initial) {
            state.yield("\($0)")
            guard isFirst else { return }
            isFirst = false
            let answered = DispatchSemaphore(value: 0)
            _Concurrency.Task.detached {
                defer { answered.signal() }
                try await Self.answer(replica)
            }
            #expect(answered.wait(timeout: .now() + 60) == .success)
        }
        // Should it never hear, it ends here.
        let deadline = alarm { state.finish() }
        var told = states.makeAsyncIterator()
        #expect(await told.next(isolation: #isolation) == "pending")
        #expect(await told.next(isolation: #isolation) == "complete")
        deadline.cancel()
        token.invalidate()
    }

    @Test func `links come along by themselves, inverse links when they are named, and with them what they link to`() async throws {
        dogs(1).subscribe(named: "plain")
        #expect(try await includes("plain") == [])
        realm.objects(Walker.self).subscribe(named: "walkers")
        #expect(try await includes("walkers") == ["favourite", "hounds", "pack"])
        dogs(1).subscribe(named: "inverse", includingLinkingObjects: ["walkers"])
        let expected = ["favourite", "hounds", "pack"].map { "@links.Walker.hounds.\($0)" }
        #expect(try await includes("inverse") == expected)
        // Through a link of the way, there and back.
        realm.objects(Walker.self).subscribe(named: "through", includingLinkingObjects: ["favourite.walkers"])
        #expect(
            try await includes("through") == [
                "favourite", "hounds", "pack", "favourite.@links.Walker.hounds.favourite", "favourite.@links.Walker.hounds.hounds",
                "favourite.@links.Walker.hounds.pack",
            ])
    }

    @Test func `paths that do not end in inverse links end the program`() async {
        func ends(_ text: String, _ result: ExitTest.Result?) { #expect(message(result).contains(text)) }
        ends(
            "Invalid key path 'owners': 'Terrier.owners' is no link.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try QueryBasedSyncTests.subscribe(["owners"])
            })
        ends(
            "Invalid key path 'chip.city': 'Terrier.chip' is no link.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try QueryBasedSyncTests.subscribe(["chip.city"])
            })
        ends(
            "Invalid key path 'walkers.favourite': it does not end in LinkingObjects.",
            await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
                try QueryBasedSyncTests.subscribe(["walkers.favourite"])
            })
    }

    private nonisolated static func subscribe(_ paths: [String]) throws {
        let realm = try Realm(configuration: try TemporaryFolder().synced([Terrier.self, Walker.self]))
        realm.objects(Terrier.self).subscribe(named: nil, includingLinkingObjects: paths)
    }
}
