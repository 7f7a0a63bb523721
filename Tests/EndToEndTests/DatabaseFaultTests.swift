import Foundation
import SluicePostgres
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// PostgreSQL is killed with SIGKILL and recovers, again and again, under two gateways: devices upload, another program writes by SQL, and
/// records come by all three ways meanwhile.
///
/// `SLUICE_DATABASE_SEED` draws the same faults again, not the same moments: these are processes.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DatabaseFaultTests {
    private static let seed =
        ProcessInfo.processInfo.environment["SLUICE_DATABASE_SEED"].flatMap { UInt64($0) } ?? .random(in: 0 ... .max)
    private static let plan = IngestPlan(records: 3_000, faults: 3)

    @Test(arguments: [seed])
    func `what was acknowledged is there once, and the gateways go on, when PostgreSQL was killed`(seed: UInt64) async throws {
        try await TestDatabaseServer.with { server in
            try await IngestField.with(nil, server: server.conninfo) { field in
                _ = try await field.gateways.query(FlightDesk.insert(0...2))
                let agents = [try await GateAgent(1, of: field), try await GateAgent(2, of: field)]
                let desk = FlightDesk()
                let senders: [any IngestSender] = [
                    HTTPSender(field: field, token: try await field.token()),
                    try KafkaSender(topic: field.topic, servers: field.kafka), try await DeviceSender(field: field),
                ]
                let slots = try await Self.slots(field)
                let done = try await Self.play(field, server, agents, desk, senders, SplitMix64(seed: seed))
                let comment = Comment(rawValue: "seed \(seed), \(done)")
                try await field.expectOnce(Self.plan, by: senders, comment)
                let kept = try await field.lettersKept()
                let (told, twice) = try await field.lettersTold(of: kept)
                #expect(told == kept && twice.isEmpty, comment)
                try await Self.expectOnce(field, agents, desk, comment)
                try await Self.expectWell(field, slots, comment)
            }
        }
    }

    /// - Returns: what was killed, in order.
    private static func play(
        _ field: IngestField, _ server: TestDatabaseServer, _ agents: [GateAgent], _ desk: FlightDesk, _ senders: [any IngestSender],
        _ random: SplitMix64
    ) async throws -> [String] {
        let pace = Pace()
        let (plan, faults, postgres) = (plan, plan.faults, field.gateways.postgres)
        let names = senders.map(\.way) + agents.map { "agent \($0.number)" }
        var parts: [@Sendable () async throws -> [String]] = senders.map { sender in { try await plan.send(by: sender, at: pace) } }
        parts += agents.map { agent in { try await agent.write(during: faults, at: pace) } }
        parts += [
            { try await desk.write(to: postgres, during: faults, at: pace) },
            { try await kill(server, for: names, random, at: pace) },
        ]
        return try await withThrowingTaskGroup(of: [String].self) { group in
            for part in parts { group.addTask { try await pace.guarding(part) } }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// Kills the server at a random moment of each share of the records, and starts it after a random pause.
    private static func kill(
        _ server: TestDatabaseServer, for names: [String], _ random: SplitMix64, at pace: Pace
    ) async throws -> [String] {
        var random = random
        var done: [String] = []
        for fault in 0..<plan.faults {
            await pace.wait(for: names, to: fault)
            // Moment and pause are what the play draws; nothing is waited for.
            try await Task.sleep(for: .milliseconds(random.below(1_000)))
            let death = random.pick(TestDatabaseServer.Death.allCases)
            let pause = random.below(2_000)
            done.append("\(death) for \(pause) ms")
            try await server.kill(death)
            try await Task.sleep(for: .milliseconds(pause))
            try await server.restart()
            await pace.advance("faults", to: fault + 1)
        }
        return done
    }

    /// What devices and another program have written.
    private static func expectOnce(_ field: IngestField, _ agents: [GateAgent], _ desk: FlightDesk, _ comment: Comment) async throws {
        let writes = await agents.asyncMap { await $0.writes }
        #expect(writes.allSatisfy { $0 > 10 }, "\(writes), \(comment)")
        let counts = try await field.gateways.query("SELECT dep_delay FROM flights WHERE \"_id\" < 3 ORDER BY \"_id\"")
        #expect((0..<counts.count).map { counts.int($0, 0) } == ([writes.reduce(0, +)] + writes).map { Int64($0) }, comment)
        let numbers = "SELECT sum(last_changeset)::bigint FROM sluice.client"
        #expect(try await field.count(numbers) == writes.reduce(0, +), comment)
        let stored = Set(
            try await field.gateways.query("SELECT \"_id\" FROM flights WHERE \"_id\" >= 1000").column(0).compactMap { Int($0) })
        let (committed, unknown) = (Set(await desk.committed), Set(await desk.unknown))
        #expect(committed.count > 10 && committed.isSubset(of: stored) && stored.isSubset(of: committed.union(unknown)), comment)
        let rows = try await field.gateways.query(FlightDesk.query).column(0)
        for agent in agents {
            let (number, flights, errors) = (agent.number, try await agent.flights(), await agent.errors)
            #expect(flights == rows, "agent \(number), \(comment)")
            #expect(errors == [], "agent \(number), \(comment)")
            await agent.end()
        }
    }

    /// The gateways are those of the beginning and can serve, one of them publishes, and the slot is the one that they made.
    private static func expectWell(_ field: IngestField, _ slots: [String], _ comment: Comment) async throws {
        #expect(field.gateways.all.map(\.isRunning) == [true, true], comment)
        var seen = ""
        let areWell = try await eventually(every: .milliseconds(100)) {
            let states = try await field.gateways.all.asyncMap { try await text("\($0.url)/ready") }
            let publishers = try await field.gateways.all.asyncMap { try await text("\($0.adminURL)/metrics") }.filter {
                $0.contains("\nsluice_publisher 1\n")
            }
            seen = "\(states), \(publishers.count) publishers, \(comment)"
            return states.allSatisfy { $0.contains(#""status":"ready""#) } && publishers.count == 1
        }
        #expect(areWell, "\(seen)")
        let now = try await Self.slots(field)
        #expect(now == slots && slots.count == 1, comment)
    }

    private static func slots(_ field: IngestField) async throws -> [String] {
        try await field.gateways.query("SELECT slot_name FROM pg_replication_slots WHERE wal_status <> 'lost'").column(0)
    }

    private static func text(_ url: String) async throws -> String {
        let (data, _) = try await URLSession.shared.data(from: try #require(URL(string: url)))
        return String(decoding: data, as: UTF8.self)
    }
}

extension Sequence where Element: Sendable {
    fileprivate func asyncMap<R>(_ body: (Element) async throws -> R) async rethrows -> [R] {
        var mapped: [R] = []
        for element in self { mapped.append(try await body(element)) }
        return mapped
    }
}
