import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceTools
import Testing

/// Rows that are written while a schema grows: whoever has the new class or property gets every one of them, with its values.
@Suite(.timeLimit(.minutes(5))) struct `Rows beside a schema that grows` {
    private static let orders = ShopApp.table("orders", "schema")

    /// The shop with orders that have some more properties, and some more classes.
    private static func files(_ app: String, notes: Int = 0, crates: Int = 0) -> [String: String] {
        var files = ShopApp.files
        files["realm_config.json"] = #"{ "app_id": "\#(app)", "name": "shop" }"#
        files["data_sources/postgres/default_rule.json"] = #"{ "roles": [\#(NoteApp.role("everybody"))] }"#
        let more = (0..<notes).map { #", "note\#($0)": { "bsonType": "string" }"# }.joined()
        files[orders] = """
            {
                "title": "Order", "bsonType": "object", "required": ["_id", "store", "size"],
                "properties": {
                    "_id": { "bsonType": "string" }, "store": { "bsonType": "string" }, "title": { "bsonType": "string" },
                    "size": { "bsonType": "long" }, "secret": { "bsonType": "string" }\(more)
                }
            }
            """
        for crate in 0..<crates {
            files[ShopApp.table("crate\(crate)", "schema")] = """
                {
                    "title": "Crate\(crate)", "bsonType": "object", "required": ["_id", "store"],
                    "properties": { "_id": { "bsonType": "string" }, "store": { "bsonType": "string" }, "title": { "bsonType": "string" } }
                }
                """
        }
        return files
    }

    /// Two gateways on one database; the first has the slot.
    private static func pair(
        isDevelopment: Bool = false,
        _ body: @escaping @Sendable (RunningGateway.Deployment, RunningGateway, RunningGateway) async throws -> Void
    ) async throws {
        let broker = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        var files = files("shop-\(UUID().uuidString.prefix(13).lowercased())")
        // Without rules everything is allowed in development, new classes too.
        if isDevelopment { files = files.filter { !$0.key.contains("rule") } }
        try await RunningGateway.deploy { [files] deployment in
            try await deployment.run(files, kafka: broker, isDevelopment: isDevelopment) { first in
                let isReading = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database() AND active"
                _ = try await first.eventually(isReading, is: 1)
                try await deployment.run(files, kafka: broker, isDevelopment: isDevelopment) { second in
                    try await body(deployment, first, second)
                }
            }
        }
    }

    /// Rows of three moments: before the session, at its beginning, and one after the other; all have what is new.
    private static func check(_ gateway: RunningGateway, _ type: String, _ property: String, _ table: String, round: Int) async throws {
        func insert(_ key: String) async throws {
            let columns = table == "orders" ? "size, \(property)" : property
            let values = table == "orders" ? "1, 'new'" : "'new'"
            try await gateway.sql("INSERT INTO \(table) (_id, store, \(columns)) VALUES ('\(round)-\(key)', 'north', \(values))")
        }
        try await insert("before")
        try await gateway.untilKnown(property, of: type)
        let device = try await gateway.openSession([type])
        try await device.subscribe(1, [(type, "store == 'north'")])
        for count in 0..<3 { try await insert("\(count)") }
        for key in ["before", "0", "1", "2"].map({ Value.string("\(round)-\($0)") }) {
            try await device.receive { $0.rows[type]?[key] != nil }
            #expect(device.rows[type]?[key]?[property] == .string("new"), "\(key) of round \(round)")
        }
        device.close()
    }

    @Test func `reach a device with the new property, whichever gateway reads the log`() async throws {
        try await Self.pair { _, first, second in
            for round in 0..<6 {
                let files = Self.files(first.app, notes: round + 1)
                let tool = SchemaTool(app: try AppDirectory.read(files: files), postgres: first.conninfo)
                _ = try await tool.apply(acceptsBreaking: false)
                try await Self.check(round % 3 == 0 ? first : second, "Order", "note\(round)", "orders", round: round)
            }
        }
    }

    @Test func `reach a device with the new class, also while gateways without it read the log`() async throws {
        try await Self.pair { deployment, first, _ in
            let broker = ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"]
            for round in 0..<3 {
                try await first.sql("CREATE TABLE crate\(round) (_id text PRIMARY KEY, store text NOT NULL, title text)")
                try await deployment.run(Self.files(first.app, crates: round + 1), kafka: broker) { third in
                    try await Self.check(third, "Crate\(round)", "title", "crate\(round)", round: round)
                }
            }
        }
    }

    @Test func `reach a device that brought the class or property itself, whichever gateway reads the log`() async throws {
        try await Self.pair(isDevelopment: true) { _, first, second in
            for round in 0..<6 {
                let gateway = round % 3 == 0 ? first : second
                let type = round % 2 == 0 ? "Order" : "Crate\(round)"
                let properties = ["_id", "store", "note\(round)"].enumerated().map {
                    Property(id: UInt32($0 + 1), name: $1, type: .string, isOptional: $0 == 2)
                }
                let device = try await gateway.session(token: try await gateway.anonymousToken())
                try await device.hello(Schema([ObjectType(name: type, properties: properties)]))
                try await device.subscribe(1, [(type, "store == 'north'")])
                try await Self.check(gateway, type, "note\(round)", round % 2 == 0 ? "orders" : #""\#(type)""#, round: round)
                for key in ["before", "0", "1", "2"].map({ Value.string("\(round)-\($0)") }) {
                    try await device.receive { $0.rows[type]?[key] != nil }
                    #expect(device.rows[type]?[key]?["note\(round)"] == .string("new"), "\(key) of round \(round)")
                }
                device.close()
            }
        }
    }
}
