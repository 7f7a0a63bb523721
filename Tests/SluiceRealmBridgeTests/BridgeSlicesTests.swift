import SluiceCore
import SluicePorts
import SluiceRealm
import TestSupport
import Testing

@testable import SluiceRealmBridge

/// The objects of a client, whose store keeps the parts of a bootstrap over connections until a part of another one comes.
private struct PartStore {
    private(set) var objects: [Value: [String: Value]] = [:]
    private var parts: (version: UInt64, entries: [RealmDownloadEntry]) = (0, [])
    private(set) var cursor = RealmDownloadCursor()
    /// The bootstraps that were applied, by query version.
    private(set) var views: [UInt64] = []

    mutating func take(_ messages: [RealmServerMessage]) throws {
        for case .download(let download) in messages {
            guard download.batch != .steadyState else {
                try apply(download.entries)
                cursor = download.progress.download
                continue
            }
            if parts.version != download.queryVersion { parts = (download.queryVersion, []) }
            parts.entries += download.entries
            guard download.batch == .lastInBatch else { continue }
            try apply(parts.entries)
            parts = (0, [])
            views.append(download.queryVersion)
            cursor = download.progress.download
        }
    }

    private mutating func apply(_ entries: [RealmDownloadEntry]) throws {
        for entry in entries {
            for instruction in try RealmChangesetReader.instructions(of: entry.changeset) {
                switch instruction {
                case .createObject(let object): objects[object.key] = objects[object.key] ?? [:]
                case .eraseObject(let object): objects[object.key] = nil
                case .update(let path, .value(let value), _):
                    try #require(objects[path.object.key] != nil, "\(instruction)")
                    objects[path.object.key]?[path.field] = value
                default: break
                }
            }
        }
    }

    func titles() -> [Value: Value?] { objects.mapValues { $0["title"] } }
}

@Suite(.timeLimit(.minutes(2))) struct `A view larger than one entry` {
    private typealias Stage = BridgeStage

    private static let small = BridgeBounds(entryBytes: 100_000)
    private static let filler = String(repeating: "x", count: 1_000)

    private static func key(_ number: Int) -> String { "k\(1_000 + number)" }

    private static func item(_ number: Int) -> Row { Stage.item(key(number), "\(number) \(filler)", size: Int64(number)) }

    /// Items of about a megabyte in total. The session sends them in several messages.
    private static func fill(_ stage: Stage, _ numbers: Range<Int> = 0..<1_000) async {
        await stage.sql(Dictionary(uniqueKeysWithValues: numbers.map { (key($0), item($0)) }))
    }

    private static func titles(_ numbers: some Sequence<Int>) -> [Value: Value?] {
        Dictionary(uniqueKeysWithValues: numbers.map { (.string(key($0)), .string("\($0) \(filler)")) })
    }

    /// Binds the file again, and asks for a set at once.
    private static func resume(
        _ client: StageClient, _ file: RealmFileIdent, _ cursor: RealmDownloadCursor, _ query: RealmQuerySet, then next: RealmQuerySet?
    ) throws {
        try client.send(.bind(RealmBind(session: 1, needsFileIdent: false)))
        let latest = RealmServerVersion(version: cursor.serverVersion, salt: 5)
        try client.send(.ident(RealmIdent(session: 1, file: file, download: cursor, latest: latest, query: query)))
        if let next { try client.send(.query(session: 1, next)) }
    }

    private static let all = RealmQuerySet(version: 1, queries: ["Item": "TRUEPREDICATE"])

    @Test func `comes in slices of one version, and later changes follow it`() async throws {
        let stage = await Stage(bounds: Self.small)
        await Self.fill(stage)
        try await stage.connect { client in
            _ = try await client.begin()
            var store = PartStore()
            try client.send(.query(session: 1, Self.all))
            let messages = await client.messages(through: .view(1))
            try store.take(messages)
            let parts = messages.compactMap { if case .download(let download) = $0, download.queryVersion == 1 { download } else { nil } }
            #expect(parts.count > 8 && parts.dropLast().allSatisfy { $0.batch == .moreToCome })
            #expect(Set(parts.flatMap(\.entries).map(\.serverVersion)).count == 1)
            #expect(parts.flatMap(\.entries).allSatisfy { $0.changeset.count <= Self.small.entryBytes })
            #expect(zip(parts, parts.dropFirst()).allSatisfy { $0.estimate <= $1.estimate } && parts.last?.estimate == 1)
            #expect(store.titles() == Self.titles(0..<1_000))
            await stage.sql([Self.key(5): nil, "new": Stage.item("new", "later")])
            try store.take(await client.messages(through: .changes))
            try store.take(try await client.catchUp(1))
            #expect(store.objects.count == 1_000 && store.objects[.string("new")]?["title"] == .string("later"))
            // The difference to another set is small again.
            let difference = try StageClient.texts(await client.subscribe(2, "size > 990"))
            #expect(difference.filter { $0.hasPrefix("erase") }.count == 991)
        }
    }

    @Test func `leaves no object behind if the connection ends between two slices`() async throws {
        let stage = await Stage(bounds: Self.small)
        await Self.fill(stage)
        var (store, file) = (PartStore(), RealmFileIdent(ident: 0, salt: 0))
        try await stage.connect { client in
            client.sink.hold(after: 4)
            file = try await client.begin()
            try client.send(.query(session: 1, Self.all))
            for _ in 0..<4 { try store.take(await client.messages(through: .part)) }
        }
        #expect(store.objects.isEmpty, "A client shows nothing before the last part.")
        // These were in the first slice, and nothing but the bootstrap can take them from the client.
        await stage.sql(Dictionary(uniqueKeysWithValues: (0..<20).map { (Self.key($0), nil) }))
        try await stage.connect { client in
            try Self.resume(client, file, store.cursor, RealmQuerySet(version: 0, queries: [:]), then: Self.all)
            try store.take(await client.messages(through: .view(1)))
            #expect(store.titles() == Self.titles(20..<1_000))
            await stage.sql([Self.key(30): nil])
            try store.take(await client.messages(through: .changes))
            #expect(store.objects.count == 979)
            try client.confirm(1, store.cursor.serverVersion)
            _ = try await client.catchUp(1)
        }
        // The next session continues as after any view.
        try await stage.connect { client in
            try Self.resume(client, file, store.cursor, Self.all, then: nil)
            await stage.sql([Self.key(31): nil])
            while store.objects[.string(Self.key(31))] != nil { try store.take(await client.messages(through: .changes)) }
            #expect(store.objects.count == 978)
        }
    }

    @Test func `is superseded between two slices`() async throws {
        let stage = await Stage(bounds: Self.small)
        await Self.fill(stage)
        await stage.database.cut(200)
        await stage.database.pause(after: 2)
        try await stage.connect { client in
            var store = PartStore()
            _ = try await client.begin()
            try client.send(.query(session: 1, Self.all))
            for _ in 0..<4 { try store.take(await client.messages(through: .part)) }
            try client.send(.query(session: 1, RealmQuerySet(version: 2, queries: ["Item": "size > 989"])))
            try store.take(await client.messages(through: .view(2)))
            #expect(!store.views.contains(1) && store.titles() == Self.titles(990..<1_000))
            await stage.sql([Self.key(995): nil])
            try store.take(await client.messages(through: .changes))
            #expect(store.objects.count == 9)
        }
    }

    @Test func `takes the writes that its client makes between two slices`() async throws {
        let stage = await Stage(bounds: Self.small)
        await Self.fill(stage)
        await stage.database.cut(200)
        await stage.database.pause(after: 2)
        try await stage.connect { client in
            var store = PartStore()
            _ = try await client.begin()
            try client.send(.query(session: 1, Self.all))
            for _ in 0..<4 { try store.take(await client.messages(through: .part)) }
            try client.upload(3, base: store.cursor.serverVersion, RealmInstruction.item("mine", "mine"))
            // It waits for the view.
            await stage.sql([Self.key(1): nil, Self.key(999): nil])
            stage.database.resume()
            try store.take(await client.messages(through: .view(1)))
            try store.take(await client.messages(through: .acknowledgement(3)))
            try store.take(try await client.catchUp(1))
            #expect(await stage.database.journal == ["changeset 3"])
            #expect(store.titles().filter { $0.key != .string("mine") } == Self.titles([0] + Array(2..<999)))
        }
    }

    @Test func `resets the client if it left more objects than are stored`() async throws {
        let stage = await Stage(bounds: BridgeBounds(entryBytes: 100_000, partObjects: 100))
        await Self.fill(stage)
        var (store, file) = (PartStore(), RealmFileIdent(ident: 0, salt: 0))
        try await stage.connect { client in
            client.sink.hold(after: 4)
            file = try await client.begin()
            try client.send(.query(session: 1, Self.all))
            for _ in 0..<4 { try store.take(await client.messages(through: .part)) }
        }
        try await stage.connect { client in
            try Self.resume(client, file, store.cursor, RealmQuerySet(version: 0, queries: [:]), then: Self.all)
            let error = try #require(await client.error())
            #expect(error.action == .clientReset && error.message.contains("unfinished bootstrap"))
        }
    }

    @Test func `is refused if it has more objects than a view may have`() async throws {
        let stage = await Stage(bounds: BridgeBounds(viewObjects: 500))
        await Self.fill(stage)
        try await stage.connect { client in
            _ = try await client.begin()
            var store = PartStore()
            try client.send(.query(session: 1, RealmQuerySet(version: 1, queries: ["Item": "size < 10"])))
            try store.take(await client.messages(through: .view(1)))
            try client.send(.query(session: 1, RealmQuerySet(version: 2, queries: ["Item": "TRUEPREDICATE"])))
            guard case .queryError(let error)? = await client.message(.queryError) else { return }
            #expect(error.queryVersion == 2 && error.message.contains("500 objects"))
            await stage.sql([Self.key(5): nil])
            // The session sends the view before again.
            while store.objects[.string(Self.key(5))] != nil { try store.take(await client.messages(through: .changes)) }
            #expect(store.titles() == Self.titles((0..<10).filter { $0 != 5 }))
        }
    }

    @Test func `ends the session if that is found behind its first slice`() async throws {
        let stage = await Stage(bounds: BridgeBounds(entryBytes: 100_000, viewObjects: 500))
        await Self.fill(stage)
        try await stage.connect { client in
            _ = try await client.begin()
            try client.send(.query(session: 1, Self.all))
            let error = try #require(await client.error())
            #expect(error.action == .applicationBug && !error.tryAgain && error.message.contains("500 objects"))
        }
    }
}

@Suite struct `The estimated size of an entry` {
    /// A client stores at most 16 MB of an entry.
    @Test(arguments: seeds(30)) func `is no less than its bytes`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let writer = RealmObjectWriter(StageDatabase.schema)
        var instructions: [RealmInstruction] = RealmSchema.instructions(of: StageDatabase.schema)
        for number in 0..<200 {
            let key = String(repeating: "k", count: random.below(40)) + "\(number)"
            let tags = (0..<random.below(20)).map { _ in Value.string(String(repeating: "ü", count: random.below(30))) }
            let title: Value = random.chance(20) ? .null : .string(String(repeating: "t", count: random.below(300)))
            let size = Value.int(Int64(truncatingIfNeeded: random.next()) >> Int64(random.below(64)))
            instructions += try writer.enter(.item(key), ["title": title, "size": size, "tags": .list(tags)])
        }
        let pieces = [instructions].pieces(maximum: .max)
        #expect(pieces.count == 1)
        let bytes = try RealmChangesetWriter.bytes(of: instructions).count
        #expect(bytes <= instructions.reduce(0) { $0 + $1.cost } + 4_096, "seed \(seed)")
    }
}
