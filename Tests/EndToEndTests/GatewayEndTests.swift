import Foundation
import SluicePostgres
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Gateways end by SIGTERM and come back while devices upload.
@Suite(.serialized, .timeLimit(.minutes(5))) struct GatewayEndTests {
    @Test func `nothing that a device uploads is lost or repeated while its gateway ends, which exits with 0`() async throws {
        try await IngestField.with(nil, grace: 15) { field in
            _ = try await field.gateways.query(FlightDesk.insert(0...2))
            let agents = [try await GateAgent(1, of: field), try await GateAgent(2, of: field)]
            let (pace, faults, gateways) = (Pace(), 4, field.gateways)
            let names = agents.map { "agent \($0.number)" }
            var parts: [@Sendable () async throws -> [String]] = agents.map { agent in { try await agent.write(during: faults, at: pace) } }
            parts.append {
                for fault in 0..<faults {
                    await pace.wait(for: names, to: fault)
                    let gateway = gateways.all[fault % 2]
                    #expect(await gateway.stop() == .exit(0), "\(gateway.said)")
                    // A gateway that was let end has let go of the slot, so another one has it, or will.
                    #expect(try await eventually(every: .milliseconds(20)) { try await Self.publisher(gateways) != nil })
                    try await gateway.start()
                    await pace.advance("faults", to: fault + 1)
                }
                return []
            }
            try await withThrowingTaskGroup(of: [String].self) { group in
                for part in parts { group.addTask { try await pace.guarding(part) } }
                try await group.waitForAll()
            }
            let writes = [await agents[0].writes, await agents[1].writes]
            let counts = try await gateways.query("SELECT dep_delay FROM flights WHERE \"_id\" < 3 ORDER BY \"_id\"")
            #expect((0..<counts.count).map { counts.int($0, 0) } == ([writes.reduce(0, +)] + writes).map { Int64($0) })
            #expect(try await field.count("SELECT sum(last_changeset)::bigint FROM sluice.client") == writes.reduce(0, +))
            let rows = try await gateways.query(FlightDesk.query).column(0)
            for agent in agents {
                let (flights, errors) = (try await agent.flights(), await agent.errors)
                #expect(flights == rows)
                #expect(errors == [])
                await agent.end()
            }
            #expect(gateways.all.allSatisfy { !$0.said.contains("did not stop within") }, "\(gateways.all.map(\.said))")
        }
    }

    @Test func `a write that is being committed when its gateway ends is committed and acknowledged`() async throws {
        try await IngestField.with(nil, grace: 30) { field in
            _ = try await field.gateways.query(FlightDesk.insert(0...2))
            let agent = try await GateAgent(1, of: field)
            let gateway = field.gateways.all[1]
            let holder = try await PostgresConnection.connect(field.gateways.postgres)
            try await holder.query("BEGIN")
            try await holder.query("SELECT 1 FROM flights WHERE \"_id\" < 3 FOR UPDATE")
            async let acknowledged: Void = agent.upload()
            let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            #expect(try await eventually(every: .milliseconds(20)) { try await field.count(waiting) ?? 0 > 0 })
            let port = try #require(gateway.port)
            async let ending = gateway.stop()
            #expect(try await eventually(every: .milliseconds(20)) { isFree(port: port) })
            try await holder.query("COMMIT")
            // No other gateway listens on this port, so the acknowledgement is the work of the one that ends.
            try await acknowledged
            #expect(await ending == .exit(0), "\(gateway.said)")
            #expect(!gateway.said.contains("The grace period ended"), "\(gateway.said)")
            #expect(try await field.count("SELECT dep_delay FROM flights WHERE \"_id\" = 1") == 1)
            await holder.close()
            await agent.end()
        }
    }

    @Test func `a gateway that ends is not ready first, and then leaves its port and its clients`() async throws {
        try await IngestField.with(nil, grace: 15) { field in
            _ = try await field.gateways.query(FlightDesk.insert(0...2))
            let agent = try await GateAgent(1, of: field)
            let gateway = field.gateways.all[1]
            let (port, adminURL) = (try #require(gateway.port), gateway.adminURL)
            // A login whose body never comes keeps the gateway until the share of HTTP requests is over.
            let held = try LocalSocket(port: port)
            try held.write(
                Array(
                    "POST /api/client/v2.0/app/\(field.app)/auth/providers/local-userpass/login HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\n{"
                        .utf8))
            async let ending = gateway.stop()
            let notice = try await found(every: .milliseconds(20)) { try await Self.answer("\(adminURL)/ready", 503) }
            #expect(notice?.contains(#""part":"gateway""#) == true, "\(notice ?? "")")
            // The client port still serves for a fifth of the grace period.
            #expect(try await Self.answer("http://127.0.0.1:\(port)/health", 200) != nil)
            // Later the port is closed, and the admin port still answers.
            let isClosed = try await eventually(every: .milliseconds(20)) {
                (try? await Self.answer("http://127.0.0.1:\(port)/health", 200)) == nil
            }
            #expect(isClosed)
            #expect(try await Self.answer("\(adminURL)/ready", 503) != nil)
            #expect(await ending == .exit(0), "\(gateway.said)")
            // One line names all that was cut off: the login, and no session.
            let lines = gateway.said.split(separator: "\n").filter { $0.contains("The grace period ended") }
            #expect(lines.count == 1 && lines[0].contains("requests=1 sessions=0"), "\(gateway.said)")
            withExtendedLifetime(held) {}
            await agent.end()
        }
    }

    /// The process of the server that reads the slot; nil for none.
    private static func publisher(_ gateways: ServedGateways) async throws -> Int64? {
        let result = try await gateways.query("SELECT active_pid FROM pg_replication_slots WHERE database = current_database()")
        return result.count == 0 ? nil : result.int(0, 0)
    }

    /// Returns the body of an answer with a status; nil for another status.
    private static func answer(_ url: String, _ status: Int) async throws -> String? {
        let (data, response) = try await URLSession.shared.data(from: try #require(URL(string: url)))
        return (response as? HTTPURLResponse)?.statusCode == status ? String(decoding: data, as: UTF8.self) : nil
    }
}
