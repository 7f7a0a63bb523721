import ArgumentParser
import Foundation

/// `sluice-bench`: measures the gateway and the SDK beside references, and prints ratios.
@main
struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sluice-bench",
        abstract: "Measures Sluice beside references that run in turn with it, and prints a table of ratios.",
        discussion: """
            Needs a PostgreSQL superuser in SLUICE_TEST_POSTGRES and a broker in SLUICE_TEST_KAFKA, except for `apply`, `query`, `match`, `objects` and `plugins`: run it \
            with `make bench`, or under dev/with-servers. Figures without the ratio beside them say more about the machine than about Sluice.
            """)

    @Argument(help: "What to measure: \(Kind.allCases.map(\.rawValue).joined(separator: ", ")). Default: everything.")
    var kinds: [Kind] = []

    @Option(help: "Rounds of each; the median counts.")
    var rounds = 5

    @Option(help: "The part of the full size to run, up to 1; for trying a change out.")
    var scale = 1.0

    @Flag(help: "Confirm the rate of changes that `latency` finds for three minutes, not twenty seconds.")
    var confirm = false

    enum Kind: String, CaseIterable, ExpressibleByArgument {
        case latency, upload, publish, bootstrap, apply, fanout, rules, ingest, memory, sessions, realm, logins, query, match, objects,
            plugins

        var needsServers: Bool { ![.query, .match, .objects, .apply, .plugins].contains(self) }
    }

    func run() async throws {
        // Unstructured because: only a task is certain to start on the main actor; the protocol's `run` is not.
        try await Task { @MainActor in try await measure() }.value
    }

    @MainActor
    private func measure() async throws {
        MainActor.preconditionIsolated()
        var report = Report()
        let kinds = kinds.isEmpty ? Kind.allCases : kinds
        guard kinds.contains(where: \.needsServers) else {
            say(Machine.description)
            for kind in kinds { try await measureAlone(kind, &report) }
            return say(report.table)
        }
        let setup = try Setup(rounds: rounds, scale: scale, confirms: confirm)
        say(Machine.description)
        do {
            for kind in kinds { try await measure(kind, setup, &report) }
        } catch {
            say(report.table)
            say("sluice-bench: \(error)\nThe logs are in \(setup.workspace).")
            throw ExitCode.failure
        }
        say(report.table)
        setup.removeWorkspace()
    }

    @MainActor
    private func measure(_ kind: Kind, _ setup: Setup, _ report: inout Report) async throws {
        switch kind {
        case .latency: try await LatencyBenchmark(setup: setup).run(&report)
        case .upload: try await UploadBenchmark(setup: setup).run(&report)
        case .publish: try await PublishBenchmark(setup: setup).run(&report)
        case .bootstrap: try await BootstrapBenchmark(setup: setup).run(&report)
        case .fanout: try await FanoutBenchmark(setup: setup).run(&report)
        case .rules: try await RulesBenchmark(setup: setup).run(&report)
        case .ingest: try await IngestBenchmark(setup: setup).run(&report)
        case .sessions: try await SessionsBenchmark(setup: setup).run(&report)
        case .memory: try await MemoryBenchmark(setup: setup).run(&report)
        case .realm: try await RealmBenchmark(setup: setup).run(&report)
        case .logins: try await LoginBenchmark(setup: setup).run(&report)
        case .query, .match, .objects, .apply, .plugins: try await measureAlone(kind, &report)
        }
    }

    /// Runs a benchmark that needs no server.
    @MainActor
    private func measureAlone(_ kind: Kind, _ report: inout Report) async throws {
        switch kind {
        case .query: try QueryBenchmark(rounds: rounds, scale: scale).run(&report)
        case .match: try MatchBenchmark(rounds: rounds, scale: scale).run(&report)
        case .objects: try ObjectStoreBenchmark(rounds: rounds, scale: scale).run(&report)
        case .apply: try await ApplyBenchmark(rounds: rounds, scale: scale).run(&report)
        case .plugins: try await PluginBenchmark(rounds: rounds, scale: scale).run(&report)
        case .latency, .upload, .publish, .bootstrap, .fanout, .rules, .ingest, .memory, .sessions, .realm, .logins: break
        }
    }
}

/// A failure of a benchmark, described in one sentence.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
