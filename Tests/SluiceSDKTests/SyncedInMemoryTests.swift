import Foundation
import SluiceSDK
import Testing

/// Synced Realms with an `inMemoryIdentifier`, as RealmSwift has them since 10.46.
@Suite(.timeLimit(.minutes(1))) struct SyncedInMemoryTests {
    let folder: TemporaryFolder
    let memory: Realm.Configuration

    init() throws {
        folder = try TemporaryFolder()
        var memory = try folder.synced()
        memory.inMemoryIdentifier = "synced/\(folder.url.lastPathComponent)"
        self.memory = memory
    }

    private func open() throws -> Realm { try Realm(configuration: memory) }

    private func write(_ realm: Realm) async throws {
        try await realm.objects(Task.self).subscribe(name: "all", waitForSync: .never)
        try realm.write { realm.add(Task()) }
    }

    @Test func `such a Realm is one for the whole process and has a session`() async throws {
        #expect(memory.fileURL == nil)
        let realm = try open()
        try await write(realm)
        let memory = memory
        #expect(try await onThread { try Realm(configuration: memory).objects(Task.self).count } == 1)
        #expect(realm.subscriptions.state == .pending && realm.syncSession?.state == .active && Realm.fileExists(for: memory))
    }

    @Test func `it begins anew when it is opened again, and leaves no file behind`() async throws {
        for _ in 0..<5 {
            let realm = try open()
            #expect(realm.isEmpty && realm.subscriptions.isEmpty)
            try await write(realm)
            // What the one before leaves behind goes while this one is open, and takes nothing of it along.
            #expect(realm.objects(Task.self).count == 1)
            let memory = memory
            #expect(try await onThread { try Realm(configuration: memory).objects(Task.self).count } == 1)
        }
        // The session ends a moment after its last Realm.
        while Realm.fileExists(for: memory) { await _Concurrency.Task.yield() }
        let name = folder.url.lastPathComponent
        let left = try FileManager.default.contentsOfDirectory(atPath: FileManager.default.temporaryDirectory.path)
            .filter { $0.contains(name) && $0 != name }
        #expect(left.isEmpty, "\(left)")
    }
}
