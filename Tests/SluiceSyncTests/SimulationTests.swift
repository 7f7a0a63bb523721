import Foundation
import Synchronization
import TestSupport
import Testing

/// Clients, network, disks and clocks, all from one seed. `SLUICE_SIMULATION_SEED=1234 dev/run-tests --filter SimulationTests`
/// runs one seed again, `SLUICE_SIMULATION_RUNS=50000` so many, and `SLUICE_SOAK=1` 100,000. That each check can fail,
/// `SimulationDefectTests` shows.
@Suite struct SimulationTests {
    static let environment = ProcessInfo.processInfo.environment
    static let replayed = environment["SLUICE_SIMULATION_SEED"].flatMap { UInt64($0) }
    static let runs = TestSupport.runs("SIMULATION", usually: 400, soak: 100_000)
    static let steps = 300
    /// Each stands for so many seeds in a row, from its multiple on.
    static let batch = 100
    static let batches = replayed.map { [$0] } ?? seeds(exactly: max(runs / batch, 1))

    @Test(arguments: batches)
    func `whatever network, disks and clocks do, every replica ends as its view and every write took effect once`(
        first: UInt64
    ) async throws {
        // The batch that is always run is numbered 1; seed 1 of another test is no part of it.
        let seeds = Self.replayed == nil ? (0..<UInt64(Self.batch)).map { first &* UInt64(Self.batch) &+ $0 } : [first]
        let begin = ContinuousClock.now
        defer { Self.clock.add(seeds.count, since: begin) }
        for seed in seeds {
            let problems = try Self.run(seed, steps: Self.steps)
            // It takes minutes of a thread that others wait for.
            await Task.yield()
            try #require(problems.isEmpty, "SLUICE_SIMULATION_SEED=\(seed) dev/run-tests --filter SimulationTests runs it again")
        }
    }

    private static let clock = SimulationClock(of: batches.count)

    @Test(arguments: seeds(1, soak: 20)) func `long runs end as short ones`(seed: UInt64) throws {
        let problems = try Self.run(seed, steps: 3_000)
        #expect(problems.isEmpty, "SLUICE_SEED=\(seed) dev/run-tests --filter SimulationTests runs it again")
    }

    static func run(_ seed: UInt64, steps: Int, defect: SimulatedDefect? = nil) throws -> [Problem] {
        try play(seed, steps: steps, defect: defect).problems
    }

    static func play(_ seed: UInt64, steps: Int, defect: SimulatedDefect? = nil) throws -> Simulation {
        var simulation = Simulation(seed: seed, clients: 2 + Int(seed % 2), defect: defect)
        for _ in 0..<steps { try simulation.step() }
        try simulation.settle()
        return simulation
    }
}

/// Says in the log of the tests how long all seeds took. Nothing depends on it: how long they take is the machine's affair.
private final class SimulationClock: Sendable {
    private struct State {
        var left: Int
        var seeds = 0
        var first: ContinuousClock.Instant?
    }

    private let state: Mutex<State>

    init(of batches: Int) { state = Mutex(State(left: batches)) }

    func add(_ seeds: Int, since begin: ContinuousClock.Instant) {
        let now = ContinuousClock.now
        let done = state.withLock { state -> (Int, Duration)? in
            state.seeds += seeds
            state.left -= 1
            let first = min(state.first ?? begin, begin)
            state.first = first
            return state.left == 0 ? (state.seeds, now - first) : nil
        }
        if let (seeds, time) = done { print("simulation: \(seeds) seeds in \(time.components.seconds) s") }
    }
}
