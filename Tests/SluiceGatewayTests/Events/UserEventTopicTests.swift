import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePorts
import SluiceTools
import SluiceValues
import SluiceWire
import TestSupport
import Testing

/// The topic of users' events on a broker, with a gateway that runs.
@Suite(.timeLimit(.minutes(5))) struct `The topic of users' events` {
    private static let tables = ShopApp.tables + "CREATE TABLE users (_id text PRIMARY KEY, name text);"
    /// A class with the name of the topic.
    private static let usersClass = [
        ShopApp.table("users", "schema"): """
        {
            "title": "users", "bsonType": "object", "required": ["_id"],
            "properties": { "_id": { "bsonType": "string" }, "name": { "bsonType": "string" } }
        }
        """
    ]

    private static func files(_ app: String, _ more: [String: String] = [:]) -> [String: String] {
        var files = ShopApp.files.merging(more) { $1 }
        files["realm_config.json"] = #"{ "app_id": "\#(app)", "name": "shop" }"#
        files["data_sources/postgres/default_rule.json"] = #"{ "roles": [\#(NoteApp.role("everybody"))] }"#
        return files
    }

    private static func broker() throws -> (address: String, app: String) {
        let address = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        return (address, "shop-\(UUID().uuidString.prefix(13).lowercased())")
    }

    private struct Record {
        var value: [UInt8]
        var content: String
    }

    /// Reads the first records of a topic's one partition.
    private static func records(_ count: Int, of topic: String, at address: String) async throws -> [Record] {
        let log = try KafkaLog(KafkaConfiguration(bootstrapServers: address, clientID: "test"), logger: Logger.quiet)
        let read: Result<[Record], any Error>
        do {
            read = .success(
                try await log.withReader { reader in
                    try await reader.assign([LogPartition(topic, 0): 0])
                    var records: [Record] = []
                    var fetch = LogFetch()
                    while records.count < count {
                        fetch = try await reader.next(fetch, milliseconds: 20_000)
                        if fetch.entries.isEmpty { break }
                        records += fetch.entries.map {
                            Record(
                                value: Array(fetch.arena[$0.value]), content: String(decoding: fetch.arena[$0.contentType], as: UTF8.self))
                        }
                    }
                    return records
                })
        } catch { read = .failure(error) }
        await log.close()
        return try read.get()
    }

    /// A user who is created, logs in, is disabled and enabled, and is deleted.
    private static func live(_ name: String, _ gateway: RunningGateway) async throws -> String {
        let id = try await gateway.createUser(name, customData: #"{"store": "north"}"#)
        #expect(try await gateway.login(name).status == 200)
        for step in ["disable", "enable"] {
            #expect(try await gateway.request("PUT", "/admin/v1/users/\(id)/\(step)", admin: true).status < 300)
        }
        #expect(try await gateway.request("DELETE", "/admin/v1/users/\(id)", admin: true).status < 300)
        return id
    }

    private static let kinds = ["created", "logged in", "disabled", "enabled", "deleted"]

    @Test func `is APP.users, with JSON`() async throws {
        let (address, app) = try Self.broker()
        try await RunningGateway.deploy { deployment in
            try await deployment.run(Self.files(app), kafka: address) { gateway in
                let id = try await Self.live("ada@example.com", gateway)
                let records = try await Self.records(5, of: "\(app).users", at: address)
                let events = try records.map { try JSON.parse($0.value) }
                #expect(events.compactMap { $0["kind"]?.string } == Self.kinds)
                #expect(Set(records.map(\.content)) == ["application/json"])
                #expect(events.allSatisfy { $0["user"]?["id"]?.string == id })
                #expect(events[1]["provider"] == "local-userpass" && events[1]["user"]?["custom_data"] == ["store": "north"])
            }
        }
    }

    @Test func `has Protobuf if sluice.json asks for it`() async throws {
        let (address, app) = try Self.broker()
        let files = Self.files(app, ["sluice.json": #"{"events": {"format": "protobuf"}}"#])
        try await RunningGateway.deploy { deployment in
            try await deployment.run(files, kafka: address) { gateway in
                let id = try await Self.live("ada@example.com", gateway)
                let records = try await Self.records(5, of: "\(app).users", at: address)
                let events: [PBUserEvent] = try records.map { try WireProtocol.decode(from: $0.value) }
                #expect(events.map(\.kind) == [.created, .loggedIn, .disabled, .enabled, .deleted])
                #expect(Set(records.map(\.content)) == ["application/protobuf"])
                #expect(events.allSatisfy { $0.user.id == id } && events.map(\.id) == events.map(\.id).sorted())
                #expect(try Value(events[1].user.customData) == .dictionary(["store": .string("north")]))
            }
        }
    }

    @Test func `is APP.user-events if a class has the other topic, and the start says so`() async throws {
        let (address, app) = try Self.broker()
        let log = LinesOfLog()
        try await RunningGateway.deploy(Self.tables) { deployment in
            let logger = Logger(label: "test") { _ in log }
            try await deployment.run(Self.files(app, Self.usersClass), kafka: address, logger: logger) { gateway in
                _ = try await Self.live("ada@example.com", gateway)
                let events = try await Self.records(5, of: "\(app).user-events", at: address).map { try JSON.parse($0.value) }
                #expect(events.compactMap { $0["kind"]?.string } == Self.kinds)
                let device = try await gateway.openSession(["users"])
                try await device.subscribe(1, [("users", "TRUEPREDICATE")])
                try await gateway.sql("INSERT INTO users VALUES ('a', 'Ada')")
                try await device.receive { $0.rows["users"]?[.string("a")] != nil }
                device.close()
            }
        }
        let said = log.lines.filter { $0.message.contains("topic of users' events") }
        #expect(said.count == 1 && said.first?.metadata["topic"] == "\(app).user-events")
    }

    @Test func `stays where it is while the gateway runs, whatever class is added`() async throws {
        let (address, app) = try Self.broker()
        try await RunningGateway.deploy(Self.tables) { deployment in
            let grown = Self.files(app, Self.usersClass)
            let tool = SchemaTool(app: try AppDirectory.read(files: grown), postgres: deployment.conninfo)
            let log = LinesOfLog()
            try await deployment.run(Self.files(app), kafka: address, logger: Logger(label: "test") { _ in log }) { gateway in
                let refusal = await #expect(throws: SluiceError.self) { try await tool.apply(acceptsBreaking: false) }
                #expect(refusal?.code == .breakingSchemaChange && refusal?.message.contains("APP.user-events") == true)
                _ = try await tool.apply(acceptsBreaking: true)
                await log.wait(for: "requires a restart", about: "class users is new")
                _ = try await Self.live("ada@example.com", gateway)
                #expect(try await Self.records(5, of: "\(app).users", at: address).count == 5)
            }
            // As docs/events.md says: it has events in place of changes.
            let admin = try KafkaAdmin(KafkaConfiguration(bootstrapServers: address, clientID: "test"))
            try await admin.delete(["\(app).users"])
            await admin.close()
            try await deployment.run(grown, kafka: address) { gateway in
                _ = try await Self.live("bob@example.com", gateway)
                #expect(try await Self.records(5, of: "\(app).user-events", at: address).count == 5)
                let device = try await gateway.openSession(["users"])
                try await device.subscribe(1, [("users", "TRUEPREDICATE")])
                try await gateway.sql("INSERT INTO users VALUES ('a', 'Ada')")
                try await device.receive { $0.rows["users"]?[.string("a")] != nil }
                device.close()
            }
        }
    }

    @Test func `stays where it is in development, when an app brings such a class`() async throws {
        let (address, app) = try Self.broker()
        let files = Self.files(app).filter { !$0.key.contains("rule") }
        let type = ObjectType(name: "users", properties: [Property(id: 1, name: "_id", type: .string)])
        try await RunningGateway.deploy { deployment in
            try await deployment.run(files, kafka: address, isDevelopment: true) { gateway in
                let session = try await gateway.session(token: try await gateway.anonymousToken())
                try await session.sendHello(Schema([type]))
                try await session.receive { $0.error != nil || $0.welcome != nil }
                #expect(session.error?.message.contains("'users' cannot be added") == true && session.welcome == nil)
                session.close()
            }
        }
        // Without Kafka there are no events to move.
        try await RunningGateway.deploy { deployment in
            try await deployment.run(files, isDevelopment: true) { gateway in
                let session = try await gateway.session(token: try await gateway.anonymousToken())
                try await session.hello(Schema([type]))
                session.close()
            }
        }
    }

    @Test(arguments: [
        (#"{"format": "avro"}"#, "sluice.json:1:13", "'avro' is not a format", "json or protobuf"),
        (#"{"form": "json"}"#, "sluice.json:1:13", "'form' is not a known key", "known are format"),
    ])
    func `has a setting whose mistakes are named`(setting: String, place: String, message: String, fix: String) {
        let problems = AppFixture.problems(of: AppFixture.files.merging(["sluice.json": #"{"events": \#(setting)}"#]) { $1 })
        let found = problems.first { $0.place == place }
        #expect(found?.message.contains(message) == true && found?.fix.contains(fix) == true, "\(problems)")
    }

    @Test func `is among those that are checked`() throws {
        let (plain, grown) = (try AppDirectory.read(files: Self.files("a")), try AppDirectory.read(files: Self.files("a", Self.usersClass)))
        #expect(RequiredTopics(plain).all.first { $0.use == .userEvents }?.name == "a.users")
        #expect(RequiredTopics(grown).all.first { $0.use == .userEvents }?.name == "a.user-events")
        #expect(RequiredTopics(grown).all.first { $0.name == "a.users" }?.use == .changes)
    }
}
