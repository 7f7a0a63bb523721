import Foundation
import SluicePostgres

/// Measures a bulk load from the WAL to the change log, beside `pg_recvlogical` reading the same to /dev/null.
///
/// The gateway is paused while the rows are loaded and the reference reads them. Both therefore read an existing backlog. The load counts
/// as published when the slot is confirmed, which follows the log's acknowledgement of every record.
@MainActor
struct PublishBenchmark {
    let setup: Setup

    func run(_ report: inout Report) async throws {
        for kafka in [true, false] { try await run(kafka: kafka, &report) }
    }

    private func run(kafka: Bool, _ report: inout Report) async throws {
        let name = kafka ? "bench_publish_kafka" : "bench_publish"
        let (conninfo, sql) = try await setup.database(name)
        let gateway = try await setup.gateway(name, conninfo, kafka: kafka)
        let names = try await sql.replication()
        let rows = setup.scaled(300_000)
        try await sql.script("SELECT pg_create_logical_replication_slot('\(name)_reference', 'pgoutput')")
        var next = 0
        var (ours, theirs, cpu): ([Double], [Double], [Double]) = ([], [], [])
        for round in 0...setup.rounds {
            // The first round is small and a warm-up.
            let count = round == 0 ? 10_000 : rows
            if round > 0 { gateway.child.pause() }
            let end = try await sql.load(count, from: next, perTransaction: 30_000)
            next += count
            let theirSeconds = try await RecvLogical.drain(
                setup, conninfo, slot: "\(name)_reference", publication: names.publication, to: end)
            let (begin, before) = (seconds(), gateway.child.cpuSeconds)
            gateway.child.go()
            try await sql.confirmed(names.slot, end)
            guard round > 0 else { continue }
            ours.append(Double(count) / (seconds() - begin))
            theirs.append(Double(count) / theirSeconds)
            cpu.append((gateway.child.cpuSeconds - before) / Double(count) * 1e6)
            say("    \(kafka ? "Kafka" : "embedded"): \(ours.last?.short ?? "") rows/s, pg_recvlogical \(theirs.last?.short ?? "")")
        }
        report.add(
            "PostgreSQL → \(kafka ? "Kafka" : "embedded log"), \(rows.formatted()) rows of \(Item.bytes()) B",
            ours: "\(ours.median.short) rows/s, \(cpu.median.text(1)) µs of CPU each",
            reference: "pg_recvlogical \(theirs.median.short) rows/s",
            ratio: "\((zip(ours, theirs).map { $0 / $1 }.median * 100).text()) %", target: "50 %")
        gateway.child.stop()
        try await sql.script(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name IN ('\(names.slot)', '\(name)_reference') AND NOT active"
        )
        await sql.close()
    }
}
