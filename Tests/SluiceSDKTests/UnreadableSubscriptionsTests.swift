import Synchronization
import Testing

@testable import SluiceSDK

/// What a Realm gives for its subscriptions when they cannot be read: nothing that a disk does ends the program.
@Suite struct UnreadableSubscriptionsTests {
    @Test func `a set that cannot be read is empty, says why, and is not written over what is there`() async throws {
        let folder = try TemporaryFolder()
        let realm = try await Realm(configuration: folder.synced())
        try await realm.objects(Task.self).subscribe(name: "kept", waitForSync: .never)
        let set = SyncSubscriptionSet(file: realm.core.file, unreadable: Realm.Error(.invalidDatabase, "page 7"))
        #expect(set.isEmpty && set.first(named: "kept") == nil && set.error as? Realm.Error == Realm.Error(.invalidDatabase, "page 7"))
        await #expect(throws: Realm.Error.self) { try await set.update { Issue.record("it must not begin") } }
        let told: (any Error)? = await withCheckedContinuation { told in
            set.update({ Issue.record("it must not begin") }, onComplete: { told.resume(returning: $0) })
        }
        #expect((told as? Realm.Error)?.code == .invalidDatabase && realm.subscriptions.first(named: "kept") != nil)
    }
}
