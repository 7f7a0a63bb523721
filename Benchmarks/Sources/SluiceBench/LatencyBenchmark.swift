import Foundation
import RealmSwift
import SluicePostgres

/// Measures from an SQL commit to the change in a replica's live results, with the embedded log and with Kafka. It does so at 100 changes a
/// second, and at half of the highest sustained rate. The reference is the time until `pg_recvlogical` prints the same commits. A tenth of
/// the changes move an object out of the view or into it.
@MainActor
final class LatencyBenchmark {
    private let setup: Setup

    /// The number of rows that the changes cycle through.
    private static let rows = 10_000
    private nonisolated static let transactionsPerSecond = 100
    private static let pause = Duration.milliseconds(10)

    init(setup: Setup) { self.setup = setup }

    private final class Path {
        let name: String
        let gateway: RunningGateway
        let sql: PostgresConnection
        let table: String
        let probe: ReplicaProbe
        let reference: RecvLogical
        /// The number of transactions so far.
        var written = 0
        var ours: [Double] = []
        var theirs: [Double] = []

        init(
            name: String, gateway: RunningGateway, sql: PostgresConnection, table: String, probe: ReplicaProbe, reference: RecvLogical
        ) {
            self.name = name
            self.gateway = gateway
            self.sql = sql
            self.table = table
            self.probe = probe
            self.reference = reference
        }
    }

    /// The latencies of the transactions in milliseconds, in their order.
    private nonisolated struct Sample {
        var ours: [Double]
        var theirs: [Double]
        /// Milliseconds by which the last transactions were late because the database did not keep up.
        var late: Double

        /// The growth of the lag, in milliseconds per second (least squares).
        var slope: Double {
            let count = Double(ours.count)
            let mean = (count - 1) / 2
            let average = ours.reduce(0, +) / count
            var (products, squares) = (0.0, 0.0)
            for (index, value) in ours.enumerated() {
                products += (Double(index) - mean) * (value - average)
                squares += (Double(index) - mean) * (Double(index) - mean)
            }
            return products / squares * Double(transactionsPerSecond)
        }

        /// Zero's definition: p99 is under 2 s, and the lag does not grow. Also requires a writer that is less than 1 s late.
        var isSustained: Bool { ours.quantile(0.99) < 2_000 && slope < 10 && late < 1_000 }
    }

    func run(_ report: inout Report) async throws {
        let paths = [try await open("embedded log", kafka: false), try await open("Kafka", kafka: true)]
        let writes = setup.scaled(300)
        for round in 0...setup.rounds {
            for path in paths {
                let sample = try await measure(path, transactions: writes, changes: 1)
                // The first round is a warm-up.
                guard round > 0 else { continue }
                path.ours += sample.ours
                path.theirs += sample.theirs
            }
        }
        for path in paths {
            add(&report, "100/s, \(path.name)", path.ours, path.theirs, target: "under 10 ms")
        }
        for path in paths {
            try await sustain(path, &report)
            await close(path)
        }
    }

    private func add(_ report: inout Report, _ what: String, _ ours: [Double], _ theirs: [Double], target: String) {
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            let (ours, theirs) = (ours.quantile(part), theirs.quantile(part))
            report.add(
                "commit → live results, \(what), \(name)", ours: "\(ours.text(2)) ms",
                reference: "pg_recvlogical \(theirs.text(2)) ms", ratio: "\((ours / theirs).text(1)) ×",
                target: part == 0.5 ? target : "none")
        }
    }

    private func close(_ path: Path) async {
        path.probe.close()
        path.reference.stop()
        await path.sql.close()
        path.gateway.child.stop()
    }

    // MARK: The highest rate

    private func sustain(_ path: Path, _ report: inout Report) async throws {
        let trial = setup.scaled(8)
        var (low, high) = (1_000, 2_000)
        while high <= 64_000, try await isSustained(path, high, for: trial) { (low, high) = (high, high * 2) }
        for _ in 0..<2 {
            let middle = (low + high) / 2
            if try await isSustained(path, middle, for: trial) { low = middle } else { high = middle }
        }
        let confirmation = setup.confirms ? 180 : setup.scaled(20)
        while try await !isSustained(path, low, for: confirmation) {
            guard low > 200 else { throw BenchFailure("No rate was kept up.") }
            low = low * 3 / 4
        }
        report.add(
            "changes a second kept up for \(confirmation) s, \(path.name), a tenth across the view's boundary", ours: low.formatted(),
            reference: "–", ratio: "–", target: "p99 lag under 2 s, not growing")
        let sample = try await measure(path, transactions: confirmation * Self.transactionsPerSecond, changes: low / 200)
        add(&report, "\((low / 2).formatted())/s, \(path.name)", sample.ours, sample.theirs, target: "none")
    }

    private func isSustained(_ path: Path, _ rate: Int, for seconds: Int) async throws -> Bool {
        let sample = try await measure(
            path, transactions: seconds * Self.transactionsPerSecond, changes: rate / Self.transactionsPerSecond)
        say(
            "    \(rate.formatted()) changes/s for \(seconds) s: p50 \(sample.ours.median.text(1)) ms, p99 \(sample.ours.quantile(0.99).text()) ms, "
                + "growing by \(sample.slope.text(1)) ms/s, writer late by \(sample.late.text()) ms")
        return sample.isSustained
    }

    // MARK: One run

    private func open(_ name: String, kafka: Bool) async throws -> Path {
        let gateway = try await setup.development("latency-\(kafka ? "kafka" : "embedded")", kafka: kafka)
        guard let conninfo = gateway.postgres else { throw BenchFailure("sluice dev does not say where its PostgreSQL is.") }
        let probe = try await ReplicaProbe(gateway, folder: "\(setup.workspace)/latency-\(name)") { $0.store == 7 }
        let sql = try await PostgresConnection.connect(conninfo)
        let tables = try await sql.query(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND lower(tablename) IN ('item', 'items')")
        guard let table = tables.column(0).first.map({ "\"\($0)\"" }) else { throw BenchFailure("sluice dev made no table for Item.") }
        try await sql.script(Item.insert(Self.rows, from: 0, into: table) + "; UPDATE \(table) SET store = 7")
        try await sql.script("VACUUM ANALYZE \(table)")
        try await probe.count(Self.rows)
        let names = try await sql.replication()
        try await sql.script("SELECT pg_create_logical_replication_slot('bench_reference', 'pgoutput')")
        let reference = try RecvLogical(setup, conninfo, slot: "bench_reference", publication: names.publication)
        return Path(name: name, gateway: gateway, sql: sql, table: table, probe: probe, reference: reference)
    }

    /// Commits 100 transactions a second, with `changes` changes each.
    private func measure(_ path: Path, transactions: Int, changes: Int) async throws -> Sample {
        let clock = ContinuousClock()
        let begin = clock.now
        let first = path.written
        var committed: [Double] = []
        for index in 0..<transactions {
            try await clock.sleep(until: begin + Self.pause * index)
            let number = first + index
            let key = number * changes % Self.rows
            // Every tenth key moves out of the view, and into it in the next cycle.
            if changes == 1, key % 10 == 9 { path.probe.expectMove(number, of: key) }
            try await path.sql.execute(
                """
                UPDATE \(path.table) SET note = $1, store = CASE WHEN "_id" % 10 = 9 THEN 15 - store ELSE store END
                WHERE "_id" >= $2 AND "_id" < $3
                """, [.text("n=\(number);"), .int(key), .int(key + changes)], cached: true)
            committed.append(seconds())
        }
        let late = (clock.now - begin - Self.pause * transactions) / .milliseconds(1)
        path.written += transactions
        try await path.probe.saw(path.written - 1)
        try await path.reference.saw(path.written - 1)
        let (ours, theirs) = (path.probe.seen, path.reference.seen)
        // The change may arrive before the answer to the commit.
        func milliseconds(_ seen: [Int: Double]) -> [Double] {
            committed.enumerated().map { max(((seen[first + $0] ?? .nan) - $1) * 1_000, 0) }
        }
        let sample = Sample(ours: milliseconds(ours), theirs: milliseconds(theirs), late: max(late, 0))
        guard !sample.ours.contains(where: \.isNaN), !sample.theirs.contains(where: \.isNaN) else {
            throw BenchFailure("Not all of \(transactions) transactions were seen with the \(path.name).")
        }
        return sample
    }
}

/// A replica with live results that records the time at which it sees each transaction. Transactions apply in order, so a visible one
/// implies all before it.
@MainActor
final class ReplicaProbe {
    private let realm: Realm
    private let results: Results<Item>
    private var token: NotificationToken?
    /// The time at which each transaction was first seen, in seconds, by number.
    private(set) var seen: [Int: Double] = [:]
    private var next = 0
    /// Transactions that move their only object out of the view. No visible object has their number.
    private var leaving: [Int] = []

    init(_ gateway: RunningGateway, folder: String, _ query: @escaping @Sendable (Query<Item>) -> Query<Bool>) async throws {
        realm = try await Replicas.open(gateway, folder: folder, query)
        results = realm.objects(Item.self).where(query)
        token = results.observe { [weak self] change in
            guard let self, case .update(let items, let deletions, let insertions, let modifications) = change else { return }
            let now = seconds()
            var newest = -1
            for index in insertions + modifications { newest = max(newest, Self.number(items[index].note)) }
            let left = min(deletions.count, leaving.count)
            if left > 0 {
                newest = max(newest, leaving[left - 1])
                leaving.removeFirst(left)
            }
            while next <= newest {
                seen[next] = now
                next += 1
            }
        }
    }

    private static func number(_ note: String) -> Int {
        guard note.hasPrefix("n="), note.hasSuffix(";") else { return -1 }
        return Int(note.dropFirst(2).dropLast()) ?? -1
    }

    /// Announces a transaction that moves an object out of the view or into it. In the latter case the object shows the number.
    func expectMove(_ number: Int, of key: Int) {
        if realm.object(ofType: Item.self, forPrimaryKey: key) != nil { leaving.append(number) }
    }

    func count(_ count: Int) async throws { try await until("the replica has \(count) rows") { self.results.count == count } }
    func saw(_ number: Int) async throws { try await until("the replica sees transaction \(number)") { self.seen[number] != nil } }

    func close() {
        token?.invalidate()
        realm.syncSession?.suspend()
    }
}
