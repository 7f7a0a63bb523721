import Foundation
import SluicePostgres
import TestSupport
import Testing

/// The workload that others published for a peer of ours (nurturenature/jepsen-powersync): five to ten devices, each a process,
/// read 100 registers and write four of them in each of ten to fifty transactions a second, while their connections, processes and
/// networks fail. What they have seen must be causally consistent and atomic, and in the end all have what PostgreSQL has.
///
/// `SLUICE_CAUSAL_SEED` runs one seed, `SLUICE_CAUSAL_RUNS` so many new ones instead of one; `SLUICE_CAUSAL_FAULTS=all` with everything that
/// can fail instead of partitions alone.
@Suite(.serialized, .timeLimit(.minutes(120))) struct CausalTests {
    static let environment = ProcessInfo.processInfo.environment
    private static var faults: [RegisterDevice.Fault] {
        environment["SLUICE_CAUSAL_FAULTS"] == "all" ? RegisterDevice.Fault.allCases : [.cutBoth, .cutToServer, .cutToClient]
    }

    private static var seeds: [UInt64] {
        if let seed = environment["SLUICE_CAUSAL_SEED"].flatMap({ UInt64($0) }) { return [seed] }
        return (0..<(environment["SLUICE_CAUSAL_RUNS"].flatMap { Int($0) } ?? 1)).map { _ in .random(in: .min ... .max) }
    }

    @Test(arguments: seeds) func `devices in partitions stay causally consistent`(seed: UInt64) async throws {
        try await play(seed, Self.faults)
    }

    private func play(_ seed: UInt64, _ faults: [RegisterDevice.Fault]) async throws {
        var random = SplitMix64(seed: seed)
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder, ["--app", try registers(in: folder)])
        _ = try await server.sql(
            #"INSERT INTO "Register" (_id, shard, value) SELECT id, 'shard ' || id % 10, 0 FROM generate_series(0, 99) id"#)
        let rate = Double(10 + random.below(41))
        let count = 5 + random.below(6)
        let devices = try (0..<count).map { try RegisterDevice($0, of: server, rate: rate / Double(count)) }
        let deadline = ContinuousClock.now + .seconds(60)
        let programs = try await withThrowingTaskGroup(of: (Int, Program).self) { group in
            for device in devices {
                var own = SplitMix64(seed: random.next())
                group.addTask { (device.number, try await device.run(until: deadline, faults, &own)) }
            }
            return try await group.reduce(into: [Int: Program]()) { $0[$1.0] = $1.1 }
        }
        try await forEach(of: devices, programs) { try await $0.upload($1) }
        let rows = try await server.sql(#"SELECT value FROM "Register" ORDER BY _id"#)
        let final = try (0..<rows.count).map { Int(try #require(rows.int($0, 0))) }
        try await forEach(of: devices, programs) { device, program in
            let state = try await device.download(program)
            #expect(state == final, "seed \(seed): device \(device.number) is not what PostgreSQL is")
        }
        let histories = try devices.map { try $0.history() }
        let transactions = histories.map(\.count).reduce(0, +)
        #expect(transactions > 5 * count, "seed \(seed): \(transactions) transactions")
        let problems = CausalCheck.problems(histories, final: final)
        #expect(
            problems.isEmpty,
            """
            seed \(seed), \(count) devices, \(transactions) transactions: \(problems.prefix(5)), \
            \(devices.map { $0.events + " and said " + (programs[$0.number]?.said ?? "") })
            """)
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    private func forEach(
        of devices: [RegisterDevice], _ programs: [Int: Program], _ body: @escaping @Sendable (RegisterDevice, Program) async throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in devices {
                let program = try #require(programs[device.number])
                group.addTask { try await body(device, program) }
            }
            try await group.waitForAll()
        }
    }

    /// An app directory with the one class. Its shard is the indexed queryable field, so that a transaction's writes go through several
    /// partitions.
    private func registers(in folder: DataFolder) throws -> String {
        let files = [
            "realm_config.json": #"{ "app_id": "registers", "config_version": 20210101, "name": "registers" }"#,
            "auth/providers.json": #"""
            { "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false },
              "local-userpass": { "name": "local-userpass", "type": "local-userpass", "config": { "autoConfirm": true }, "disabled": false } }
            """#,
            "sync/config.json": #"""
            { "type": "flexible", "state": "enabled", "service_name": "postgres", "database_name": "public",
              "development_mode_enabled": false, "queryable_fields_names": ["shard"],
              "indexed_queryable_fields_names": ["shard"] }
            """#,
            "data_sources/postgres/config.json": #"{ "name": "postgres", "type": "postgresql", "config": {}, "version": 1 }"#,
            "data_sources/postgres/public/Register/schema.json": #"""
            { "title": "Register", "bsonType": "object", "required": ["_id", "shard", "value"],
              "properties": { "_id": { "bsonType": "long" }, "shard": { "bsonType": "string" }, "value": { "bsonType": "long" } } }
            """#,
        ]
        let app = URL(fileURLWithPath: folder.path).appendingPathComponent("registers")
        for (name, text) in files {
            let file = app.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        return app.path
    }
}
