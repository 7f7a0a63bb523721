import Foundation
import SluicePostgres
import SluiceWire

/// Measures the cost of roles. The same changes go to 1,000 sessions of a gateway without rules and, in turn, of one with a role that has a
/// filter. Also measures the rate of opening sessions on each, from the connection to the end of the bootstrap.
///
/// All sessions must receive each change before the next is written. In a burst the number of changes joined into a message varies, and
/// with it the cost of a delivery.
@MainActor
struct RulesBenchmark {
    let setup: Setup

    private static let connections = 1_000

    /// The roles in their order: one that does not apply to a user without data, and one with a filter that every row satisfies.
    private static let rules = #"""
        { "database": "public", "collection": "items", "roles": [
            { "name": "keeper", "apply_when": { "%%user.custom_data.store": { "%exists": true } },
              "document_filters": { "read": { "store": "%%user.custom_data.store" }, "write": false },
              "read": true, "write": false, "insert": false, "delete": false, "search": true },
            { "name": "visitor", "apply_when": {},
              "document_filters": { "read": { "quantity": { "$gte": 0 } }, "write": false },
              "read": true, "write": false, "insert": false, "delete": false, "search": true } ] }
        """#

    func run(_ report: inout Report) async throws {
        let plain = try await Side(setup, "bench_norules", rules: nil, connections: Self.connections)
        let ruled = try await Side(setup, "bench_rules", rules: Self.rules, connections: Self.connections)
        for round in 0...setup.rounds {
            try await ruled.deliver(setup.scaled(500), isCounted: round > 0)
            try await plain.deliver(setup.scaled(500), isCounted: round > 0)
        }
        report.add(
            "changes, one at a time, to \(Self.connections.formatted()) sessions whose role has a filter",
            ours: "\(ruled.perSecond.median.short)/s, \(ruled.cpu.median.text(2)) µs of CPU each",
            reference: "without rules \(plain.perSecond.median.short)/s, \(plain.cpu.median.text(2)) µs",
            ratio: "\((zip(ruled.perSecond, plain.perSecond).map { $0 / $1 }.median * 100).text()) %, "
                + "CPU \((ruled.cpu.median / plain.cpu.median).text(2)) ×", target: "100 %")
        let sessions = setup.scaled(10_000)
        try await ruled.register(sessions)
        try await plain.register(sessions)
        var (ours, theirs): ([Double], [Double]) = ([], [])
        for _ in 0..<setup.rounds {
            ours.append(try await ruled.open(sessions))
            theirs.append(try await plain.open(sessions))
            say("    \(ours.last?.short ?? "")/s, without rules \(theirs.last?.short ?? "")/s")
        }
        report.add(
            "sessions opened by \(sessions.formatted()) users with roles, each its own subscription, bootstraps included",
            ours: "\(ours.median.short)/s",
            reference: "without rules \(theirs.median.short)/s",
            ratio: "\((zip(ours, theirs).map { $0 / $1 }.median * 100).text()) %", target: "≥ 2,000/s")
        await ruled.stop()
        await plain.stop()
    }

    /// A gateway, its database and its sessions.
    @MainActor
    private final class Side {
        private let setup: Setup
        private let conninfo: String
        private let gateway: RunningGateway
        private let sql: PostgresConnection
        private let hello: [UInt8]
        private let load: SocketLoad
        /// The first messages of the users that open sessions.
        private var hellos: [[UInt8]] = []
        private var written = 0
        private(set) var perSecond: [Double] = []
        private(set) var cpu: [Double] = []

        init(_ setup: Setup, _ name: String, rules: String?, connections: Int) async throws {
            self.setup = setup
            let (conninfo, sql) = try await setup.database(name)
            (self.conninfo, self.sql) = (conninfo, sql)
            try await sql.script(Item.insert(10, from: 0, note: 228))
            gateway = try await setup.gateway(name, conninfo, kafka: false, rules: rules)
            let user = try await SocketLoad.login(gateway, folder: "\(setup.workspace)/\(name)")
            hello = try SocketLoad.hello(user, queries: ["store == 1"])
            load = try await SocketLoad(
                setup, port: gateway.port, path: WireProtocol.path(app: gateway.appID), hellos: [hello], connections: connections)
        }

        /// Writes this many changes of one row. Every session must receive each before the next.
        func deliver(_ changes: Int, isCounted: Bool) async throws {
            let (before, begin, used) = (load.changes, seconds(), gateway.child.cpuSeconds)
            for _ in 0..<changes {
                written += 1
                try await sql.execute("UPDATE items SET quantity = $1 WHERE \"_id\" = 1", [.int(written)], cached: true)
                try await load.reach(written)
            }
            guard isCounted else { return }
            let deliveries = Double(load.changes - before)
            perSecond.append(deliveries / (seconds() - begin))
            cpu.append((gateway.child.cpuSeconds - used) / deliveries * 1e6)
        }

        /// Creates users, each with a unique subscription.
        func register(_ users: Int) async throws {
            hellos = try await SocketLoad.users(users, of: gateway, conninfo).enumerated().map { number, token in
                try SocketLoad.hello(token, queries: ["store == 1 AND quantity > \(-1 - number)"])
            }
        }

        /// - Returns: Sessions per second.
        func open(_ count: Int) async throws -> Double {
            let begin = seconds()
            let many = try await SocketLoad(
                setup, port: gateway.port, path: WireProtocol.path(app: gateway.appID), hellos: hellos, connections: count)
            let elapsed = seconds() - begin
            many.stop()
            try await rest()
            return Double(count) / elapsed
        }

        /// Waits until the gateway has released the closed sessions, so that this work is not measured.
        private func rest() async throws {
            for _ in 0..<100 {
                let used = gateway.child.cpuSeconds
                try await Task.sleep(for: .milliseconds(200))
                if gateway.child.cpuSeconds - used < 0.01 { return }
            }
            throw BenchFailure("The gateway is still busy with sessions that were closed 20 s ago.")
        }

        func stop() async {
            load.stop()
            gateway.child.stop()
            await sql.close()
        }
    }
}
