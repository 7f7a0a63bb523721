import RealmTestSupport
import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(1))) struct `Lists and dictionaries in mixed values of a Realm client` {
    private static let schema = Schema([StageDatabase.mixedItem])
    private static func row(_ key: String, _ any: Value) -> Row { Row([.string(key), .null, .int(0), any]) }
    private static func any(_ key: String, _ payload: RealmPayload) -> RealmInstruction { .update(RealmPath(.item(key), "any"), payload) }

    /// Applies a download to the client's file. Fails where the client's process would end.
    private static func apply(_ download: RealmDownload?, to file: inout RealmModel) throws {
        for entry in try #require(download).entries {
            for instruction in try RealmChangesetReader.instructions(of: entry.changeset) {
                switch instruction {
                case .addTable, .addColumn: continue
                default: try file.apply(instruction)
                }
            }
        }
    }

    private static func apply(_ messages: [RealmServerMessage], to file: inout RealmModel) throws {
        for case .download(let download) in messages { try apply(download, to: &file) }
    }

    @Test func `come into objects that the client has, and others follow`() async throws {
        let stage = await BridgeStage(StageDatabase.mixedItem)
        await stage.sql(["a": Self.row("a", .string("w")), "b": Self.row("b", .null), "c": Self.row("c", .int(1))])
        var file = RealmModel(Self.schema)
        try await stage.connect { client in
            _ = try await client.begin()
            try Self.apply(try await client.subscribe(1), to: &file)
            await stage.sql(["a": Self.row("a", .list([.string("w"), .int(2)]))])
            try Self.apply(await client.download(.changes), to: &file)
            await stage.sql(["d": Self.row("d", .int(3))])
            try Self.apply(await client.download(.changes), to: &file)
            await stage.sql(["c": nil])
            try Self.apply(await client.download(.changes), to: &file)
        }
        #expect(file.objects.count == 3 && file.objects[.item("a")]?["any"] == .list([.string("w"), .int(2)]))
    }

    @Test func `come again if PostgreSQL may have stored another form of a value in them`() async throws {
        let stage = await BridgeStage(StageDatabase.mixedItem)
        await stage.sql(["a": Self.row("a", .null)])
        var file = RealmModel(Self.schema)
        try await stage.connect { client in
            _ = try await client.begin()
            let view = try await client.subscribe(1)
            try Self.apply(view, to: &file)
            let base = view.progress.download.serverVersion
            let time = Value.timestamp(Timestamp(seconds: 1, nanoseconds: 5_001))
            for (version, value) in [(UInt64(3), Value.int(4)), (5, .float(1.5)), (7, time)] {
                try client.upload(version, base: base, [Self.any("a", .value(value))])
                var texts: [String] = []
                for case .download(let download) in await client.messages(through: .acknowledgement(version))
                    + (try await client.catchUp(version))
                {
                    texts += try StageClient.texts(download).filter { $0.contains("a.any") }
                }
                #expect(texts.isEmpty == (value == .int(4)))
            }
        }
    }

    @Test func `come into objects that the client made itself, also by the app alone`() async throws {
        let stage = await BridgeStage(StageDatabase.mixedItem)
        var file = RealmModel(Self.schema)
        try await stage.connect { client in
            try Self.apply(try await client.beginWithView().view, to: &file)
            let view = try await client.subscribe(1)
            try Self.apply(view, to: &file)
            let own = ["x", "y", "z"].flatMap(Self.made)
            try file.apply(own)
            try client.upload(3, base: view.progress.download.serverVersion, own)
            var alone = file
            try alone.apply([Self.any("x", .container(.list)), .createObject(.item("w")), .eraseObject(.item("y"))])
            try Self.apply(await client.messages(through: .acknowledgement(3)), to: &file)
            try Self.apply(try await client.catchUp(1), to: &file)
            #expect(file.objects.count == 3)
            await stage.sql(["x": Self.row("x", .dictionary(["in": .int(5)]))])
            try Self.apply(await client.download(.changes), to: &file)
            try file.apply([.createObject(.item("w")), .eraseObject(.item("y"))])
        }
        #expect(file.objects[.item("x")]?["any"] == .dictionary(["in": .int(5)]))
    }

    @Test func `come into one of many objects that the client made itself`() async throws {
        let stage = await BridgeStage(StageDatabase.mixedItem)
        var file = RealmModel(Self.schema)
        try await stage.connect { client in
            try Self.apply(try await client.beginWithView().view, to: &file)
            let view = try await client.subscribe(1)
            try Self.apply(view, to: &file)
            for version in (1...20) as ClosedRange<UInt64> {
                let own = (1...30).flatMap { Self.made("\(version) \($0)") }
                try file.apply(own)
                try client.upload(version + 2, base: view.progress.download.serverVersion, own)
                try Self.apply(await client.messages(through: .acknowledgement(version + 2)), to: &file)
                try Self.apply(try await client.catchUp(version), to: &file)
            }
            for place in ["3 5", "12 1", "20 2"] {
                try file.apply([Self.any(place, .container(.list)), .createObject(.item("new \(place)")), .eraseObject(.item("18 30"))])
            }
        }
        #expect(file.objects.count == 602)
    }

    private static func made(_ key: String) -> [RealmInstruction] { [.createObject(.item(key)), any(key, .value(.int(1)))] }
}
