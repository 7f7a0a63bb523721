import Dispatch
import Foundation
import SluiceCore
import SluiceReplica
import SluiceSDK
import Testing

/// What the end of a subscription set's download shows.
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
        // Unstructured because: the caller must not leave the main thread.
        _Concurrency.Task.detached {
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
}
