import SluiceCore
import SluicePorts
import SluiceRealm
import TestSupport
import Testing

@testable import SluiceRealmBridge

@Suite(.timeLimit(.minutes(2))) struct `A view larger than one entry` {
    @Test func `comes in slices of one version, and later changes follow it`() async throws {
        let stage = await BridgeStage(bounds: Sliced.small)
        await Sliced.fill(stage)
        try await stage.connect { client in
            _ = try await client.begin()
            var store = PartStore()
            try client.send(.query(session: 1, Sliced.all))
            let messages = await client.messages(through: .view(1))
            try store.take(messages)
            let parts = messages.compactMap { if case .download(let download) = $0, download.queryVersion == 1 { download } else { nil } }
            #expect(parts.count > 8 && parts.dropLast().allSatisfy { $0.batch == .moreToCome })
            #expect(Set(parts.flatMap(\.entries).map(\.serverVersion)).count == 1)
            #expect(parts.flatMap(\.entries).allSatisfy { $0.changeset.count <= Sliced.small.entryBytes })
            #expect(zip(parts, parts.dropFirst()).allSatisfy { $0.estimate <= $1.estimate } && parts.last?.estimate == 1)
            #expect(store.differences(from: Sliced.titles(0..<1_000)).isEmpty)
            await stage.sql([Sliced.key(5): nil, "new": BridgeStage.item("new", "later")])
            try store.take(await client.messages(through: .changes))
            try store.take(try await client.catchUp(1))
            #expect(store.objects.count == 1_000 && store.objects[.string("new")]?["title"] == .string("later"))
            // The difference to another set is small again.
            let difference = try StageClient.texts(await client.subscribe(2, "size > 990"))
            #expect(difference.filter { $0.hasPrefix("erase") }.count == 991)
        }
    }

    /// The client has parts of a set that it lacks, or of the one that it has. It appends the next view to the latter.
    @Test(arguments: [false, true]) func `leaves no object behind if its connection ends`(isRepeated: Bool) async throws {
        let stage = await BridgeStage(bounds: Sliced.small)
        await Sliced.fill(stage)
        var (store, file) = try await isRepeated ? Sliced.interruptedAgain(stage) : Sliced.interrupted(stage)
        // These were in the first slice, and nothing but the bootstrap can take them from the client.
        await stage.sql(Dictionary(uniqueKeysWithValues: (0..<20).map { (Sliced.key($0), nil) }))
        let sets = (isRepeated ? Sliced.all : Sliced.none, isRepeated ? nil : Sliced.all)
        try await stage.connect { client in
            try Sliced.resume(client, file, store.cursor, sets.0, then: sets.1)
            try store.take(await client.messages(through: .view(1)))
            #expect(store.differences(from: Sliced.titles(20..<1_000)).isEmpty)
            await stage.sql([Sliced.key(30): nil])
            try store.take(await client.messages(through: .changes))
            #expect(store.objects.count == 979)
            try client.confirm(1, store.cursor.serverVersion)
            _ = try await client.catchUp(1)
        }
        // The next session continues as after any view.
        try await stage.connect { client in
            try Sliced.resume(client, file, store.cursor, Sliced.all, then: nil)
            await stage.sql([Sliced.key(31): nil])
            while store.objects[.string(Sliced.key(31))] != nil { try store.take(await client.messages(through: .changes)) }
            #expect(store.objects.count == 978)
        }
    }

    @Test func `is superseded between two slices`() async throws {
        let stage = await BridgeStage(bounds: Sliced.small)
        await Sliced.fill(stage)
        await stage.database.cut(200)
        await stage.database.pause(after: 2)
        try await stage.connect { client in
            var store = PartStore()
            _ = try await client.begin()
            try client.send(.query(session: 1, Sliced.all))
            for _ in 0..<4 { try store.take(await client.messages(through: .part)) }
            try client.send(.query(session: 1, RealmQuerySet(version: 2, queries: ["Item": "size > 989"])))
            try store.take(await client.messages(through: .view(2)))
            #expect(!store.views.contains(1) && store.differences(from: Sliced.titles(990..<1_000)).isEmpty)
            await stage.sql([Sliced.key(995): nil])
            try store.take(await client.messages(through: .changes))
            #expect(store.objects.count == 9)
        }
    }

    @Test func `takes the writes that its client makes between two slices`() async throws {
        let stage = await BridgeStage(bounds: Sliced.small)
        await Sliced.fill(stage)
        await stage.database.cut(200)
        await stage.database.pause(after: 2)
        try await stage.connect { client in
            var store = PartStore()
            _ = try await client.begin()
            try client.send(.query(session: 1, Sliced.all))
            for _ in 0..<4 { try store.take(await client.messages(through: .part)) }
            try client.upload(3, base: store.cursor.serverVersion, RealmInstruction.item("mine", "mine"))
            // It waits for the view.
            await stage.sql([Sliced.key(1): nil, Sliced.key(999): nil])
            stage.database.resume()
            try store.take(await client.messages(through: .view(1)))
            try store.take(await client.messages(through: .acknowledgement(3)))
            try store.take(try await client.catchUp(1))
            #expect(await stage.database.journal == ["changeset 3"])
            // The store lacks what its own app has written.
            #expect(store.differences(from: Sliced.titles([0] + Array(2..<999))).allSatisfy { $0 == .string("mine") })
        }
    }

    @Test func `resets the client if it has more objects of a repeated view than are stored`() async throws {
        let stage = await BridgeStage(bounds: BridgeBounds(entryBytes: 100_000, partObjects: 100))
        await Sliced.fill(stage)
        let (store, file) = try await Sliced.interruptedAgain(stage)
        try await stage.connect { client in
            try Sliced.resume(client, file, store.cursor, Sliced.all, then: nil)
            let error = try #require(await client.error())
            #expect(error.action == .clientReset && error.message.contains("unfinished bootstrap"))
        }
    }

    @Test func `is refused if it has more objects than a view may have`() async throws {
        let stage = await BridgeStage(bounds: BridgeBounds(viewObjects: 500))
        await Sliced.fill(stage)
        try await stage.connect { client in
            _ = try await client.begin()
            var store = PartStore()
            try client.send(.query(session: 1, RealmQuerySet(version: 1, queries: ["Item": "size < 10"])))
            try store.take(await client.messages(through: .view(1)))
            try client.send(.query(session: 1, RealmQuerySet(version: 2, queries: ["Item": "TRUEPREDICATE"])))
            guard case .queryError(let error)? = await client.message(.queryError) else { return }
            #expect(error.queryVersion == 2 && error.message.contains("500 objects"))
            await stage.sql([Sliced.key(5): nil])
            // The session sends the view before again.
            while store.objects[.string(Sliced.key(5))] != nil { try store.take(await client.messages(through: .changes)) }
            #expect(store.differences(from: Sliced.titles((0..<10).filter { $0 != 5 })).isEmpty)
        }
    }

    @Test func `ends the session if that is found behind its first slice`() async throws {
        let stage = await BridgeStage(bounds: BridgeBounds(entryBytes: 100_000, viewObjects: 500))
        await Sliced.fill(stage)
        try await stage.connect { client in
            _ = try await client.begin()
            try client.send(.query(session: 1, Sliced.all))
            let error = try #require(await client.error())
            #expect(error.action == .applicationBug && !error.tryAgain && error.message.contains("500 objects"))
        }
    }
}
