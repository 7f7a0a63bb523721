import Foundation
import RealmSwift
import SluicePostgres

/// From an SQL commit to the change in a replica's live results, at 100 writes a second, with the embedded log and with
/// Kafka; beside what `pg_recvlogical` takes to hear of the same commits.
@MainActor
struct LatencyBenchmark {
    let setup: Setup

    private static let rows = 100
    private static let pause = Duration.milliseconds(10)

    private struct Path {
        var name: String
        var gateway: RunningGateway
        var sql: PostgresConnection
        var table: String
        var probe: ReplicaProbe
        var reference: RecvLogical
        var ours: [Double] = []
        var theirs: [Double] = []
    }

    func run(_ report: inout Report) async throws {
        var paths = [try await open("embedded log", kafka: false), try await open("Kafka", kafka: true)]
        let writes = setup.scaled(300)
        for round in 0...setup.rounds {
            for index in paths.indices {
                let (ours, theirs) = try await measure(paths[index], from: round * writes, writes)
                // The first round warms everything up.
                guard round > 0 else { continue }
                paths[index].ours += ours
                paths[index].theirs += theirs
            }
        }
        for path in paths {
            for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
                let (ours, theirs) = (path.ours.quantile(part), path.theirs.quantile(part))
                report.add(
                    "commit → live results, \(path.name), \(name)", ours: "\(ours.text(2)) ms",
                    reference: "pg_recvlogical \(theirs.text(2)) ms", ratio: "\((ours / theirs).text(1)) ×",
                    target: part == 0.5 ? "under 10 ms" : "none")
            }
            path.probe.close()
            path.reference.stop()
            await path.sql.close()
            path.gateway.child.stop()
        }
    }

    private func open(_ name: String, kafka: Bool) async throws -> Path {
        let gateway = try await setup.development("latency-\(kafka ? "kafka" : "embedded")", kafka: kafka)
        guard let conninfo = gateway.postgres else { throw BenchFailure("sluice dev does not say where its PostgreSQL is.") }
        let probe = try await ReplicaProbe(gateway, folder: "\(setup.workspace)/latency-\(name)") { $0.store == 7 }
        let sql = try await PostgresConnection.connect(conninfo)
        let tables = try await sql.query(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND lower(tablename) IN ('item', 'items')")
        guard let table = tables.column(0).first.map({ "\"\($0)\"" }) else { throw BenchFailure("sluice dev made no table for Item.") }
        try await sql.script(Item.insert(Self.rows, from: 0, into: table) + "; UPDATE \(table) SET store = 7")
        try await probe.count(Self.rows)
        let names = try await sql.replication()
        try await sql.script("SELECT pg_create_logical_replication_slot('bench_reference', 'pgoutput')")
        let reference = try RecvLogical(setup, conninfo, slot: "bench_reference", publication: names.publication)
        return Path(name: name, gateway: gateway, sql: sql, table: table, probe: probe, reference: reference)
    }

    /// Milliseconds of each write, as the replica and as the reference saw it.
    private func measure(_ path: Path, from first: Int, _ writes: Int) async throws -> (ours: [Double], theirs: [Double]) {
        let clock = ContinuousClock()
        let begin = clock.now
        var committed: [Int: Double] = [:]
        for number in first..<first + writes {
            try await clock.sleep(until: begin + Self.pause * (number - first))
            try await path.sql.execute(
                "UPDATE \(path.table) SET note = $1 WHERE \"_id\" = $2", [.text("n=\(number);"), .int(number % Self.rows)], cached: true)
            committed[number] = seconds()
        }
        try await path.probe.saw(first + writes - 1)
        try await path.reference.saw(first + writes - 1)
        let (ours, theirs) = (path.probe.seen, path.reference.seen)
        guard committed.keys.allSatisfy({ ours[$0] != nil && theirs[$0] != nil }) else {
            let missing = committed.keys.filter { ours[$0] == nil || theirs[$0] == nil }
            throw BenchFailure("\(missing.count) of \(writes) writes were not seen with the \(path.name).")
        }
        // The answer to the commit may reach us after the change has.
        func milliseconds(_ seen: [Int: Double]) -> [Double] { committed.map { max(((seen[$0] ?? .nan) - $1) * 1_000, 0) } }
        return (milliseconds(ours), milliseconds(theirs))
    }
}

/// A replica with live results that notes when it sees which write.
@MainActor
final class ReplicaProbe {
    private let realm: Realm
    private let results: Results<Item>
    private var token: NotificationToken?
    /// When the write with a number was seen first.
    private(set) var seen: [Int: Double] = [:]

    init(_ gateway: RunningGateway, folder: String, _ query: @escaping @Sendable (Query<Item>) -> Query<Bool>) async throws {
        realm = try await Replicas.open(gateway, folder: folder, query)
        results = realm.objects(Item.self).where(query)
        token = results.observe { [weak self] change in
            guard let self, case .update(let items, _, _, let modifications) = change else { return }
            let now = seconds()
            for index in modifications {
                let note = items[index].note
                guard note.hasPrefix("n="), note.hasSuffix(";"), let number = Int(note.dropFirst(2).dropLast()) else { continue }
                if self.seen[number] == nil { self.seen[number] = now }
            }
        }
    }

    func count(_ count: Int) async throws { try await until("the replica has \(count) rows") { self.results.count == count } }
    func saw(_ number: Int) async throws { try await until("the replica sees write \(number)") { self.seen[number] != nil } }

    func close() {
        token?.invalidate()
        realm.syncSession?.suspend()
    }
}

/// Opens replicas of their own.
@MainActor
enum Replicas {
    static func open(
        _ gateway: RunningGateway, folder: String, download: Realm.OpenBehavior = .always,
        _ query: @escaping @Sendable (Query<Item>) -> Query<Bool>
    ) async throws -> Realm {
        let app = App(
            id: gateway.appID, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: URL(fileURLWithPath: folder)))
        let user = try await app.login(credentials: .anonymous)
        var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
            subscriptions.append(QuerySubscription<Item>(name: "items", query: query))
        })
        configuration.objectTypes = [Item.self]
        configuration.fileURL = URL(fileURLWithPath: folder).appendingPathComponent("items.realm")
        return try await Realm(configuration: configuration, downloadBeforeOpen: download)
    }
}

/// Waits until a condition of the main actor holds, and lets it work meanwhile.
@MainActor
func until(_ what: String, within limit: Double = 120, _ condition: () -> Bool) async throws {
    let deadline = seconds() + limit
    while !condition() {
        guard seconds() < deadline else { throw BenchFailure("In \(limit.text()) s it did not come true that \(what).") }
        try await Task.sleep(for: .milliseconds(5))
    }
}
