import AirportOpsModels
import Foundation
import RealmSwift

extension AirportScene {
    /// Starts a second gateway, to which Cleo moves. A write of Ada's (gateway 1) reaches her through Kafka.
    func moveToSecondGateway() async throws {
        let second = try await Gateway.start(setup)
        gateways.append(second)
        c.close()
        let flights = try await c.open(second.url, query: Self.late("JFK"))
        guard let realm = a.realm, let flight = realm.objects(Flight.self).where(Self.late("JFK")).first else {
            throw SceneFailure("Ada has no flight.")
        }
        let key = flight._id
        try realm.write { flight.gate = "C7" }
        try await eventually("Cleo sees Ada's write through the second gateway", seconds: 60) {
            self.c.realm?.object(ofType: Flight.self, forPrimaryKey: key)?.gate == "C7"
        }
        reporter.step(
            "g",
            "Cleo moved to a second gateway at \(second.url) with \(flights.count) flights; Ada's write to flight \(key) reached her through Kafka"
        )
    }

    /// Commits 200 updates at 100 a second. Each is measured from its commit to the first live results that include it. Results may include
    /// several updates.
    func measureLatency() async throws {
        guard let realm = a.realm, let flight = realm.objects(Flight.self).where(Self.late("JFK")).first else {
            throw SceneFailure("Ada has no flight.")
        }
        let key = flight._id
        var sent: [ContinuousClock.Instant] = []
        var seen: [ContinuousClock.Instant] = []
        let clock = ContinuousClock()
        let token = realm.objects(Flight.self).where(Self.late("JFK")).observe { _ in
            guard let text = realm.object(ofType: Flight.self, forPrimaryKey: key)?.remark, let number = Int(text.dropFirst(2)) else {
                return
            }
            while seen.count <= number { seen.append(clock.now) }
        }
        let start = clock.now
        for number in 0..<200 {
            try await clock.sleep(until: start + .milliseconds(10 * number))
            _ = try await sql.query("UPDATE flights SET remark = $1 WHERE \"_id\" = $2", [.text("n=\(number)"), .int(key)])
            sent.append(clock.now)
        }
        try await eventually("the last update is in Ada's results") { seen.count == sent.count }
        token.invalidate()
        figures.latencies = zip(sent, seen).map { max(Double(($1 - $0) / .microseconds(1)) / 1_000, 0) }
    }

    /// Compares every replica with SQL, field by field, and checks the totals.
    func verify() async throws {
        for (agent, others) in [(a, "LGA"), (b, "JFK"), (c, "LGA")] {
            let expected = try await rows("origin = '\(agent.origin)' AND month = 12 AND dep_delay > 60")
            try await eventually("\(agent.name)'s replica equals SQL") {
                guard let realm = agent.realm else { return false }
                return realm.objects(Flight.self).sorted(byKeyPath: "_id").map(Self.line) == expected
            }
            let foreign = agent.realm?.objects(Flight.self).where { $0.origin == others }.count ?? 0
            try require(foreign == 0, "\(agent.name) holds \(foreign) flights of \(others)")
        }
        let total = try await number("SELECT count(*) FROM flights")
        try require(total == 336_776, "PostgreSQL has \(total) flights")
        reporter.step("end", "all three replicas equal SQL field by field; PostgreSQL has \(total) flights")
    }

    private func rows(_ condition: String) async throws -> [String] {
        let result = try await sql.query(
            """
            SELECT concat_ws('|', "_id", month, day, coalesce(dep_delay::text, '-'), carrier, flight, coalesce(tailnum, '-'), origin, dest,
                coalesce(remark, '-'), coalesce(gate, '-')) FROM flights WHERE \(condition) ORDER BY "_id"
            """)
        return result.column(0)
    }

    private static func line(_ flight: Flight) -> String {
        [
            "\(flight._id)", "\(flight.month)", "\(flight.day)", flight.dep_delay.map { "\($0)" } ?? "-", flight.carrier,
            "\(flight.flight)",
            flight.tailnum ?? "-", flight.origin, flight.dest, flight.remark ?? "-", flight.gate ?? "-",
        ].joined(separator: "|")
    }

    // MARK: Asking

    func require(_ condition: Bool, _ otherwise: @autoclosure () -> String) throws {
        if !condition { throw SceneFailure("It is not so: \(otherwise()).") }
    }

    /// Waits until a condition holds. It polls every 20 ms, because conditions have no events.
    func eventually(_ what: String, seconds: Double = 30, _ condition: @MainActor () async throws -> Bool) async throws {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while ContinuousClock.now < deadline {
            if try await condition() { return }
            try await _Concurrency.Task.sleep(for: .milliseconds(20))
        }
        throw SceneFailure("In \(Int(seconds)) s it did not come true that \(what). See \(setup.logPath).")
    }

    func value(_ query: String) async throws -> String? {
        let result = try await sql.query(query)
        return result.isEmpty ? nil : result[0, 0]
    }

    func number(_ query: String) async throws -> Int { Int(try await value(query) ?? "") ?? -1 }
    func count(_ condition: String) async throws -> Int { try await number("SELECT count(*) FROM flights WHERE \(condition)") }
    func key(_ condition: String) async throws -> Int { try await number("SELECT \"_id\" FROM flights WHERE \(condition)") }
    func text(_ column: String, of key: Int) async throws -> String? {
        try await value("SELECT \(column) FROM flights WHERE \"_id\" = \(key)")
    }

    /// Runs a program and waits for its end off the main thread.
    func run(_ command: String) async throws {
        let status: Int32 = try await withCheckedThrowingContinuation { continuation in
            let process = Process()
            process.executableURL = URL(fileURLWithPath: command)
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        try require(status == 0, "\(command) ended with status \(status)")
    }
}
