import FoundationEssentials
import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceValues
import Testing

struct AppDirectoryTests {
    @Test func `the schema has every type in the order of its file`() throws {
        let app = try AppDirectory.read(files: AppFixture.files)
        let order = try #require(app.schema["Order"])
        #expect(
            order.properties.map(\.name) == [
                "_id", "store", "owner", "total", "buyer", "tags", "lines", "address", "notes", "anything",
            ])
        #expect(order.properties.map(\.id) == Array(1...10))
        #expect(
            order.properties.map(\.type) == [
                .objectId, .int, .string, .decimal, .link(to: "Person"), .string, .embedded("Line"), .embedded("Address"), .timestamp,
                .mixed,
            ])
        #expect(order.properties.map(\.collection) == [.none, .none, .none, .none, .none, .set, .list, .none, .dictionary, .none])
        #expect(order.properties.map(\.isOptional) == [false, false, true, true, true, false, false, false, true, true])
        #expect(order.primaryKey == 0)
        #expect(app.schema.types.map(\.name) == ["Order", "Person", "Reading", "Line", "Address"])
        #expect(app.schema.types.map(\.kind) == [.topLevel, .topLevel, .asymmetric, .embedded, .embedded])
        let line = try #require(app.schema["Line"])
        #expect(line.properties.map(\.type) == [.int, .link(to: "Person")])
        #expect(line.properties.map(\.collection) == [.none, .list])
        #expect(app.schema["Reading"]?["level"]?.type == .float)
    }

    @Test func `everything else is where it belongs`() throws {
        let app = try AppDirectory.read(files: AppFixture.files)
        #expect(app.appID == "shop-abc")
        #expect(app.name == "shop")
        #expect(app.tables["Order"] == .init(schema: "shop", name: "orders"))
        #expect(app.tables.count == 3)
        #expect(app.partitions == ["Reading": TimePartitions(property: "at", period: .week, keepDays: 30)])
        #expect(app.queryableFields == QueryableFields(global: ["owner", "store"], byType: ["Order": ["total"]], indexed: "store"))
        #expect(app.isEnabled(provider: "anon-user"))
        #expect(!app.isEnabled(provider: "local-userpass"))
        #expect(app.values == ["region": ["eu", "us"], "limit": 7])
        #expect(app.environmentTag == "qa")
        #expect(app.users.refreshTokenLifetime == 7_200)
        #expect(app.sync.isEnabled && app.sync.maximumOfflineDays == Limits.clientMemoryDays)
        #expect(!app.sync.isDevelopmentMode)
        #expect(app.files[AppFixture.orders("rules")]?.contains("document_filters") == true)
        #expect(app.notes.contains { $0.description == "graphql/ has no effect here." })
    }

    @Test func `what a schema says beyond types is noted, since it is neither checked nor applied`() throws {
        let files = AppFixture.replacing(
            "\"store\": { \"bsonType\": \"long\" }", with: "\"store\": { \"bsonType\": \"long\", \"default\": 1, \"minimum\": 0 }",
            in: AppFixture.orders("schema"))
        let notes = try AppDirectory.read(files: files).notes.filter { $0.file == AppFixture.orders("schema") }.map(\.description)
        #expect(notes.count == 2 && notes.allSatisfy { $0.contains("store") }, "\(notes)")
        #expect(notes.contains { $0.contains("'minimum'") && $0.contains("not checked") }, "\(notes)")
        #expect(notes.contains { $0.contains("'default'") && $0.contains("not applied") }, "\(notes)")
    }

    @Test func `what the sync settings say has its effect or a note`() throws {
        let files = AppFixture.replacing(
            "\"enabled\"", with: "\"\", \"client_max_offline_days\": 90", in: "sync/config.json")
        let app = try AppDirectory.read(files: files)
        #expect(app.sync.maximumOfflineDays == 90 && !app.sync.isEnabled)
        #expect(app.notes.contains { $0.description.contains("terminated") }, "\(app.notes)")
    }

    @Test func `a secret that an export does not hold is noted`() throws {
        var files = AppFixture.adding("values/key.json", #"{ "name": "key", "value": "the-key", "from_secret": true }"#)
        #expect(try AppDirectory.read(files: files).notes.contains { $0.description.contains("secrets.json has no secret 'the-key'") })
        files["secrets.json"] = #"{ "the-key": "x" }"#
        #expect(try !AppDirectory.read(files: files).notes.contains { $0.description.contains("the-key") })
    }

    @Test func `app_json is read like realm_config_json, and 60 days are the default`() throws {
        var files = AppFixture.removing("realm_config.json")
        files["app.json"] = #"{ "app_id": "old-style" }"#
        let app = try AppDirectory.read(files: files)
        #expect(app.appID == "old-style")
        #expect(app.users.refreshTokenLifetime == 60 * 86_400)
    }

    @Test func `all problems come at once, in the order of files and lines`() {
        var files = AppFixture.replacing("\"queryable_fields_names\"", with: "\"queryable_field_names\"", in: "sync/config.json")
        files["realm_config.json"] = "{\n  \"app_id\": \"x\",\n  \"locatoin\": \"US-VA\"\n}"
        let problems = AppFixture.problems(of: files)
        #expect(problems.map(\.place) == ["realm_config.json:3:3", "sync/config.json:5:5", "sync/config.json:7:5"])
        #expect(problems.map(\.code) == [.configUnknownKey, .configUnknownKey, .configInvalid])
        #expect(problems[0].fix == "Did you mean 'location'?")
        #expect(problems[1].fix == "Did you mean 'queryable_fields_names'?")
    }

    @Test func `a directory on disk is read, hidden files and others left out`() throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-\(UUID())").path()
        defer { try? FileManager.default.removeItem(atPath: root) }
        for (path, text) in AppFixture.files {
            let file = root + "/" + path
            let folder = file.split(separator: "/").dropLast().joined(separator: "/")
            try FileManager.default.createDirectory(atPath: "/" + folder, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(filePath: file))
        }
        try Data("not json".utf8).write(to: URL(filePath: root + "/README.md"))
        try FileManager.default.createDirectory(atPath: root + "/.git", withIntermediateDirectories: true)
        try Data("{".utf8).write(to: URL(filePath: root + "/.git/x.json"))
        let app = try AppDirectory.load(at: root)
        #expect(app.schema == (try AppDirectory.read(files: AppFixture.files)).schema)
        #expect(app.files.count == AppFixture.files.count)
    }

    @Test func `a place without a directory is named`() {
        let error = #expect(throws: AppDirectoryError.self) { try AppDirectory.load(at: "/nowhere/app") }
        #expect(error?.asSluiceError.code == .configMissing)
        #expect(error?.description.contains("/nowhere/app") == true)
    }

    @Test func `the airport example is read`() throws {
        let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        let app = try AppDirectory.load(at: "/\(root)/Examples/AirportOps/app")
        #expect(app.appID == "airport-ops")
        #expect(app.notes == [])
        #expect(app.tables["Flight"] == .init(schema: "public", name: "flights"))
        let flight = try #require(app.schema["Flight"])
        #expect(flight.properties.count == 22)
        #expect(
            flight.properties.filter(\.isOptional).map(\.name) == [
                "dep_time", "dep_delay", "arr_time", "arr_delay", "tailnum", "air_time", "remark", "gate",
            ])
        #expect(app.queryableFields.indexed == "origin")
        #expect(app.queryableFields.indexedProperty(of: flight) == 13)
        #expect(app.schema["WeatherObservation"]?.kind == .asymmetric)
        #expect(app.schema.types.count == 4)
        #expect(app.isEnabled(provider: "anon-user") && app.isEnabled(provider: "local-userpass"))
    }
}
