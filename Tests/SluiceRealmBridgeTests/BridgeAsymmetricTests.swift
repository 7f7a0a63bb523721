import SluiceCore
import SluicePorts
import SluiceRealm
import Testing

@testable import SluiceRealmBridge

extension ObjectKey {
    fileprivate static func reading(_ key: String) -> ObjectKey { ObjectKey(type: "Reading", key: .string(key)) }
}

extension RealmInstruction {
    fileprivate static func reading(_ key: String, _ title: String = "mild", value: Double = 1.5) -> [RealmInstruction] {
        [
            .createObject(.reading(key)), .update(RealmPath(.reading(key), "title"), .value(.string(title))),
            .update(RealmPath(.reading(key), "value"), .value(.double(value))),
        ]
    }
}

@Suite(.timeLimit(.minutes(1))) struct `Asymmetric objects of a Realm client` {
    private typealias Stage = BridgeStage

    private static func keys(_ stage: Stage) -> [Value] { stage.ingest.taken.map(\.object.key) }

    @Test func `go to the ingest with their embedded objects and lists, and never come back`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            let (place, marks) = (RealmPath(.reading("a"), "place"), RealmPath(.reading("a"), "marks"))
            try client.upload(
                3, base: base,
                RealmInstruction.reading("a") + [
                    .update(place, .container(.object)), .update(RealmPath(.reading("a"), "place", [.key("x")]), .value(.int(7))),
                    .arrayInsert(marks, at: 0, .value(.int(5)), priorSize: 0), .arrayInsert(marks, at: 0, .value(.int(4)), priorSize: 1),
                ])
            #expect(try #require(await client.download(.acknowledgement(3))).entries.isEmpty)
            let taken = try #require(stage.ingest.taken.first)
            #expect(taken.object == .reading("a") && taken.kind == .create && taken.edits.isEmpty && stage.ingest.taken.count == 1)
            #expect(
                taken.values == [
                    "title": .string("mild"), "value": .double(1.5), "place": .dictionary(["x": .int(7), "y": .null]),
                    "marks": .list([.int(4), .int(5)]),
                ] || taken.values["place"] == .dictionary(["x": .int(7)]), "\(taken.values)")
            for case .download(let download) in try await client.catchUp(1) { #expect(download.entries.isEmpty) }
            #expect(await stage.database.journal == ["ingest 3"])
        }
    }

    @Test func `have the values of the class where the client wrote none`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            let erased = RealmInstruction.reading("b") + [.eraseObject(.reading("b"))]
            try client.upload(3, base: base, [.createObject(.reading("a"))] + erased)
            _ = await client.download(.acknowledgement(3))
            #expect(Self.keys(stage) == [.string("a")])
            #expect(stage.ingest.taken.first?.values["value"] == .double(0) && stage.ingest.taken.first?.values["marks"] == .list([]))
        }
    }

    @Test func `share changesets with synchronized objects`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            try client.upload(3, base: base, RealmInstruction.item("a", "mine") + RealmInstruction.reading("r"))
            _ = await client.download(.acknowledgement(3))
            #expect(await stage.database.row("a") == Stage.item("a", "mine"))
            #expect(Self.keys(stage) == [.string("r")])
            #expect(await stage.database.journal == ["ingest 3", "changeset 3"])
            await stage.sql(["a": Stage.item("a", "theirs")])
            let change = try #require(await client.download(.changes))
            #expect(try StageClient.texts(change) == ["a.title = theirs"] && change.entries.first?.clientVersion == 3)
        }
    }

    @Test func `hold the acknowledgement, and the writes behind them, until the ingest has them`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            stage.ingest.close()
            try client.upload(3, base: base, RealmInstruction.reading("r"))
            try client.upload(4, base: base, RealmInstruction.item("a", "mine"))
            while stage.ingest.tries < 3, !Task.isCancelled { await Task.yield() }
            // Views go on.
            await stage.sql(["b": Stage.item("b", "theirs")])
            let change = try #require(await client.download(.changes))
            #expect(change.progress.upload.clientVersion < 3 && change.entries.allSatisfy { $0.clientVersion < 3 })
            #expect(await stage.database.row("a") == nil)
            stage.ingest.open()
            _ = await client.download(.acknowledgement(4))
            #expect(Self.keys(stage) == [.string("r")])
            #expect(await stage.database.row("a") == Stage.item("a", "mine"))
        }
    }

    @Test func `are ingested once, and rejected once, if the rest of their changeset fails first`() async throws {
        let stage = await Stage()
        let changeset = RealmInstruction.item("a", "mine") + RealmInstruction.reading("r") + RealmInstruction.reading("s", "forbidden")
        var (file, cursor) = (RealmFileIdent(ident: 0, salt: 0), RealmDownloadCursor())
        try await stage.connect { client in
            file = try await client.begin()
            cursor = try await client.subscribe(1).progress.download
            await stage.database.fail(SluiceError(.postgresUnreachable, "PostgreSQL is away."))
            try client.upload(3, base: cursor.serverVersion, changeset)
            let error = try #require(await client.error())
            #expect(error.tryAgain && error.code != .compensatingWrite)
        }
        try await stage.connect { client in
            try client.send(.bind(RealmBind(session: 1, needsFileIdent: false)))
            let query = RealmQuerySet(version: 1, queries: ["Item": "TRUEPREDICATE"])
            let latest = RealmServerVersion(version: cursor.serverVersion, salt: 5)
            try client.send(.ident(RealmIdent(session: 1, file: file, download: cursor, latest: latest, query: query)))
            try client.upload(3, base: cursor.serverVersion, changeset)
            try client.upload(4, base: cursor.serverVersion, RealmInstruction.reading("t"))
            let messages = await client.messages(through: .acknowledgement(4)) + (try await client.catchUp(1))
            let errors = messages.compactMap { if case .error(let error) = $0 { error } else { nil } }
            #expect(errors.map { $0.compensation?.clientVersion } == [3])
            #expect(errors.first?.compensation?.rejected.map(\.table) == ["Reading"])
        }
        #expect(Self.keys(stage) == [.string("r"), .string("t")])
        #expect(await stage.database.row("a") == Stage.item("a", "mine"))
        // The uploads of the second connection may take effect together. Their asymmetric objects precede the rest then.
        let journal = await stage.database.journal.filter { $0 != "compensation 0" }
        #expect(journal.first == "ingest 3" && journal.sorted() == ["changeset 3", "ingest 3", "ingest 4"], "\(journal)")
    }

    @Test func `are reported if they are rejected, and nothing is restored`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            try client.upload(3, base: base, RealmInstruction.reading("r", "forbidden") + RealmInstruction.reading("s"))
            let error = try #require(await client.error())
            #expect(error.code == .compensatingWrite && error.compensation?.clientVersion == 3)
            let rejected = try #require(error.compensation?.rejected)
            #expect(rejected.map(\.table) == ["Reading"] && rejected.first?.reason.contains("Reading") == true)
            // The client reports the error once it has an entry of this version.
            let entry = try #require(await client.download(.changes))
            #expect(try StageClient.texts(entry).isEmpty)
            #expect(entry.entries.map(\.serverVersion) == [error.compensation?.serverVersion])
            #expect(Self.keys(stage) == [.string("s")] && stage.ingest.kept.map(\.object) == [.reading("r")])
            try client.confirm(3, entry.progress.download.serverVersion)
            _ = try await client.catchUp(1)
            while await !stage.database.journal.contains("compensation 1"), !Task.isCancelled { await Task.yield() }
        }
    }

    @Test func `of one changeset are reported beside its synchronized objects`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            let (item, reading) = (RealmInstruction.item("a", "forbidden"), RealmInstruction.reading("r", "forbidden"))
            try client.upload(3, base: base, item + reading)
            let (first, second) = (await client.error(), await client.error())
            let tables = [first, second].flatMap { $0?.compensation?.rejected.map(\.table) ?? [] }
            #expect(tables.sorted() == ["Item", "Reading"])
            #expect([first, second].map { $0?.compensation?.clientVersion } == [3, 3])
        }
    }

    @Test func `cannot be changed or deleted`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            let base = try await client.subscribe(1).progress.download.serverVersion
            let title = RealmPath(.reading("r"), "title")
            try client.upload(3, base: base, [.update(title, .value(.string("new"))), .eraseObject(.reading("s"))])
            let error = try #require(await client.error())
            #expect(error.compensation?.rejected.map(\.reason).allSatisfy { $0.contains("can only be created") } == true)
            #expect(error.compensation?.rejected.count == 2 && stage.ingest.taken.isEmpty)
        }
    }

    @Test func `cannot be subscribed to`() async throws {
        let stage = await Stage()
        try await stage.connect { client in
            _ = try await client.begin()
            try client.send(.query(session: 1, RealmQuerySet(version: 1, queries: ["Reading": "TRUEPREDICATE"])))
            guard case .queryError(let error)? = await client.message(.queryError) else { return }
            #expect(error.queryVersion == 1 && error.message.contains("Reading"))
        }
    }
}

@Suite struct `The batches of asymmetric objects` {
    private static func change(_ key: String, bytes: Int = 0) -> ObjectChange {
        ObjectChange(object: .reading(key), kind: .create, values: ["title": .string(String(repeating: "x", count: bytes))])
    }

    @Test func `have whole changesets, within the bounds of objects and bytes`() throws {
        var ingest = BridgeIngest(StageDatabase.schema(StageDatabase.item))
        let time = HybridTime(milliseconds: 1)
        try ingest.add((0..<600).map { Self.change("a\($0)") }, of: 3, at: time)
        try ingest.add((0..<400).map { Self.change("b\($0)") }, of: 4, at: time)
        try ingest.add([], of: 5, at: time)
        try ingest.add([Self.change("c")], of: 6, at: time)
        try ingest.add([Self.change("d", bytes: Limits.ingestBatchBytes)], of: 7, at: time)
        try ingest.add((0..<1_500).map { Self.change("e\($0)") }, of: 9, at: time)
        #expect(ingest.batches.map(\.number) == [4, 6, 7, 9])
        #expect(ingest.batches.map(\.objects.count) == [1_000, 1, 1, 1_500])
        #expect(Set(ingest.batches[0].objects.map(\.changeset)) == [3, 4])
    }
}
