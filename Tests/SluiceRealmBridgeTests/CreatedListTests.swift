import RealmTestSupport
import SluiceCore
import SluicePorts
import SluiceRealm
import TestSupport
import Testing

/// A file that creates an object with a list, which the database has already.
private struct Creator {
    let stage: BridgeStage
    let file: StageFile
    let writer: StageWriter

    init(_ query: String) async throws {
        stage = await BridgeStage(hasLog: true)
        await stage.database.setClock()
        await stage.sql(["other": BridgeStage.item("other", "one", size: 10)])
        file = StageFile(stage)
        writer = try await StageWriter(stage)
        try await file.begin(query)
    }

    private var path: RealmPath { RealmPath(.item("a"), "tags") }

    func insert(_ text: String, at index: Int, of size: Int) -> RealmInstruction {
        .arrayInsert(path, at: index, .value(.string(text)), priorSize: size)
    }
    func erase(_ index: Int, of size: Int) -> RealmInstruction { .arrayErase(path, at: index, priorSize: size) }
    func move(_ from: Int, _ to: Int, of size: Int) -> RealmInstruction { .arrayMove(path, from: from, to: to, priorSize: size) }

    func commit(_ instructions: RealmInstruction...) async throws { try file.commit(instructions, at: await stage.database.timestamp) }

    /// Creates the object and edits its list, with a change by others in between if it exists.
    func create() async throws {
        try file.commit(
            RealmInstruction.item("a", "mine", size: 10) + [insert("1", at: 0, of: 0), insert("2", at: 1, of: 1)],
            at: await stage.database.timestamp)
        try await append("theirs 1")
        try await commit(insert("3", at: 1, of: 2), move(0, 2, of: 3))
        try await commit(erase(1, of: 3), insert("4", at: 2, of: 2))
    }

    /// Appends an element as the writer.
    func append(_ text: String) async throws {
        guard let seen = await writer.look("a") else { return }
        let edit = writer.insert(.string(text), at: seen.tags.count, in: seen)
        try await writer.commit("a", [edit], in: seen, at: stage.database.milliseconds)
    }

    /// Waits until a changeset has been merged.
    func merged(_ number: UInt64) async {
        while await !stage.database.journal.contains("changeset \(number)"), !Task.isCancelled { await Task.yield() }
    }

    /// Synchronizes the file until it has the list of the database, or no object.
    /// - Parameter undone: Changesets whose compensating writes must have come too.
    func end(isVisible: Bool, undone: Set<UInt64> = []) async throws -> [String] {
        for round in 0..<200 where file.file.error == nil {
            try await file.synchronize()
            let row = await stage.database.row("a")
            let isShown = file.file.objects[.item("a")] != nil
            let isUndone = undone.isSubset(of: file.file.compensations.map(\.clientVersion))
            if round > 3, isUndone, isShown == isVisible, !isVisible || row?[3] == .list(file.tags("a")) { break }
        }
        #expect(file.file.error == nil)
        #expect(undone.isSubset(of: file.file.compensations.map(\.clientVersion)))
        #expect((file.file.objects[.item("a")] != nil) == isVisible)
        let row = await stage.database.row("a")
        if isVisible { #expect(row?[3] == .list(file.tags("a"))) }
        await file.disconnect()
        await writer.close()
        guard case .list(let tags)? = row?[3] else { return [] }
        return tags.map { if case .string(let text) = $0 { text } else { "\($0)" } }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `A list of an object that a client creates` {
    @Test(arguments: [false, true]) func `is undone without a reset if the object exists outside of its view`(isLost: Bool) async throws {
        let play = try await Creator("size > 5")
        await play.stage.sql(["a": BridgeStage.item("a", "theirs", tags: ["p", "q"])])
        try await play.create()
        try play.file.upload()
        if isLost {
            await play.file.disconnect()
            try await play.commit(play.insert("5", at: 0, of: 3))
        }
        try await play.append("theirs 2")
        if isLost { try play.file.connect() }
        #expect(try await play.end(isVisible: false, undone: [2, 3, 4]) == ["p", "q", "theirs 1", "theirs 2"])
    }

    @Test func `is complete if the object is new`() async throws {
        let play = try await Creator("size > 5")
        try await play.create()
        try play.file.upload()
        await play.merged(4)
        try await play.append("theirs")
        try await play.commit(play.insert("5", at: 0, of: 3))
        #expect(try await play.end(isVisible: true) == ["5", "3", "1", "4", "theirs"])
        #expect(play.file.file.compensations.isEmpty)
    }

    @Test func `merges with the list of an object that SQL made meanwhile`() async throws {
        let play = try await Creator("TRUEPREDICATE")
        // The entry with the object is on its way.
        await play.stage.database.hold()
        await play.stage.sql(["a": BridgeStage.item("a", "theirs", tags: ["p", "q"])])
        try await play.create()
        try play.file.upload()
        await play.merged(4)
        try await play.append("theirs 2")
        try await play.commit(play.insert("5", at: 0, of: 3))
        await play.stage.database.release()
        let list = try await play.end(isVisible: true)
        #expect(list.filter { ["p", "q", "3", "1", "4"].contains($0) } == ["p", "q", "3", "1", "4"])
        #expect(Set(list).isSuperset(of: ["theirs 1", "theirs 2"]) && !list.contains("2"))
        #expect(play.file.file.compensations.isEmpty)
    }

    @Test func `is undone if its creation lost to an erasure, and the object has another life`() async throws {
        let play = try await Creator("size > 5")
        try await play.commit(.title("other", "mine"))
        await play.stage.sql(["a": BridgeStage.item("a", "theirs", tags: ["p"])])
        let seen = try #require(await play.writer.look("a"))
        let erasure = ObjectChange(object: .item("a"), kind: .delete)
        try await play.writer.commit(erasure, in: seen, at: play.stage.database.milliseconds)
        await play.stage.sql(["other": BridgeStage.item("other", "two", size: 10)])
        try await play.file.fetch()
        // The next uploads wait for this one, and take effect together.
        await play.stage.database.hold()
        try play.file.upload()
        await play.merged(2)
        try await play.create()
        let empty = StageWriter.Seen(base: await play.stage.database.position, tags: [])
        let creation = ObjectChange(
            object: .item("a"), kind: .create, values: ["size": .int(10)], edits: [play.writer.insert(.string("s"), at: 0, in: empty)])
        try await play.writer.commit(creation, in: empty, at: play.stage.database.milliseconds)
        // The file learns of changes behind the erasure, but not of the object.
        try await play.file.handle()
        try await play.commit(play.insert("5", at: 0, of: 3))
        try play.file.upload()
        // Otherwise the release could come first, and the last upload would wait for the outcome of the others, which is held.
        try await play.file.settle()
        await play.stage.database.release(1)
        await play.merged(6)
        await play.stage.database.release()
        #expect(try await play.end(isVisible: true, undone: [6]) == ["s"])
        #expect(play.file.file.compensations.map(\.clientVersion) == [6])
    }
}
