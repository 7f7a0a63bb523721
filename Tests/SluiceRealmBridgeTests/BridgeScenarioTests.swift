import PortsTestSupport
import RealmTestSupport
import SluiceCore
import SluicePorts
import SluiceRealm
import Testing

@testable import SluiceRealmBridge

@Suite(.timeLimit(.minutes(1))) struct `A Realm client on the pipeline` {
    private typealias Stage = BridgeStage

    // MARK: Views

    @Test func `receives the objects of its subscription, and their later changes`() async throws {
        let stage = await Stage()
        await stage.sql(["a": Stage.item("a", "one", size: 1, tags: ["x"]), "b": Stage.item("b", nil)])
        try await stage.connect { client in
            _ = try await client.begin()
            let view = try await client.subscribe(1)
            #expect(
                try StageClient.texts(view) == [
                    "erase a", "create a", "a.title = one", "a.size = 1", "a.tags[0] = x", "erase b", "create b", "b.size = 0",
                ])
            await stage.sql(["a": Stage.item("a", "two", size: 1, tags: ["x"])])
            #expect(try await client.changes() == ["a.title = two"])
            await stage.sql(["a": Stage.item("a", nil, size: 1, tags: ["y", "x"])])
            #expect(try await client.changes() == ["a.title = null", "a.tags cleared", "a.tags[0] = y", "a.tags[1] = x"])
            await stage.sql(["b": nil, "c": Stage.item("c", "new")])
            #expect(try await client.changes() == ["erase b", "erase c", "create c", "c.title = new", "c.size = 0"])
        }
    }

    @Test func `receives what enters and leaves its view, and the difference to another one`() async throws {
        let stage = await Stage()
        await stage.sql(["a": Stage.item("a", "small", size: 1), "b": Stage.item("b", "large", size: 9)])
        try await stage.connect { client in
            _ = try await client.begin()
            #expect(
                try StageClient.texts(await client.subscribe(1, "size > 5")) == ["erase b", "create b", "b.title = large", "b.size = 9"])
            await stage.sql(["a": Stage.item("a", "small", size: 7)])
            #expect(try await client.changes() == ["erase a", "create a", "a.title = small", "a.size = 7"])
            await stage.sql(["b": Stage.item("b", "large", size: 2)])
            #expect(try await client.changes() == ["erase b"])
            // The rows that were written since the last bootstrap come again.
            let difference = try StageClient.texts(await client.subscribe(2, "size < 5 OR size > 6"))
            #expect(
                difference == [
                    "a.title = small", "a.size = 7", "a.tags cleared", "erase b", "create b", "b.title = large", "b.size = 2",
                ])
            #expect(try StageClient.texts(await client.subscribe(3, "size < 5")) == ["erase a"])
        }
    }

    @Test func `receives an empty bootstrap with one entry`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let view = try await client.subscribe(1)
            #expect(view.entries.count == 1 && view.entries.first?.changeset == [])
        }
    }

    @Test(arguments: ["size >", "(size > 1 SORT(size ASC))", "title == 'x'"])
    func `keeps its view when a set is refused`(query: String) async throws {
        let stage = await Stage()
        await stage.sql(["a": Stage.item("a", "one")])
        try await stage.connect { client in
            _ = try await client.begin()
            _ = try await client.subscribe(1)
            try client.send(.query(session: 1, RealmQuerySet(version: 2, queries: ["Item": query])))
            guard case .queryError(let error)? = await client.message(.queryError) else { return }
            #expect(error.queryVersion == 2)
            #expect(error.message.hasPrefix("Invalid query"))
            await stage.sql(["a": Stage.item("a", "two")])
            let change = try #require(await client.download(.changes))
            #expect(try StageClient.texts(change) == ["a.title = two"])
            try client.upload(3, base: change.progress.download.serverVersion, [.title("a", "mine")])
            #expect(await client.download(.acknowledgement(3)) != nil)
        }
    }

    @Test func `receives the last of several sets alone`() async throws {
        let stage = await Stage()
        await stage.sql(["a": Stage.item("a", "one", size: 1), "b": Stage.item("b", "two", size: 2)])
        try await stage.connect { client in
            _ = try await client.begin()
            for version in 1..<6 as Range<UInt64> {
                try client.send(.query(session: 1, RealmQuerySet(version: version, queries: ["Item": "size > \(version % 2)"])))
            }
            // `size > 1`: whatever of the others arrived before, `b` alone is held in the end.
            #expect(await client.download(.view(5)) != nil)
            await stage.sql(["a": Stage.item("a", "changed", size: 1), "b": Stage.item("b", "changed", size: 2)])
            #expect(try await client.changes() == ["b.title = changed"])
        }
    }

    // MARK: Uploads

    @Test func `is acknowledged, and receives nothing of its own changes`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            try client.upload(3, base: base, RealmInstruction.item("a", "mine", size: 4))
            let acknowledged = try #require(await client.download(.acknowledgement(3)))
            #expect(acknowledged.entries.isEmpty)
            #expect(await stage.database.row("a") == Stage.item("a", "mine", size: 4))
            // The numbers skip.
            try client.upload(9, base: base, [.title("a", "again")])
            _ = await client.download(.acknowledgement(9))
            let rest = try await client.catchUp(1)
            // The mark alone, and messages without entries.
            for case .download(let download) in rest { #expect(download.entries.isEmpty) }
            #expect(await stage.database.row("a")?[1] == .string("again"))
            await stage.sql(["a": Stage.item("a", "theirs", size: 4)])
            let change = try #require(await client.download(.changes))
            #expect(try StageClient.texts(change) == ["a.title = theirs"])
            #expect(change.entries.first?.clientVersion == 9)
        }
    }

    @Test func `receives the outcome of a conflict`() async throws {
        let stage = await Stage()
        await stage.sql(["a": Stage.item("a", "one", size: 1)])
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            await stage.sql(["a": Stage.item("a", "theirs", size: 1)])
            #expect(try await client.changes() == ["a.title = theirs"])
            // Made without the other change, and so long ago that it loses.
            try client.upload(3, base: base, [.title("a", "mine"), .update(RealmPath(.item("a"), "size"), .value(.int(5)))])
            let acknowledged = try #require(await client.download(.acknowledgement(3)))
            var texts = try StageClient.texts(acknowledged)
            if texts.isEmpty { texts = try await client.changes() }
            let row = try #require(await stage.database.row("a"))
            let title = if case .string(let title)? = row[1] { title } else { "null" }
            let size = if case .int(let size)? = row[2] { size } else { -1 as Int64 }
            #expect(texts == ["a.title = \(title)", "a.size = \(size)"])
        }
    }

    @Test func `receives the outcome of a conflict with a write that changed nothing`() async throws {
        let stage = await Stage()
        await stage.sql(["a": Stage.item("a", "one")])
        try await stage.connect { client in
            let file = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            let other = StageClient(stage)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await other.connection.run() }
                _ = try await other.begin()
                let start = try await other.subscribe(1).progress.download.serverVersion
                try other.upload(3, base: start, time: 2_000_000, [.title("a", "one")])
                _ = await other.download(.acknowledgement(3))
                other.connection.end(.disconnected)
                try await group.waitForAll()
            }
            try client.upload(3, base: base, time: 1_000_000, [.title("a", "mine")])
            var messages = await client.messages(through: .acknowledgement(3))
            // After a crash, nothing else would tell that the client has another value.
            let stored = stage.files.replica(of: file.ident).flatMap { BridgeReplica($0) }
            #expect(stored?.repairs == [.item("a"): .properties(["title"])])
            messages += try await client.catchUp(1)
            var texts: [String] = []
            for case .download(let download) in messages { texts += try StageClient.texts(download) }
            #expect(await stage.database.row("a")?[1] == .string("one"))
            #expect(texts == ["a.title = one"])
        }
    }

    @Test func `receives a list again if its edit alone was lost, to a write that nobody saw`() async throws {
        let stage = await Stage()
        // Ahead of the gateway's clock, which bounds the times that a client has seen in a view, but not beyond the bound on the future.
        await stage.database.setClock(SystemEnvironment().wallMilliseconds() + 30_000)
        try await stage.connect { client in
            _ = try await client.begin()
            _ = try await client.subscribe(1)
            await stage.sql(["a": Stage.item("a", "one", size: 1, tags: ["x"])])
            var base = try #require(await client.download(.changes)).progress.download.serverVersion
            try client.upload(3, base: base, [.update(RealmPath(.item("a"), "size"), .value(.int(2)))])
            _ = await client.download(.acknowledgement(3))
            let row = Stage.item("a", "one", size: 2, tags: ["x", "s"])
            await stage.sql(["a": row])
            base = try #require(await client.download(.changes)).progress.download.serverVersion
            // SQL writes the row's own values. The stream does not show it, and it is later than the client's edit.
            await stage.sql(["a": row])
            let edit = RealmInstruction.arrayInsert(RealmPath(.item("a"), "tags"), at: 2, .value(.string("y")), priorSize: 2)
            try client.upload(5, base: base, [.update(RealmPath(.item("a"), "size"), .value(.int(7))), edit])
            var texts: [String] = []
            for case .download(let download) in await client.messages(through: .acknowledgement(5)) + (try await client.catchUp(1)) {
                texts += try StageClient.texts(download)
            }
            #expect(await stage.database.row("a") == Stage.item("a", "one", size: 7, tags: ["x", "s"]))
            #expect(texts == ["a.tags cleared", "a.tags[0] = x", "a.tags[1] = s"])
        }
    }

    @Test func `loses changes of an object that was erased or sent anew meanwhile`() async throws {
        let stage = await Stage()
        await stage.sql(["a": Stage.item("a", "one"), "b": Stage.item("b", "one")])
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            await stage.sql(["a": nil])
            #expect(try await client.changes() == ["erase a"])
            try client.upload(3, base: base, [.title("a", "void"), .title("b", "valid")])
            _ = await client.download(.acknowledgement(3))
            _ = try await client.catchUp(1)
            #expect(await stage.database.row("a") == nil)
            #expect(await stage.database.row("b")?[1] == .string("valid"))
        }
    }

    @Test func `is told of rejected writes once, and has its object back`() async throws {
        let stage = await Stage()
        await stage.sql(["a": Stage.item("a", "one", size: 1)])
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            try client.upload(3, base: base, [.title("a", "forbidden")])
            let error = try #require(await client.error())
            #expect(error.code == .compensatingWrite && error.compensation?.clientVersion == 3)
            #expect(error.compensation?.rejected.map(\.table) == ["Item"])
            let repair = try #require(await client.download(.changes))
            #expect(try StageClient.texts(repair) == ["erase a", "create a", "a.title = one", "a.size = 1"])
            #expect(repair.entries.first?.serverVersion == error.compensation?.serverVersion)
            #expect(await !stage.database.journal.contains("compensation 1"))
            try client.confirm(3, repair.progress.download.serverVersion)
            _ = try await client.catchUp(1)
            while await !stage.database.journal.contains("compensation 1"), !Task.isCancelled { await Task.yield() }
        }
    }

    @Test func `loses a rejected object that it created`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            try client.upload(3, base: base, RealmInstruction.item("a", "forbidden"))
            let texts = try await client.changes()
            #expect(texts == ["erase a"])
            #expect(await stage.database.row("a") == nil)
        }
    }

    // MARK: Later sessions

    @Test func `continues in a later session, with the changes in between`() async throws {
        let stage = await Stage()
        await stage.sql(["a": Stage.item("a", "one"), "b": Stage.item("b", "two"), "c": Stage.item("c", "three")])
        var (file, cursor) = (RealmFileIdent(ident: 0, salt: 0), RealmDownloadCursor())
        try await stage.connect { client in
            file = try await client.begin()
            cursor = try await client.subscribe(1).progress.download
            try client.upload(3, base: cursor.serverVersion, RealmInstruction.item("d", "mine"))
            _ = await client.download(.acknowledgement(3))
            _ = try await client.catchUp(1)
        }
        await stage.sql(["a": Stage.item("a", "changed"), "b": nil])
        try await stage.connect { client in
            try client.send(.bind(RealmBind(session: 1, needsFileIdent: false)))
            let query = RealmQuerySet(version: 1, queries: ["Item": "TRUEPREDICATE"])
            let latest = RealmServerVersion(version: cursor.serverVersion, salt: 5)
            try client.send(.ident(RealmIdent(session: 1, file: file, download: cursor, latest: latest, query: query)))
            // Sent again: it took effect, so it is acknowledged alone.
            try client.upload(3, base: cursor.serverVersion, RealmInstruction.item("d", "mine"))
            let texts = try await client.changes()
            // Of `c` there is nothing: the client has it as it is. What was written since the last bootstrap comes again.
            #expect(
                texts == [
                    "erase b", "a.title = changed", "a.size = 0", "a.tags cleared", "d.title = mine", "d.size = 0", "d.tags cleared",
                ])
            #expect(await stage.database.journal.filter { $0 == "changeset 3" }.count == 1)
            await stage.sql(["d": Stage.item("d", "theirs")])
            #expect(try await client.changes() == ["d.title = theirs"])
        }
    }

    /// A client creates an object, and its session ends before the stream shows the change.
    @Test(.timeLimit(.minutes(1)), arguments: [true, false])
    func `keeps an object that it made exactly if the server has it`(isDeleted: Bool) async throws {
        let stage = await Stage()
        var (file, cursor) = (RealmFileIdent(ident: 0, salt: 0), RealmDownloadCursor())
        try await stage.connect { client in
            file = try await client.begin()
            cursor = try await client.subscribe(1).progress.download
            await stage.database.hold()
            if !isDeleted { await stage.database.fail(SluiceError(.timeout, "The database does not answer.")) }
            try client.upload(3, base: cursor.serverVersion, RealmInstruction.item("n", "mine"))
            if !isDeleted { _ = await client.error() }
            while isDeleted, await stage.database.row("n") == nil { await Task.yield() }
        }
        if isDeleted { await stage.sql(["n": nil]) }
        await stage.database.release()
        try await stage.connect { client in
            try client.send(.bind(RealmBind(session: 1, needsFileIdent: false)))
            let query = RealmQuerySet(version: 1, queries: ["Item": "TRUEPREDICATE"])
            let latest = RealmServerVersion(version: cursor.serverVersion, salt: 5)
            try client.send(.ident(RealmIdent(session: 1, file: file, download: cursor, latest: latest, query: query)))
            try client.upload(3, base: cursor.serverVersion, RealmInstruction.item("n", "mine"))
            var texts: [String] = []
            // An entry that puts an object right may follow a mark.
            for mark: UInt64 in 1...3 {
                for case .download(let download) in try await client.catchUp(mark) { texts += try StageClient.texts(download) }
            }
            #expect(texts == (isDeleted ? ["erase n"] : []))
            // The answer to a mark does not wait for the upload.
            while !isDeleted, await stage.database.row("n") == nil { await Task.yield() }
            let title = await stage.database.row("n")?[1]
            #expect(title == (isDeleted ? nil : Value.string("mine")))
        }
    }

    @Test func `takes the place of its older session`() async throws {
        let stage = await Stage()
        try await stage.connect { first in
            let file = try await first.begin()
            let second = StageClient(stage)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await second.connection.run() }
                try second.send(.bind(RealmBind(session: 1, needsFileIdent: false)))
                let ident = RealmIdent(session: 1, file: file, download: .init(), latest: .init(), query: .init(version: 0, queries: [:]))
                try second.send(.ident(ident))
                #expect(await second.download(.view(0)) != nil)
                let error = await first.error()
                #expect(error?.tryAgain == true && error?.action == .transient)
                second.connection.end(.disconnected)
                try await group.waitForAll()
            }
        }
    }
}
