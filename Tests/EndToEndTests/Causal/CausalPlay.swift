import Foundation
import SluicePostgres
import TestSupport
import Testing

/// Devices that read and write registers at gateways while things fail, and what their histories are held against.
struct CausalPlay {
    typealias Servers = @Sendable (_ deadline: ContinuousClock.Instant, _ random: SplitMix64) async throws -> [String]

    private let seed: UInt64
    private let app: String
    private let sql: PostgresConnection
    private let ports: @Sendable () -> [Int]
    private var random: SplitMix64

    /// - Parameters:
    ///   - sql: to the database, for this play alone.
    ///   - ports: where gateways of the app are now.
    init(_ seed: UInt64, of app: String, sql: PostgresConnection, at ports: @escaping @Sendable () -> [Int]) {
        self.seed = seed
        self.app = app
        self.sql = sql
        self.ports = ports
        random = SplitMix64(seed: seed)
    }

    /// - Parameters:
    ///   - faults: what happens to devices.
    ///   - servers: what happens to gateways meanwhile; tells what it was, and has healed all when it returns.
    mutating func run(
        for duration: Duration, _ faults: [RegisterDevice.Fault], servers: @escaping Servers = { _, _ in [] }
    ) async throws {
        _ = try await sql.query(
            #"INSERT INTO "Register" (_id, shard, value) SELECT id, 'shard ' || id % 10, 0 FROM generate_series(0, 99) id"#)
        let rate = Double(10 + random.below(41))
        let count = 5 + random.below(6)
        let (app, ports) = (app, ports)
        let devices = try (0..<count).map { try RegisterDevice($0, of: app, rate: rate / Double(count), at: ports) }
        let deadline = ContinuousClock.now + duration
        let own = SplitMix64(seed: random.next())
        async let failed = servers(deadline, own)
        let programs = try await run(devices, until: deadline, faults)
        let events = try await failed
        try await Self.forEach(of: devices, programs) { try await $0.upload($1) }
        let rows = try await sql.query(#"SELECT value FROM "Register" ORDER BY _id"#)
        let final = try (0..<rows.count).map { Int(try #require(rows.int($0, 0))) }
        let seed = seed
        try await Self.forEach(of: devices, programs) { device, program in
            let state = try await device.download(program)
            #expect(state == final, "seed \(seed): device \(device.number) is not what PostgreSQL is; gateways: \(events)")
        }
        let histories = try devices.map { try $0.history() }
        let transactions = histories.map(\.count).reduce(0, +)
        #expect(transactions > 5 * count, "seed \(seed): \(transactions) transactions")
        let problems = CausalCheck.problems(histories, final: final)
        #expect(
            problems.isEmpty,
            """
            seed \(seed), \(count) devices, \(transactions) transactions: \(problems.prefix(5)), gateways: \(events), \
            \(devices.map { $0.events + " and said " + (programs[$0.number]?.said ?? "") })
            """)
    }

    private mutating func run(
        _ devices: [RegisterDevice], until deadline: ContinuousClock.Instant, _ faults: [RegisterDevice.Fault]
    ) async throws -> [Int: Program] {
        try await withThrowingTaskGroup(of: (Int, Program).self) { group in
            for device in devices {
                var own = SplitMix64(seed: random.next())
                group.addTask { (device.number, try await device.run(until: deadline, faults, &own)) }
            }
            return try await group.reduce(into: [Int: Program]()) { $0[$1.0] = $1.1 }
        }
    }

    private static func forEach(
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
}
