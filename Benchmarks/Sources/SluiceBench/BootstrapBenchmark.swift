import Foundation
import RealmSwift
import SluicePostgres

/// A first subscription to 100,000 rows, from login to all of them in the replica's SQLite; beside inserting the same rows.
@MainActor
struct BootstrapBenchmark {
    let setup: Setup

    func run(_ report: inout Report) async throws {
        let rows = setup.scaled(100_000)
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
            let theirSeconds = Double(try await reference.line()) ?? .nan
            let begin = seconds()
            let realm = try await Replicas.open(gateway, folder: folder) { $0.store.in(Array(0..<100)) }
            let ourSeconds = seconds() - begin
            let count = realm.objects(Item.self).count
            guard count == rows else { throw BenchFailure("The replica has \(count) rows of \(rows).") }
            realm.syncSession?.suspend()
            guard round > 0 else { continue }
            ours.append(Double(rows) / ourSeconds)
            theirs.append(Double(rows) / theirSeconds)
            say("    \(ours.last?.short ?? "") rows/s, SQLite alone \(theirs.last?.short ?? "")")
        }
        report.add(
            "bootstrap of \(rows.formatted()) rows of \(Item.bytes()) B into a replica", ours: "\(ours.median.short) rows/s",
            reference: "prepared inserts in C \(theirs.median.short) rows/s",
            ratio: "\((zip(ours, theirs).map { $0 / $1 }.median * 100).text()) %", target: "50 k rows/s")
        gateway.child.stop()
        await sql.close()
    }
}
