import Foundation
import SluicePostgres
import TestSupport
import Testing

/// The workload that others published for a peer of ours (nurturenature/jepsen-powersync): five to ten devices, each a process,
/// read 100 registers and write four of them in each of ten to fifty transactions a second, while their connections, processes and
/// networks fail. What they have seen must be causally consistent and atomic, and in the end all have what PostgreSQL has.
///
/// `SLUICE_CAUSAL_SEED` runs one seed, `SLUICE_CAUSAL_RUNS` so many new ones instead of one, and `SLUICE_SOAK=1` fifty, of a minute each.
/// `SLUICE_CAUSAL_FAULTS=partitions` has partitions alone instead of everything that can fail. `SLUICE_KILL_SEED` and `SLUICE_KILL_RUNS`
/// are those of the runs in which gateways are killed.
@Suite(.serialized, .timeLimit(.minutes(120))) struct CausalTests {
    static let environment = ProcessInfo.processInfo.environment
    private static var faults: [RegisterDevice.Fault] {
        environment["SLUICE_CAUSAL_FAULTS"] == "partitions" ? [.cutBoth, .cutToServer, .cutToClient] : RegisterDevice.Fault.allCases
    }

    private static func seeds(_ name: String) -> [UInt64] {
        if let seed = environment["SLUICE_\(name)_SEED"].flatMap({ UInt64($0) }) { return [seed] }
        return (0..<runs(name, usually: 1, soak: 50)).map { _ in .random(in: .min ... .max) }
    }

    @Test(arguments: seeds("CAUSAL"))
    func `devices stay causally consistent, partitioned, disconnected, stopped, killed and paused`(seed: UInt64) async throws {
        let folder = try DataFolder()
        let server = try await DevelopmentServer.start(folder, ["--app", try RegisterApp.write(named: "registers", to: folder)])
        let port = try #require(server.url.split(separator: ":").last.flatMap { Int($0) })
        var play = CausalPlay(seed, of: server.appID, sql: try await PostgresConnection.connect(server.postgres)) { [port] }
        try await play.run(for: .seconds(isSoak ? 60 : 12), Self.faults)
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    @Test(arguments: seeds("KILL"))
    func `devices of two gateways over Kafka stay causally consistent, whichever of them is killed`(seed: UInt64) async throws {
        let folder = try DataFolder()
        let app = "registers-\(UUID().uuidString.lowercased())"
        try await ServedGateways.with(try RegisterApp.write(named: app, to: folder)) { gateways in
            var play = CausalPlay(seed, of: app, sql: try await PostgresConnection.connect(gateways.postgres)) {
                gateways.all.compactMap(\.port)
            }
            try await play.run(for: .seconds(isSoak ? 20 : 12), Self.faults) { deadline, random in
                var random = random
                return try await gateways.fail(until: deadline, &random)
            }
        }
        withExtendedLifetime(folder) {}
    }
}

extension ServedGateways {
    /// Kills one or both and starts them again, one time after the other. - Returns: what was killed, and for how long.
    func fail(until deadline: ContinuousClock.Instant, _ random: inout SplitMix64) async throws -> [String] {
        var done: [String] = []
        while ContinuousClock.now < deadline {
            // The moments are what the play draws; nothing is waited for.
            try await Task.sleep(for: .milliseconds(500 + random.below(4_000)))
            let killed = random.chance(25) ? all : [random.pick(all)]
            for gateway in killed { await gateway.kill() }
            let pause = Duration.milliseconds(random.below(3_000))
            done.append("\(killed.map { gateway in all.firstIndex { $0 === gateway } ?? -1 }) for \(pause)")
            try await Task.sleep(for: pause)
            for gateway in killed { try await gateway.start() }
        }
        return done
    }
}
