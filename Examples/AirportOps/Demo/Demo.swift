import AirportOpsScene
import Foundation

/// Runs the scene and prints it: `make demo`. Its settings are environment variables, which `dev/demo` sets.
@main
@MainActor
struct Demo {
    static func main() async {
        do {
            let setup = try await DemoSetup.fromEnvironment()
            let reporter = Terminal()
            let scene = try await AirportScene(setup, reporter: reporter)
            do {
                try await scene.run()
            } catch {
                scene.stop()
                throw error
            }
            say(Figures.text(scene.figures))
            if ProcessInfo.processInfo.environment["KEEP"] == "1" {
                say(KeepText.text(scene, setup))
                try? await _Concurrency.Task.sleep(for: .seconds(86_400))
            }
            scene.stop()
        } catch {
            FileHandle.standardError.write(Data("demo: \(error)\n".utf8))
            exit(1)
        }
    }
}

/// Prints a line at once, also to a pipe.
func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

enum DemoSetup {
    static func fromEnvironment() async throws -> SceneSetup {
        let environment = ProcessInfo.processInfo.environment
        func need(_ name: String) throws -> String {
            guard let value = environment[name], !value.isEmpty else { throw Missing(name: name) }
            return value
        }
        return try SceneSetup(
            postgres: try need("SLUICE_TEST_POSTGRES"), kafka: try need("SLUICE_TEST_KAFKA"),
            restartKafka: environment["SLUICE_TEST_KAFKA_RESTART"], binaries: try need("DEMO_BINARIES"), app: try need("DEMO_APP"),
            data: FlightData(folder: try need("DEMO_DATA")), workspace: try need("DEMO_WORKSPACE"))
    }

    struct Missing: Error, CustomStringConvertible {
        var name: String
        var description: String { "\(name) is not set. Start the demo with `make demo`, which sets it." }
    }
}

/// Prints a line for each step, and a bar for long operations.
struct Terminal: SceneReporter {
    func step(_ name: String, _ outcome: String) { say("[\(name)] \(outcome)") }

    func progress(_ what: String, _ fraction: Double) {
        let width = 40
        let filled = Int(fraction * Double(width))
        let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: width - filled)
        let isTerminal = isatty(STDOUT_FILENO) == 1
        if isTerminal {
            FileHandle.standardOutput.write(Data("\r\(what) [\(bar)] \(Int(fraction * 100)) %\(fraction >= 1 ? "\n" : "")".utf8))
        } else if fraction >= 1 {
            say("\(what) [\(bar)] 100 %")
        }
    }
}

enum Figures {
    @MainActor static func text(_ figures: AirportScene.Figures) -> String {
        """
        rows by snapshot: \(figures.snapshotRows), rows captured from the WAL: \(figures.capturedRows), \
        observations stored: \(figures.observations), rejected: \(figures.rejectedObservations)
        commit to replica: p50 \(milliseconds(figures.latency(0.5))), p99 \(milliseconds(figures.latency(0.99))) \
        over \(figures.latencies.count) updates at 100 a second
        """
    }

    private static func milliseconds(_ value: Double) -> String { String(format: "%.1f ms", value) }
}

enum KeepText {
    @MainActor static func text(_ scene: AirportScene, _ setup: SceneSetup) -> String {
        let agents = scene.logins.map { "  \($0.name): \($0.email) / \($0.password)\n    access token: \($0.token)" }
        let login = scene.logins[0]
        return """

            Everything keeps running until you press Ctrl-C.
            gateway:    \(scene.url)
            admin:      \(scene.adminURL)   (console: in a browser; metrics: curl \(scene.adminURL)/metrics)
            PostgreSQL: \(setup.postgres)
            Kafka:      \(setup.kafka)
            users:
            \(agents.joined(separator: "\n"))
            Try:
              psql "\(setup.postgres)" -c "UPDATE flights SET gate = 'A1' WHERE origin = 'JFK' AND month = 12 AND dep_delay > 60"
              \(setup.binaries)/sluice watch --url \(scene.url) --app \(setup.appID) --email \(login.email) --password \(login.password) \
            --type Flight 'origin == "JFK" AND month == 12 AND dep_delay > 60'
            """
    }
}
