import AirportOpsModels
import Foundation
import RealmSwift
import TestSupport
import Testing

private final class Plane: Object {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var model: String?
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

/// Writes of which each has a record in Kafka before it happens, while the broker says nothing.
@Suite(.serialized, .timeLimit(.minutes(5))) struct AuditedWriteTests {
    private static let files = [
        "plugins.json": """
        { "plugins": [
            { "file": "libAppServicesRules.so" }, { "file": "libAuditTrail.so", "config": { "types": ["Flight"] } },
            { "file": "libWeatherIngest.so" }
        ] }
        """,
        "data_sources/postgres/public/planes/rules.json": """
        {
            "database": "public", "collection": "planes",
            "roles": [
                {
                    "name": "everybody", "apply_when": {}, "document_filters": { "read": true, "write": true },
                    "read": true, "write": true, "insert": true, "delete": true
                }
            ]
        }
        """,
    ]

    @MainActor
    private static func open(
        _ types: [Object.Type], of field: IngestField, in folder: DataFolder, _ name: String,
        subscribe: @escaping @Sendable (SyncSubscriptionSet) -> Void
    ) async throws -> Realm {
        let place = URL(fileURLWithPath: folder.path).appendingPathComponent(name)
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let app = App(id: field.app, configuration: AppConfiguration(baseURL: field.url(0), storageDirectory: place))
        let user = try await app.login(credentials: .emailPassword(email: IngestField.email, password: IngestField.password))
        var configuration = user.flexibleSyncConfiguration(initialSubscriptions: subscribe)
        configuration.objectTypes = types
        configuration.fileURL = place.appendingPathComponent("device.realm")
        return try await Realm(configuration: configuration, downloadBeforeOpen: .once)
    }

    private static func connections(_ condition: String, _ field: IngestField) async throws -> Int {
        try await field.count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND \(condition)") ?? 0
    }

    /// Returns when so many connections are in a state: the server's work has no event to wait for.
    private static func waits(for count: Int, _ condition: String, _ field: IngestField) async throws {
        let areThere = try await eventually { try await connections(condition, field) >= count }
        try #require(areThere, "There are fewer than \(count) connections with \(condition).")
    }

    @MainActor
    private static func remark(_ realm: Realm, _ flight: Int, _ text: String) throws {
        let flight = try #require(realm.object(ofType: Flight.self, forPrimaryKey: flight))
        try realm.write { flight.remark = text }
    }

    @MainActor
    @Test func `keep neither writes without records nor logins waiting`() async throws {
        let (broker, folder) = (try await TestBroker.start(), try DataFolder())
        try await IngestField.with(broker, files: Self.files) { @MainActor field in
            _ = try await field.gateways.query(FlightDesk.insert(0...11))
            var agents: [Realm] = []
            for number in 0..<12 {
                let agent = try await Self.open([Flight.self], of: field, in: folder, "agent\(number)") { subscriptions in
                    subscriptions.append(QuerySubscription<Flight> { $0.origin == "JFK" })
                }
                agents.append(agent)
            }
            let hangar = try await Self.open([Plane.self], of: field, in: folder, "hangar") { $0.append(QuerySubscription<Plane>()) }
            try Self.remark(agents[0], 0, "before")
            try await agents[0].syncSession?.wait(for: .upload)
            #expect(try await field.count("SELECT count(*) FROM flights WHERE remark = 'before'") == 1)

            broker.pause()
            for (number, agent) in agents.enumerated() { try Self.remark(agent, number, "meanwhile") }
            let waiting = "state = 'idle in transaction'"
            try await Self.waits(for: 8, waiting, field)
            try hangar.write { _ = hangar.create(Plane.self, value: ["_id": "N1", "model": "A320"]) }
            try await hangar.syncSession?.wait(for: .upload)
            _ = try await field.token()
            #expect(try await field.count("SELECT count(*) FROM planes") == 1)
            // Those that began to wait before still do.
            #expect(try await Self.connections(waiting, field) == 8)

            broker.resume()
            for realm in agents + [hangar] { realm.syncSession?.suspend() }
        }
    }

    @MainActor
    @Test func `keep only those waiting who write a row of theirs, though those need no record`() async throws {
        let (broker, folder) = (try await TestBroker.start(), try DataFolder())
        try await IngestField.with(broker, files: Self.files) { @MainActor field in
            _ = try await field.gateways.query(FlightDesk.insert(0...0))
            let agent = try await Self.open([Flight.self, Plane.self], of: field, in: folder, "agent") { subscriptions in
                subscriptions.append(QuerySubscription<Flight> { $0.origin == "JFK" })
                subscriptions.append(QuerySubscription<Plane>())
            }
            try agent.write { _ = agent.create(Plane.self, value: ["_id": "N1", "model": "A320"]) }
            try await agent.syncSession?.wait(for: .upload)
            var hangars: [Realm] = []
            for number in 0..<12 {
                hangars.append(
                    try await Self.open([Plane.self], of: field, in: folder, "hangar\(number)") { $0.append(QuerySubscription<Plane>()) })
            }

            broker.pause()
            let flight = try #require(agent.object(ofType: Flight.self, forPrimaryKey: 0))
            let plane = try #require(agent.object(ofType: Plane.self, forPrimaryKey: "N1"))
            try agent.write { (flight.remark, plane.model) = ("at the gate", "A321") }
            // What waits for longer is no transaction on its way to its next statement.
            try await Self.waits(for: 1, "state = 'idle in transaction' AND state_change < now() - interval '0.3 s'", field)
            for hangar in hangars.dropLast() {
                let plane = try #require(hangar.object(ofType: Plane.self, forPrimaryKey: "N1"))
                try hangar.write { plane.model = "A319" }
            }
            let waiting = "wait_event_type = 'Lock'"
            try await Self.waits(for: 7, waiting, field)
            let other = hangars[11]
            try other.write { _ = other.create(Plane.self, value: ["_id": "N2", "model": "A320"]) }
            try await other.syncSession?.wait(for: .upload)
            _ = try await field.token()
            #expect(try await field.count("SELECT count(*) FROM planes WHERE model = 'A320'") == 2)
            // Those that began to wait before still do.
            try await Self.waits(for: 7, waiting, field)

            broker.resume()
            for realm in [agent] + hangars { try await realm.syncSession?.wait(for: .upload) }
            #expect(try await field.count("SELECT count(*) FROM flights WHERE remark = 'at the gate'") == 1)
            #expect(try await field.count("SELECT count(*) FROM planes WHERE model = 'A319'") == 1)
            for realm in [agent] + hangars { realm.syncSession?.suspend() }
        }
    }
}
