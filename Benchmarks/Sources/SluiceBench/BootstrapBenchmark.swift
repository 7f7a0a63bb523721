import Foundation
import RealmSwift
import SluicePostgres

/// Measures a first subscription to a million rows, from login until all are in the replica. The reference is the time of `COPY TO` of the
/// table to /dev/null, and of inserting the same rows by a prepared statement.
@MainActor
struct BootstrapBenchmark {
    let setup: Setup

    func run(_ report: inout Report) async throws {
        let rows = setup.scaled(1_000_000)
        let (conninfo, sql) = try await setup.database("bench_bootstrap")
        _ = try await sql.load(rows, from: 0, perTransaction: 50_000)
        try await sql.script("VACUUM ANALYZE items")
        let gateway = try await setup.gateway("bench_bootstrap", conninfo, kafka: false)
        var (ours, theirs): ([Double], [Double]) = ([], [])
        for round in 0...setup.rounds {
            let folder = "\(setup.workspace)/bootstrap-\(round)"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            let reference = try Child(
                setup.program("limit-sqlite"), ["\(folder)/reference.sqlite", "\(rows)", "\(Item.noteBytes)"],
                log: setup.log("limit-sqlite"))
            let insertSeconds = Double(try await reference.line()) ?? .nan
            let copySeconds = try await copy(conninfo)
            try? FileManager.default.removeItem(atPath: "\(folder)/reference.sqlite")
            let begin = seconds()
            let realm = try await Replicas.open(gateway, folder: folder) { $0.store.in(Array(0..<100)) }
            let ourSeconds = seconds() - begin
            let count = realm.objects(Item.self).count
            guard count == rows else { throw BenchFailure("The replica has \(count) rows of \(rows).") }
            realm.syncSession?.suspend()
            try? FileManager.default.removeItem(atPath: "\(folder)/items.realm")
            guard round > 0 else { continue }
            ours.append(ourSeconds)
            theirs.append(copySeconds + insertSeconds)
            say("    \(ourSeconds.text(2)) s, COPY \(copySeconds.text(2)) s and SQLite \(insertSeconds.text(2)) s")
        }
        report.add(
            "bootstrap of \(rows.formatted()) rows of \(Item.bytes()) B into a replica",
            ours: "\(ours.median.text(2)) s, \((Double(rows) / ours.median).short) rows/s",
            reference: "COPY TO and prepared inserts in C \(theirs.median.text(2)) s",
            ratio: "\(zip(ours, theirs).map { $0 / $1 }.median.text(2)) ×", target: "under 4 ×")
        gateway.child.stop()
        await sql.close()
    }

    /// - Returns: The duration of `COPY TO`, in seconds.
    private func copy(_ conninfo: String) async throws -> Double {
        let child = try Child(
            setup.postgresProgram("psql"),
            ["--no-psqlrc", "--quiet", "--output", "/dev/null", "--command", "COPY items TO STDOUT", conninfo],
            log: setup.log("psql"))
        let begin = seconds()
        let status = await child.end()
        guard status == 0 else { throw BenchFailure("psql ended with status \(status).") }
        return seconds() - begin
    }
}
