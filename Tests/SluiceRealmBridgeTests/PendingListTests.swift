import RealmTestSupport
import SluiceCore
import SluicePorts
import SluiceRealm
import TestSupport
import Testing

/// One file with a list of "x", and a writer of the gateway's own protocol.
private struct OneFile {
    let stage: BridgeStage
    let file: StageFile
    let writer: StageWriter

    init() async throws {
        stage = await BridgeStage(hasLog: true)
        await stage.database.setClock()
        await stage.sql(["a": BridgeStage.item("a", "one", tags: ["x", "y"])])
        file = StageFile(stage)
        writer = try await StageWriter(stage)
        try await file.begin()
    }

    var path: RealmPath { RealmPath(.item("a"), "tags") }

    func insert(_ text: String, at index: Int, of size: Int) -> RealmInstruction {
        .arrayInsert(path, at: index, .value(.string(text)), priorSize: size)
    }

    /// Appends an element as the writer, later than all that the file wrote.
    func append(_ text: String) async throws {
        let seen = try #require(await writer.look("a"))
        let edit = writer.insert(.string(text), at: seen.tags.count, in: seen)
        try await writer.commit("a", [edit], in: seen, at: stage.database.milliseconds)
    }

    /// Receives the list with a change of the writer while edits are pending. Their outcome is still on its way.
    func meet(_ text: String) async throws {
        try await append(text)
        try await file.fetch()
        try await file.handle()
    }

    func commit(_ instructions: RealmInstruction...) async throws { try file.commit(instructions, at: await stage.database.timestamp) }

    /// Ends the play: the file and the database have equal lists.
    /// - Parameter undone: Changesets whose compensating writes must have come too.
    func end(undone: Set<UInt64> = []) async throws -> [Value] {
        for round in 0..<200 where file.file.error == nil {
            // An entry that puts an object right may follow several marks.
            try await file.synchronize()
            let row = await stage.database.row("a")
            let isUndone = undone.isSubset(of: file.file.compensations.map(\.clientVersion))
            if round > 3, isUndone, row?[3] == .list(file.tags("a")) { break }
        }
        #expect(file.file.error == nil)
        let row = await stage.database.row("a")
        #expect(row?[3] == .list(file.tags("a")))
        await file.disconnect()
        await writer.close()
        return file.tags("a")
    }
}

@Suite(.timeLimit(.minutes(1))) struct `Several pending changesets of one list` {
    private static func texts(_ values: [Value]) -> [String] {
        values.map { if case .string(let text) = $0 { text } else { "\($0)" } }
    }

    @Test func `keep their insertions when others change the list in between`() async throws {
        let play = try await OneFile()
        try await play.commit(play.insert("mine 1", at: 0, of: 2))
        try await play.meet("theirs 1")
        // The pending insertion is hidden until its outcome comes.
        #expect(Self.texts(play.file.tags("a")) == ["x", "y", "theirs 1"])
        try await play.commit(play.insert("mine 2", at: 3, of: 3))
        try await play.commit(play.insert("mine 3", at: 4, of: 4))
        try await play.meet("theirs 2")
        try await play.commit(play.insert("mine 4", at: 0, of: play.file.tags("a").count))
        let list = Self.texts(try await play.end())
        #expect(Set(list) == ["x", "y", "theirs 1", "theirs 2", "mine 1", "mine 2", "mine 3", "mine 4"])
    }

    @Test func `find the elements that they removed and moved before`() async throws {
        let play = try await OneFile()
        try await play.commit(.arrayErase(play.path, at: 0, priorSize: 2), play.insert("mine", at: 0, of: 1))
        try await play.commit(.arrayMove(play.path, from: 1, to: 0, priorSize: 2))
        try await play.meet("theirs")
        // All of it is hidden: the list is "x", "y", "theirs" again.
        try await play.commit(
            .arrayUpdate(play.path, at: 1, .value(.string("Y")), priorSize: 3), .arrayMove(play.path, from: 2, to: 0, priorSize: 3))
        try await play.commit(.arrayErase(play.path, at: 1, priorSize: 3))
        let list = Self.texts(try await play.end())
        #expect(list == ["Y", "mine", "theirs"])
    }

    @Test func `end with the file's later Clear`() async throws {
        let play = try await OneFile()
        try await play.commit(play.insert("mine 1", at: 0, of: 2))
        // The time of the Clear is later than that of the change that comes.
        let time = await play.stage.database.timestamp + 60_000
        try play.file.commit([.clear(play.path, .list), play.insert("mine 2", at: 0, of: 0)], at: time)
        try await play.meet("theirs")
        #expect(Self.texts(play.file.tags("a")) == ["mine 2"])
        try await play.commit(play.insert("mine 3", at: 1, of: 1))
        let list = Self.texts(try await play.end())
        #expect(Set(list).isSuperset(of: ["mine 2", "mine 3"]) && !list.contains("x") && !list.contains("mine 1"))
    }

    @Test func `lose to a list that is later than the file's Clear`() async throws {
        let play = try await OneFile()
        try await play.commit(.clear(play.path, .list), play.insert("mine 1", at: 0, of: 0))
        try await play.meet("theirs")
        #expect(Self.texts(play.file.tags("a")) == ["x", "y", "theirs"])
        try await play.commit(play.insert("mine 2", at: 3, of: 3))
        #expect(Self.texts(try await play.end()).contains("mine 1"))
    }

    @Test func `are undone together with a rejected one`() async throws {
        let play = try await OneFile()
        try await play.meet("theirs")
        try await play.commit(.title("a", "forbidden"), play.insert("mine 1", at: 0, of: 3))
        try await play.commit(play.insert("mine 2", at: 4, of: 4))
        try await play.commit(.arrayErase(play.path, at: 1, priorSize: 5))
        #expect(Self.texts(try await play.end(undone: [2, 3, 4])) == ["x", "y", "theirs"])
        #expect(Set(play.file.file.compensations.map(\.clientVersion)) == [2, 3, 4])
    }

    @Test func `meet a list that SQL replaced`() async throws {
        let play = try await OneFile()
        try await play.commit(play.insert("mine 1", at: 0, of: 2))
        await play.stage.sql(["a": BridgeStage.item("a", "one", tags: ["s", "t", "u"])])
        try await play.file.fetch()
        try await play.file.handle()
        try await play.commit(play.insert("mine 2", at: 3, of: 3))
        #expect(Self.texts(try await play.end()) == ["s", "t", "u", "mine 2"])
    }

    @Test(arguments: [false, true]) func `lose to a Clear that no entry shows`(isEchoed: Bool) async throws {
        let play = try await OneFile()
        let seen = try #require(await play.writer.look("a"))
        let clear = Edit("tags", .clear(.list))
        try await play.writer.commit("a", [clear], in: seen, at: play.stage.database.milliseconds)
        try await play.file.synchronize()
        // Of two concurrent Clears, the later one counts. The list is empty before it.
        let mine = play.insert("mine", at: 0, of: 0)
        if isEchoed { try await play.commit(.title("a", "mine"), mine) } else { try await play.commit(mine) }
        try await play.writer.commit("a", [clear], in: seen, at: play.stage.database.milliseconds + 60_000)
        #expect(try await play.end() == [])
    }

    @Test func `lose to a Clear that their base includes, but no entry shows`() async throws {
        let play = try await OneFile()
        await play.stage.sql(["b": BridgeStage.item("b", "one")])
        let seen = try #require(await play.writer.look("a"))
        let clear = Edit("tags", .clear(.list))
        try await play.writer.commit("a", [clear], in: seen, at: play.stage.database.milliseconds)
        try await play.file.synchronize()
        try await play.writer.commit("a", [clear], in: seen, at: play.stage.database.milliseconds + 60_000)
        await play.stage.sql(["b": BridgeStage.item("b", "two")])
        try await play.file.fetch()
        try await play.commit(play.insert("mine 1", at: 0, of: 0))
        try await play.file.handle()
        #expect(play.file.file.objects[.item("b")]?["title"] == .string("two"))
        try await play.commit(play.insert("mine 2", at: 1, of: 1))
        #expect(try await play.end() == [])
    }

    @Test func `continue after a lost connection`() async throws {
        let play = try await OneFile()
        try await play.commit(play.insert("mine 1", at: 0, of: 2))
        try await play.meet("theirs 1")
        // The gateway sends the outcome, which is lost with the connection.
        try await play.file.fetch(acknowledging: play.file.file.version)
        await play.file.disconnect()
        try await play.commit(play.insert("mine 2", at: 3, of: 3))
        try await play.append("theirs 2")
        try play.file.connect()
        let list = Self.texts(try await play.end())
        #expect(Set(list) == ["x", "y", "theirs 1", "theirs 2", "mine 1", "mine 2"])
    }
}
