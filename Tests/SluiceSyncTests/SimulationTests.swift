import Foundation
import SluiceCore
import SluiceReplica
import SluiceSync
import TestSupport
import Testing

/// Clients, network, disks and clocks, all from one seed. `SLUICE_SIMULATION_SEED=1234 dev/run-tests --filter SimulationTests`
/// runs one seed again, `SLUICE_SIMULATION_RUNS=50000` so many.
@Suite struct SimulationTests {
    static let environment = ProcessInfo.processInfo.environment
    static let replayed = environment["SLUICE_SIMULATION_SEED"].flatMap { UInt64($0) }
    static let runs = environment["SLUICE_SIMULATION_RUNS"].flatMap { Int($0) } ?? 5_000
    /// Each stands for so many seeds in a row.
    static let batch = 100
    static let batches = replayed.map { [$0] } ?? seeds(max(runs / batch - 3, 0))

    @Test(arguments: batches)
    func `whatever network, disks and clocks do, every replica ends as its view and every write took effect once`(
        first: UInt64
    ) async throws {
        for offset in 0..<UInt64(Self.replayed == nil ? Self.batch : 1) {
            let seed = first &+ offset
            let problems = try Self.run(seed, steps: 220)
            // It takes minutes of a thread that others wait for.
            await Task.yield()
            try #require(problems.isEmpty, "SLUICE_SIMULATION_SEED=\(seed)")
        }
    }

    @Test(arguments: seeds(3)) func `long runs end as short ones`(seed: UInt64) throws {
        let problems = try Self.run(seed, steps: 3_000)
        #expect(problems.isEmpty, "seed \(seed)")
    }

    private static func run(_ seed: UInt64, steps: Int) throws -> [String] {
        var simulation = Simulation(seed: seed, clients: 2 + Int(seed % 2))
        for _ in 0..<steps { try simulation.step() }
        try simulation.settle()
        return simulation.problems
    }
}

extension Simulation {
    /// What is not as it must be, once everything has settled.
    var problems: [String] {
        var problems = gateway.violations + gateway.outside
        func check(_ isTrue: Bool, _ what: @autoclosure () -> String) { if !isTrue { problems.append(what()) } }
        check(gateway.effects.values.allSatisfy { $0 == 1 }, "a changeset took effect twice: \(gateway.effects.filter { $0.value != 1 })")
        check(gateway.readings.count == Int(nextReading - 1), "\(gateway.readings.count) of \(nextReading - 1) readings arrived")
        check(gateway.readings.values.allSatisfy { $0 == 1 }, "a reading arrived twice")
        check(gateway.items[Simulation.counter]?.count == added, "\(String(describing: gateway.items[Simulation.counter])), not \(added)")
        let tags = gateway.items[Simulation.list]?.tags ?? []
        let kept = clients.reduce(into: Set()) { $0.formUnion($1.inserted) }.subtracting(clients.flatMap(\.removed))
        check(Set(tags) == kept && tags.count == kept.count, "the list has \(tags), not \(kept.sorted())")
        for (index, client) in clients.enumerated() { problems += self.problems(of: client).map { "client \(index): \($0)" } }
        return problems
    }

    private func problems(of client: Client) -> [String] {
        var problems = client.problems
        func check(_ isTrue: Bool, _ what: @autoclosure () -> String) { if !isTrue { problems.append(what()) } }
        let file = client.file
        let number = file.identity?.client.rawValue ?? 0
        check(gateway.clients[number]?.changeset == file.changesets, "not all changesets arrived")
        for changeset in 1..<file.changesets + 1 {
            check(gateway.effects["\(number)/\(changeset)"] == 1, "changeset \(changeset) did not take effect once")
        }
        check(file.told == Array(1..<(gateway.clients[number]?.lastCompensation ?? 0) + 1), "told of \(file.told)")
        check(gateway.clients[number]?.compensations.isEmpty == true, "a compensation is open")
        let active = file.sets.first { $0.version == file.applied.version }
        let stores = Set(active?.subscriptions.map(\.query) ?? [])
        let view = gateway.items.filter { stores.contains($0.value.store) }
        check(
            file.shown == view,
            "shows \(file.shown.filter { view[$0.key] != $0.value }), not \(view.filter { file.shown[$0.key] != $0.value })")
        for set in file.sets where set.version > file.applied.version {
            if case .error = set.state { continue }
            problems.append("set \(set.version) is neither active nor refused")
        }
        return problems
    }
}
