import Foundation
import SluicePostgres
import SluiceWire

/// Measures a gateway's memory for 10,000 idle sessions: real WebSockets of clients that have logged in, subscribed and received their
/// bootstrap. It runs with one subscription each and with eleven, all distinct, in separate gateways.
@MainActor
struct SessionsBenchmark {
    let setup: Setup

    /// Sessions opened before the first sample, so that data loaded on first use belong to no session.
    private static let first = 100
    /// The sessions of each user, without the first ones.
    private static let sessionsOfUser = 500
    private static let more = 10

    func run(_ report: inout Report) async throws {
        let sessions = setup.scaled(10_000)
        let (one, bare) = try await measure(sessions, subscriptions: 1)
        let (many, _) = try await measure(sessions, subscriptions: 1 + Self.more)
        report.add(
            "memory of an idle session, \(sessions.formatted()) of them", ours: "\(one.text(1)) KiB",
            reference: "a connection of the C epoll server \(bare.text(2)) KiB", ratio: "\((one / 20 * 100).text()) % of the target",
            target: "20 KiB")
        let each = (many - one) / Double(Self.more)
        report.add(
            "memory of a subscription, \(Self.more) more in each session", ours: "\(each.text(2)) KiB", reference: "–",
            ratio: "\((each / 2 * 100).text()) % of the target", target: "2 KiB")
    }

    /// - Returns: KiB per session, and per connection of the reference.
    private func measure(_ sessions: Int, subscriptions: Int) async throws -> (ours: Double, bare: Double) {
        let name = "bench_sessions_\(subscriptions)"
        let (conninfo, sql) = try await setup.database(name)
        try await sql.script(Item.insert(10, from: 0))
        let gateway = try await setup.gateway(name, conninfo, kafka: false)
        // A user's sessions are bounded.
        let users = try await SocketLoad.users(sessions / Self.sessionsOfUser + 1, of: gateway, conninfo)
        let hellos = try (0..<sessions).map { session in
            let queries = (0..<subscriptions).map { "store == \(session % 100) AND quantity == \(1_000 + session * subscriptions + $0)" }
            return try SocketLoad.hello(users[session % users.count], queries: queries)
        }
        let path = WireProtocol.path(app: gateway.appID)
        let warm = try await SocketLoad(setup, port: gateway.port, path: path, hellos: hellos, connections: Self.first)
        let start = gateway.child.residentMegabytes
        let begin = seconds()
        let load = try await SocketLoad(setup, port: gateway.port, path: path, hellos: hellos, connections: sessions)
        let opened = seconds() - begin
        // The allocator gives no signal when it has settled.
        try await Task.sleep(for: .seconds(3))
        let ours = (gateway.child.residentMegabytes - start) * 1_024 / Double(sessions)
        say(
            "    \(subscriptions) subscriptions each: \(start.text()) → \(gateway.child.residentMegabytes.text()) MiB, "
                + "\(ours.text(1)) KiB each, opened at \((Double(sessions) / opened).short)/s")
        load.stop()
        warm.stop()
        gateway.child.stop()
        await sql.close()
        return (ours, try await reference(sessions))
    }

    private func reference(_ sessions: Int) async throws -> Double {
        let file = "\(setup.workspace)/frame"
        try Data([0x82, 0]).write(to: URL(fileURLWithPath: file))
        let server = try Child(setup.program("limit-wsrv"), ["\(sessions)", file], log: setup.log("limit-wsrv"))
        guard let port = try await server.line().split(separator: " ").last.flatMap({ Int($0) }) else {
            throw BenchFailure("The reference server does not say its port.")
        }
        let start = server.residentMegabytes
        let load = try await SocketLoad(setup, port: port, path: "/", hellos: [[0x82, 0x80, 0, 0, 0, 0]], connections: sessions)
        let bare = (server.residentMegabytes - start) * 1_024 / Double(sessions)
        load.stop()
        server.stop()
        return bare
    }
}
