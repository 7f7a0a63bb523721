import SluiceCore
import SluicePorts
import SluiceRealm
import Testing

@testable import SluiceRealmBridge

/// Changesets that took effect ahead of a crash of the gateway. The client sends them again, since it has no acknowledgement.
@Suite(.timeLimit(.minutes(1))) struct `A changeset that is repeated after a crash` {
    private let stage: BridgeStage

    init() async { stage = await BridgeStage(hasLog: true, crashes: true) }

    /// Uploads a changeset, and ends the connection once it has taken effect.
    /// - Parameters:
    ///   - misses: The reads of rows whose snapshots miss a commit of the log.
    ///   - until: A text that must come, perhaps behind several marks; nil for none.
    ///   - isConfirmed: `true` if the client receives the acknowledgement ahead of the crash. Then it repeats nothing.
    /// - Returns: The texts of the instructions that the client receives in the next session, in which it repeats the changeset.
    private func texts(
        _ instructions: [RealmInstruction], then rows: [String: Row?], _ more: [RealmInstruction] = [], misses: Int = 0,
        until: String? = nil, isConfirmed: Bool = false
    ) async throws -> [String] {
        var (file, cursor) = (RealmFileIdent(ident: 0, salt: 0), RealmDownloadCursor())
        try await stage.connect { client in
            file = try await client.begin()
            cursor = try await client.subscribe(1).progress.download
        }
        try await stage.connect { client in
            try Sliced.resume(client, file, cursor, Self.all, then: nil)
            try client.upload(3, base: cursor.serverVersion, time: 400_000_000_000, instructions)
            while await !stage.database.journal.contains("changeset 3"), !Task.isCancelled { await Task.yield() }
            guard isConfirmed else { return }
            for mark in 1...1_000 {
                for case .download(let download) in try await client.catchUp(UInt64(mark))
                where download.progress.upload.clientVersion >= 3 { return }
            }
            Issue.record("no acknowledgement came")
        }
        await stage.sql(rows)
        await stage.database.miss(misses)
        var texts: [String] = []
        try await stage.connect { client in
            try Sliced.resume(client, file, cursor, Self.all, then: nil)
            if !isConfirmed { try client.upload(3, base: cursor.serverVersion, time: 400_000_000_000, instructions) }
            if !more.isEmpty { try client.upload(5, base: cursor.serverVersion, time: 400_000_000_001, more) }
            // An entry that puts an object right may follow a mark.
            for mark in 1...200 where mark <= 3 || until.map({ !texts.contains($0) }) ?? false {
                for case .download(let download) in try await client.catchUp(UInt64(mark)) { texts += try StageClient.texts(download) }
            }
        }
        return texts
    }

    private static let all = RealmQuerySet(version: 1, queries: ["Item": "TRUEPREDICATE"])

    /// The client has the erasure, and sends a change that it made without it after two crashes. The session between them sends nothing.
    @Test func `does not change an object that was erased and made again`() async throws {
        try #require(stage.store as? CrashingClients).keepEntries()
        let theirs = BridgeStage.item("a", "theirs")
        await stage.sql(["a": BridgeStage.item("a", "old")])
        var (file, cursor) = (RealmFileIdent(ident: 0, salt: 0), RealmDownloadCursor())
        try await stage.connect { client in
            file = try await client.begin()
            cursor = try await client.subscribe(1).progress.download
        }
        let base = cursor.serverVersion
        try await stage.connect { client in
            try Sliced.resume(client, file, cursor, Self.all, then: nil)
            _ = try await client.catchUp(1)
            await stage.sql(["a": nil])
            // Both commits in one entry would be a change of the object, without an erasure.
            #expect(try await client.changes() == ["erase a"])
            await stage.sql(["a": theirs])
            for case .download(let download) in try await client.catchUp(2) { cursor = download.progress.download }
        }
        #expect(cursor.serverVersion > base)
        try await stage.connect { client in
            try Sliced.resume(client, file, cursor, Self.all, then: nil)
            _ = try await client.catchUp(1)
        }
        try await stage.connect { client in
            try Sliced.resume(client, file, cursor, Self.all, then: nil)
            try client.upload(3, base: base, time: 400_000_000_000, [.title("a", "mine")])
            _ = await client.messages(through: .acknowledgement(3))
        }
        #expect(await stage.database.row("a") == theirs)
    }

    @Test func `takes the object that it made from the client if it is gone`() async throws {
        let texts = try await texts([.createObject(.item("b")), .title("b", "mine")], then: ["b": nil], until: "erase b")
        #expect(!texts.isEmpty && texts.allSatisfy { $0 == "erase b" }, "\(texts)")
    }

    @Test func `takes the object from a client that has changed it since`() async throws {
        let texts = try await texts([.createObject(.item("b"))], then: ["b": nil], [.title("b", "mine")], until: "erase b")
        #expect(!texts.isEmpty && texts.allSatisfy { $0 == "erase b" }, "\(texts)")
    }

    @Test func `keeps the client's later changes of the object that it made`() async throws {
        let made = BridgeStage.item("b", "theirs", size: 3)
        let edit = RealmInstruction.update(RealmPath(.item("b"), "size"), .value(.int(7)))
        let texts = try await texts([.createObject(.item("b"))], then: ["b": made], [edit], until: "b.title = theirs")
        #expect(await stage.database.row("b") == BridgeStage.item("b", "theirs", size: 7))
        #expect(!texts.contains("erase b") && texts.contains("b.title = theirs"), "\(texts)")
    }

    /// The state that is stored lacks the object, and the client's upload progress has it. An erasure would void the change.
    @Test func `keeps them if the client had the acknowledgement`() async throws {
        let made = BridgeStage.item("b", "theirs", size: 3)
        let edit = RealmInstruction.update(RealmPath(.item("b"), "size"), .value(.int(7)))
        let texts = try await texts([.createObject(.item("b"))], then: ["b": made], [edit], until: "b.title = theirs", isConfirmed: true)
        #expect(await stage.database.row("b") == BridgeStage.item("b", "theirs", size: 7))
        #expect(!texts.contains("erase b") && texts.contains("b.title = theirs"), "\(texts)")
    }

    @Test func `gives the client an object that it erased and another writer made anew`() async throws {
        await stage.sql(["a": BridgeStage.item("a", "one")])
        let texts = try await texts([.eraseObject(.item("a"))], then: ["a": BridgeStage.item("a", "two")], until: "a.title = two")
        #expect(texts.first == "create a" && texts.contains("a.title = two"), "\(texts)")
    }

    /// The row is in the log before a snapshot sees it. It would be taken for one that is gone.
    @Test func `is compared with rows that are no older than the log`() async throws {
        let made = BridgeStage.item("b", "theirs")
        let texts = try await texts([.createObject(.item("b"))], then: ["b": made], misses: 3, until: "b.title = theirs")
        #expect(texts.contains("b.title = theirs") && !texts.contains("erase b"), "\(texts)")
    }
}
