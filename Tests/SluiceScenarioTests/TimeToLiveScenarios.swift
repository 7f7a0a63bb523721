import Foundation
import GatewayTestSupport
import SluiceSDK
import Testing

/// Subscriptions that go by themselves.
extension `Beyond Flexible Sync` {
    /// Subscribes to ships for some seconds, and to others for an hour.
    /// - Returns: when the first are over.
    @MainActor
    private static func subscribe(_ harbour: Harbour, briefly: String, for seconds: Double, lasting: String) async throws -> Date {
        let set = harbour.realm.subscriptions
        try await set.update {
            for (query, seconds) in [(briefly, seconds), (lasting, 3_600.0)] {
                do {
                    try set.append(
                        QuerySubscription<Ship>(name: query, where: query), options: SyncSubscriptionOptions(timeToLive: seconds))
                } catch {
                    Issue.record(error)
                }
            }
        }
        return try #require(set.first(named: briefly)?.expiresAt)
    }

    @MainActor
    @Test func `a subscription goes by itself when its time is over, and what it alone brought leaves`() async throws {
        try await Self.with { gateway in
            let harbour = try await Harbour.open(gateway)
            let (leaving, news) = AsyncStream<String>.makeStream()
            let token = harbour.realm.observeLeaving { objects in
                for object in objects { news.yield("\(object.primaryKey.stringValue ?? "") \(object.reason)") }
            }
            let ends = try await Self.subscribe(harbour, briefly: "size < 35", for: 1, lasting: "size > 25")
            // Nothing but the time changes the set.
            var left: Set<String> = []
            for await object in leaving where left.insert(object).inserted && left.count == 2 { break }
            #expect(left == ["s1 leftQuery", "s2 leftQuery"] && Date() >= ends)
            token.invalidate()
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s3", "s4", "s5"] && harbour.realm.subscriptions.map(\.name) == ["size > 25"])
            // What lasts is live.
            try await gateway.sql(#"INSERT INTO "Ship" (_id, size) VALUES ('s6', 60), ('s0', 1)"#)
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s3", "s4", "s5", "s6"] && harbour.said.all.isEmpty, "\(harbour.ships) \(harbour.said.all)")
        }
    }

    @MainActor
    @Test func `a subscription whose time is over goes when the app begins again, and what it alone brought leaves`() async throws {
        try await Self.with { gateway in
            // The Realm goes with its last user.
            @MainActor func subscribed() async throws -> (Realm.Configuration, Phone.Said, Phone.Folder, Date) {
                let harbour = try await Harbour.open(gateway)
                let ends = try await Self.subscribe(harbour, briefly: "size < 35", for: 5, lasting: "size > 25")
                #expect(harbour.ships == ["s1", "s2", "s3", "s4", "s5"])
                return (harbour.realm.configuration, harbour.said, harbour.folder, ends)
            }
            let (configuration, said, folder, ends) = try await subscribed()
            let left = ends.timeIntervalSinceNow
            // Time is what ends the subscription, while the app is closed.
            if left >= 0 { try await _Concurrency.Task.sleep(for: .seconds(left + 0.001)) }
            let harbour = try await Harbour.open(again: configuration, said, folder)
            #expect(harbour.realm.subscriptions.map(\.name) == ["size > 25"])
            try await harbour.realm.waitUntilSynced(timeout: 60)
            #expect(harbour.ships == ["s3", "s4", "s5"] && said.all.isEmpty, "\(harbour.ships) \(said.all)")
        }
    }
}
