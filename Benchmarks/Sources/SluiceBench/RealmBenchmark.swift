import Foundation
import SluiceCore
import SluicePostgres

/// Measures Realm's protocol beside Sluice's own: uploads, live changes, a bootstrap, and the memory of idle sessions.
///
/// Both run in turn on one gateway, over the same WebSockets to the same load generator in C. It counts changesets, and decodes none. Its
/// clients of Realm's protocol confirm each download, as that protocol asks for. Those of Sluice's send nothing.
@MainActor
final class RealmBenchmark {
    private let setup: Setup

    private static let sessions = 1_000
    private static let objects = 100_000
    /// The store of the row that the sessions of Realm's protocol see. Those of Sluice's have the next one.
    private static let liveStore = 1_000_001
    private static let liveKey = 2_000_000_001
    /// The first store of uploaded objects.
    private static let uploadStore = 2_000_000

    init(setup: Setup) { self.setup = setup }

    /// The figures of one side.
    private struct Sample {
        var perSecond: [Double] = []
        /// Microseconds of the gateway's processor time for each.
        var cpu: [Double] = []
        /// Milliseconds.
        var latencies: [Double] = []

        mutating func add(_ count: Int, _ elapsed: Double, _ cpuSeconds: Double) {
            perSecond.append(Double(count) / elapsed)
            cpu.append(cpuSeconds / Double(count) * 1e6)
        }

        static func += (all: inout Sample, one: Sample) {
            all.perSecond += one.perSecond
            all.cpu += one.cpu
            all.latencies += one.latencies
        }
    }

    func run(_ report: inout Report) async throws {
        let (conninfo, sql) = try await setup.database("bench_realm")
        _ = try await sql.load(setup.scaled(Self.objects), from: 0, perTransaction: 50_000)
        try await sql.script(
            Item.insert(2, from: Self.liveKey, note: 228)
                + "; UPDATE items SET store = \(Self.liveStore) + \"_id\" - \(Self.liveKey) WHERE \"_id\" >= \(Self.liveKey)")
        try await sql.script("VACUUM ANALYZE items")
        let gateway = try await setup.gateway("bench_realm", conninfo, kafka: false)
        let sides = try await sides(gateway, conninfo)
        try await bootstrap(sides, &report)
        try await upload(sides, sql, batch: 1, window: 16, each: setup.scaled(500), &report)
        try await upload(sides, sql, batch: 100, window: 4, each: setup.scaled(20), &report)
        try await live(sides, sql, &report)
        gateway.child.stop()
        await sql.close()
        try await idle(&report)
    }

    /// Returns Realm's side and Sluice's. Each has two users, as a user's sessions are bounded.
    private func sides(_ gateway: RunningGateway, _ conninfo: String) async throws -> [RealmSide] {
        let tokens = try await SocketLoad.users(4, of: gateway, conninfo)
        return [
            RealmSide(isRealm: true, gateway: gateway, few: tokens[0], many: tokens[1]),
            RealmSide(isRealm: false, gateway: gateway, few: tokens[2], many: tokens[3]),
        ]
    }

    private func add(_ report: inout Report, _ what: String, _ unit: String, _ samples: [Sample]) {
        let texts = samples.map { sample in
            let latency =
                sample.latencies.isEmpty
                ? "" : "p50 \(sample.latencies.median.text(1)) ms, p99 \(sample.latencies.quantile(0.99).text(1)) ms, "
            return "\(sample.perSecond.median.short) \(unit)/s, \(latency)\(sample.cpu.median.text(1)) µs of CPU each"
        }
        let ratio = zip(samples[0].perSecond, samples[1].perSecond).map { $0 / $1 }.median
        report.add(
            "Realm's protocol: \(what)", ours: texts[0], reference: "Sluice's protocol \(texts[1])", ratio: "\((ratio * 100).text()) %",
            target: "≥ 50 %")
    }

    // MARK: Bootstrap

    /// Measures a client's first subscription, from the connection to the last message of the bootstrap.
    private func bootstrap(_ sides: [RealmSide], _ report: inout Report) async throws {
        let objects = setup.scaled(Self.objects)
        let query = "store IN {\((0..<100).map(String.init).joined(separator: ", "))}"
        var samples = [Sample(), Sample()]
        for round in 0...setup.rounds {
            for (index, side) in sides.enumerated() {
                let (begin, cpu) = (seconds(), side.gateway.child.cpuSeconds)
                let load = try await side.open(setup, [query], connections: 1)
                let elapsed = seconds() - begin
                load.stop()
                // A compressed object has less than its 200 bytes.
                guard load.bootstrapBytes > objects * 20 else { throw BenchFailure("The bootstrap has \(load.bootstrapBytes) bytes.") }
                say("    \(side.name): \(elapsed.text(2)) s, \(load.bootstrapBytes.formatted()) bytes")
                if round > 0 { samples[index].add(objects, elapsed, side.gateway.child.cpuSeconds - cpu) }
            }
        }
        add(&report, "bootstrap of \(objects.formatted()) rows of \(Item.bytes()) B", "objects", samples)
    }

    // MARK: Uploads

    /// Measures one client that uploads changesets of one new object, until the gateway acknowledges them.
    private func upload(
        _ sides: [RealmSide], _ sql: PostgresConnection, batch: Int, window: Int, each: Int, _ report: inout Report
    ) async throws {
        let schema = try await UploadBenchmark.schema(sql)
        var samples = [Sample(), Sample()]
        var loads: [SocketLoad] = []
        for (index, side) in sides.enumerated() {
            let store = Self.uploadStore + 2 * batch + index
            let uploads = try side.uploads(each * (setup.rounds + 1), batch: batch, store: store, from: store * 100_000, schema)
            loads.append(try await side.open(setup, ["store == \(store)"], uploads: uploads, batch: batch, connections: 1))
        }
        for round in 0...setup.rounds {
            for (index, side) in sides.enumerated() {
                let cpu = side.gateway.child.cpuSeconds
                let (elapsed, p50, p99) = try await loads[index].upload(each, window: window)
                say(
                    "    \(side.name), \(batch) a message: \((Double(each * batch) / elapsed).short)/s, "
                        + "p50 \((p50 * 1e3).text(1)) ms, p99 \((p99 * 1e3).text(1)) ms")
                if round > 0 { samples[index].add(each * batch, elapsed, side.gateway.child.cpuSeconds - cpu) }
            }
        }
        for load in loads { load.stop() }
        let stored = try await sql.query(
            "SELECT count(*) FROM items WHERE store IN (\(Self.uploadStore + 2 * batch), \(Self.uploadStore + 2 * batch + 1))")
        let wanted = 2 * each * batch * (setup.rounds + 1)
        guard stored.int(0, 0) == Int64(wanted) else { throw BenchFailure("Of \(wanted) rows \(stored[0, 0] ?? "none") are stored.") }
        add(&report, "uploads of one client, \(batch) changesets in a message, \(window) messages under way", "changesets", samples)
    }

    // MARK: Live changes

    /// Measures changes of one row that each of 1,000 sessions receives. Latencies count from the answer to the commit.
    private func live(_ sides: [RealmSide], _ sql: PostgresConnection, _ report: inout Report) async throws {
        var loads: [SocketLoad] = []
        for (index, side) in sides.enumerated() {
            let query = "store == \(Self.liveStore + index)"
            loads.append(try await side.open(setup, [query], connections: setup.scaled(Self.sessions), isTimed: true))
        }
        var (single, burst) = ([Sample(), Sample()], [Sample(), Sample()])
        var written = [0, 0]
        for round in 0...setup.rounds {
            for (index, side) in sides.enumerated() {
                var samples = (Sample(), Sample())
                let key = Self.liveKey + index
                try await deliver(setup.scaled(50), key, side, loads[index], sql, &written[index], isBurst: false, &samples.0)
                try await deliver(setup.scaled(100), key, side, loads[index], sql, &written[index], isBurst: true, &samples.1)
                say(
                    "    \(side.name): \(samples.0.perSecond[0].short)/s, p50 \(samples.0.latencies.median.text(1)) ms, "
                        + "p99 \(samples.0.latencies.quantile(0.99).text(1)) ms; in bursts \(samples.1.perSecond[0].short)/s")
                guard round > 0 else { continue }
                single[index] += samples.0
                burst[index] += samples.1
            }
        }
        for load in loads { load.stop() }
        let sessions = setup.scaled(Self.sessions).formatted()
        add(&report, "changes to \(sessions) sessions, rows of \(Item.bytes(note: 228)) B, one at a time", "deliveries", single)
        add(&report, "changes to \(sessions) sessions, in bursts", "deliveries", burst)
    }

    private func deliver(
        _ changes: Int, _ key: Int, _ side: RealmSide, _ load: SocketLoad, _ sql: PostgresConnection, _ written: inout Int, isBurst: Bool,
        _ sample: inout Sample
    ) async throws {
        let (first, begin, cpu) = (written, seconds(), side.gateway.child.cpuSeconds)
        var commits: [Double] = []
        for _ in 0..<changes {
            written += 1
            try await sql.execute(
                "UPDATE items SET quantity = $1 WHERE \"_id\" = $2", [.int(1_000_000 + written), .int(key)], cached: true)
            commits.append(monotonic())
            if !isBurst { try await load.reach(written) }
        }
        try await load.reach(written)
        sample.add(changes * load.connections, seconds() - begin, side.gateway.child.cpuSeconds - cpu)
        if !isBurst { sample.latencies += try load.latencies(from: first, commits) }
    }

    // MARK: Idle sessions

    /// Measures the growth of a gateway's memory by idle sessions, each with a subscription of its own.
    private func idle(_ report: inout Report) async throws {
        var kilobytes: [Double] = []
        for index in 0..<2 {
            let name = "bench_realm_idle_\(index)"
            let (conninfo, sql) = try await setup.database(name)
            try await sql.script(Item.insert(10, from: 0))
            let gateway = try await setup.gateway(name, conninfo, kafka: false)
            let side = try await sides(gateway, conninfo)[index]
            kilobytes.append(try await idle(side))
            gateway.child.stop()
            await sql.close()
        }
        report.add(
            "Realm's protocol: memory of an idle session, \(setup.scaled(Self.sessions).formatted()) of them",
            ours: "\(kilobytes[0].text(1)) KiB", reference: "Sluice's protocol \(kilobytes[1].text(1)) KiB",
            ratio: "\((kilobytes[0] / kilobytes[1]).text(1)) ×", target: "30 KiB")
    }

    private func idle(_ side: RealmSide) async throws -> Double {
        let sessions = setup.scaled(Self.sessions)
        let queries = (0..<sessions).map { "store == \($0 % 100) AND quantity == \(1_000 + $0)" }
        // Data loaded on first use belong to no session.
        let warm = try await side.open(setup, queries, connections: 100)
        let start = side.gateway.child.residentMegabytes
        let load = try await side.open(setup, queries, connections: sessions)
        // The allocator gives no signal when it has settled.
        try await Task.sleep(for: .seconds(3))
        let end = side.gateway.child.residentMegabytes
        say("    \(side.name): \(start.text(1)) → \(end.text(1)) MiB for \(sessions.formatted()) sessions")
        load.stop()
        warm.stop()
        return (end - start) * 1_024 / Double(sessions)
    }
}
