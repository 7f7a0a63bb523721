import AirportOpsModels
import Foundation
import RealmSwift
import SluiceCore
import SluicePostgres

/// The whole path in one scenario: two agents, a supervisor, three weather stations, two gateways, and crashes in between.
///
/// Every step checks its result and throws a `SceneFailure` if it is wrong.
@MainActor
public final class AirportScene {
    let setup: SceneSetup
    let reporter: any SceneReporter
    let sql: PostgresConnection
    var gateways: [Gateway] = []
    public internal(set) var figures = Figures()

    /// The counts and measurements of the scene.
    public struct Figures: Sendable {
        public var snapshotRows = 0
        public var capturedRows = 0
        public var observations = 0
        public var rejectedObservations = 0
        /// Milliseconds from an SQL commit to the change in a replica's live results.
        public var latencies: [Double] = []

        public func latency(_ quantile: Double) -> Double {
            let sorted = latencies.sorted()
            guard !sorted.isEmpty else { return .nan }
            return sorted[min(Int(Double(sorted.count) * quantile), sorted.count - 1)]
        }
    }

    let a: Agent
    let b: Agent
    let c: Agent

    public init(_ setup: SceneSetup, reporter: any SceneReporter) async throws {
        self.setup = setup
        self.reporter = reporter
        sql = try await PostgresConnection.connect(setup.postgres)
        a = Agent("Ada", origin: "JFK", appID: setup.appID, folder: setup.workspace)
        b = Agent("Bob", origin: "LGA", appID: setup.appID, folder: setup.workspace)
        c = Agent(
            "Cleo", origin: "JFK", appID: setup.appID, folder: setup.workspace,
            identityProvider: IdentityProvider(key: setup.identityKey))
    }

    /// Runs every step in order, then verifies the end state.
    public func run() async throws {
        try await loadElevenMonths()
        try await startGateway()
        try await loadTwelfthMonth()
        try await openReplicas()
        try await moveFlightsBySQL()
        try await editOffline()
        try await writeForbidden()
        try await shareWithRealmSDK()
        try await reportWeather()
        try await moveToSecondGateway()
        try await measureLatency()
        try await verify()
    }

    /// Ends the processes and sessions that the scene started. Safe at any point.
    public func stop() {
        for agent in [a, b, c] { agent.close() }
        for gateway in gateways { gateway.stop() }
        gateways = []
    }

    var gateway: Gateway { gateways[0] }

    // MARK: The data

    private func loadElevenMonths() async throws {
        _ = try await sql.script(FlightData.tables)
        _ = try await sql.copyIn(FlightData.copyAirports, try setup.data.whole("airports.csv"))
        _ = try await sql.copyIn(FlightData.copyPlanes, try setup.data.whole("planes.csv"))
        let pieces = try setup.data.flights(months: Set(1...11))
        var rows = 0
        for (index, piece) in pieces.enumerated() {
            rows += try await sql.copyIn(FlightData.copyFlights, [piece])
            reporter.progress("loading eleven months", Double(index + 1) / Double(pieces.count))
        }
        figures.snapshotRows = rows
        try require(rows == 308_641, "eleven months have 308,641 flights, not \(rows)")
        reporter.step("a1", "\(rows) flights of eleven months are in PostgreSQL; no gateway has run yet")
    }

    private func startGateway() async throws {
        gateways.append(try await Gateway.start(setup))
        let admin = AdminClient(url: gateway.adminURL)
        for agent in [a, b, c] { try await agent.register(admin, gateway.url) }
        reporter.step("a2", "a gateway serves \(gateway.url)")
    }

    private func loadTwelfthMonth() async throws {
        let rows = try await sql.copyIn(FlightData.copyFlights, try setup.data.flights(months: [12]))
        figures.capturedRows = rows
        try require(rows == 28_135, "December has 28,135 flights, not \(rows)")
        reporter.step("a3", "\(rows) flights of December were loaded by COPY while it runs")
    }

    // MARK: Replicas

    nonisolated static func late(_ origin: String) -> @Sendable (Query<Flight>) -> Query<Bool> {
        { $0.origin == origin && $0.month == 12 && $0.dep_delay > 60 }
    }

    private func openReplicas() async throws {
        let flightsA = try await a.open(gateway.url, query: Self.late("JFK"))
        let flightsB = try await b.open(gateway.url, query: Self.late("LGA"))
        for (agent, flights) in [(a, flightsA), (b, flightsB)] {
            let expected = try await count("origin = '\(agent.origin)' AND month = 12 AND dep_delay > 60")
            try await eventually("\(agent.name) has \(expected) flights") { flights.count == expected }
            reporter.step("b", "\(agent.name) at \(agent.origin) has \(flights.count) late December flights in the replica")
        }
    }

    private func moveFlightsBySQL() async throws {
        let inside = try await key("origin = 'JFK' AND month = 12 AND dep_delay > 60 ORDER BY \"_id\" LIMIT 1")
        let outside = try await key("origin = 'JFK' AND month = 12 AND dep_delay BETWEEN 0 AND 30 ORDER BY \"_id\" LIMIT 1")
        let deletions = a.deletions
        _ = try await sql.query(
            "UPDATE flights SET dep_delay = CASE WHEN \"_id\" = $1 THEN 5 ELSE 95 END WHERE \"_id\" IN ($1, $2)",
            [.int(inside), .int(outside)])
        try await eventually("Ada's results report the flight that came and the one that went") {
            self.a.inserted.contains(outside) && self.a.deletions == deletions + 1
        }
        reporter.step(
            "c", "an UPDATE by SQL moved flight \(outside) into Ada's view and flight \(inside) out of it; her live results said so")
    }

    private func editOffline() async throws {
        let flightsC = try await c.open(gateway.url, query: Self.late("JFK"))
        try await eventually("Cleo's replica is filled") { flightsC.count > 0 }
        guard let identity = c.user?.identities.first, identity.providerType == "custom-token" else {
            throw SceneFailure("Cleo did not log in by a token.")
        }
        reporter.step("j", "Cleo logged in by a token of the airport's own identity provider, as \(identity.identifier)")
        guard let realm = a.realm, let session = realm.syncSession else { throw SceneFailure("Ada has no session.") }
        session.suspend()
        let flights = Array(realm.objects(Flight.self).where(Self.late("JFK")).prefix(2))
        let keys = flights.map(\._id)
        try realm.write {
            flights[0].remark = "crew late"
            flights[1].gate = "B42"
        }
        try require(try await text("remark", of: keys[0]) == nil, "an offline edit reached PostgreSQL")
        session.resume()
        try await eventually("PostgreSQL has Ada's edits") {
            let remark = try await self.text("remark", of: keys[0])
            let gate = try await self.text("gate", of: keys[1])
            return remark == "crew late" && gate == "B42"
        }
        try await eventually("Cleo sees Ada's edits") {
            let remark = self.c.realm?.object(ofType: Flight.self, forPrimaryKey: keys[0])?.remark
            let gate = self.c.realm?.object(ofType: Flight.self, forPrimaryKey: keys[1])?.gate
            return remark == "crew late" && gate == "B42"
        }
        try require(keys.allSatisfy { b.realm?.object(ofType: Flight.self, forPrimaryKey: $0) == nil }, "Bob sees a flight of JFK")
        reporter.step(
            "d", "Ada edited flights \(keys[0]) and \(keys[1]) offline; PostgreSQL and Cleo have the edits, Bob does not see them")
    }

    private func writeForbidden() async throws {
        guard let realm = a.realm else { throw SceneFailure("Ada has no realm.") }
        let flight = try await key("origin = 'LGA' AND month = 12 AND dep_delay > 60 ORDER BY \"_id\" LIMIT 1")
        let before = try await text("remark", of: flight)
        try realm.write {
            _ = realm.create(
                Flight.self,
                value: ["_id": flight, "origin": "LGA", "month": 12, "dep_delay": 70, "remark": "mine now"] as [String: Any],
                update: .modified)
        }
        try await eventually("Ada is told that her write was undone") { !self.a.refused.value.isEmpty }
        try await eventually("Ada's replica is back to the server's state") {
            realm.refresh()
            return realm.object(ofType: Flight.self, forPrimaryKey: flight) == nil
        }
        try require(try await text("remark", of: flight) == before, "a forbidden write reached PostgreSQL")
        let refusal = a.refused.value[0]
        reporter.step("e", "Ada may not write a flight of LGA: \(refusal.reason)")
    }
}

extension AirportScene {
    public struct Login: Sendable {
        public var name: String
        public var email: String
        public var password: String
        public var token: String
    }

    /// The agents' logins, for exploration by hand afterwards.
    public var logins: [Login] {
        [a, b].map {
            Login(name: $0.name, email: $0.credentials.email, password: $0.credentials.password, token: $0.user?.accessToken ?? "")
        }
    }

    public var url: String { gateways.first?.url ?? "" }
    public var adminURL: String { gateways.first?.adminURL ?? "" }
}
