import AirportOpsScene
import Foundation
import SluicePostgres
import Testing

/// The demo's story as a test: every step of it checks what it claims, against SQL.
@Suite(.serialized) struct `The airport scene` {
    @MainActor
    @Test(.timeLimit(.minutes(10)))
    func `runs from the first snapshot to the second gateway, through a SIGKILL and a broker restart`() async throws {
        let environment = ProcessInfo.processInfo.environment
        let postgres = try #require(environment["SLUICE_TEST_POSTGRES"], "SLUICE_TEST_POSTGRES is not set: run the tests with `make test`.")
        let kafka = try #require(environment["SLUICE_TEST_KAFKA"], "SLUICE_TEST_KAFKA is not set: run the tests with `make test`.")
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
        let workspace = FileManager.default.temporaryDirectory.appendingPathComponent("scene-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: workspace, withIntermediateDirectories: true)
        let database = "scene_\(UUID().uuidString.lowercased().replacingOccurrences(of: "-", with: "_"))"
        let server = try await PostgresConnection.connect(postgres)
        _ = try await server.script("CREATE DATABASE \(database)")
        let log = StepLog()
        let scene = try await AirportScene(
            try SceneSetup(
                postgres: "\(postgres) dbname=\(database)", kafka: kafka, restartKafka: environment["SLUICE_TEST_KAFKA_RESTART"],
                binaries: try Self.binaries, app: root.appendingPathComponent("Examples/AirportOps/app").path,
                data: FlightData(folder: root.appendingPathComponent(".sluice/flights").path), workspace: workspace.path),
            reporter: log)
        defer { scene.stop() }
        do {
            try await scene.run()
        } catch {
            let gateways = (try? String(contentsOf: workspace.appendingPathComponent("gateway.log"), encoding: .utf8)) ?? ""
            Issue.record("\(error) after \(log.steps); the gateways said: \(gateways.suffix(4_000))")
            return
        }
        #expect(Set(log.steps).isSuperset(of: ["a1", "a2", "a3", "b", "c", "d", "j", "e", "f", "r", "g", "end"]))
        #expect(scene.figures.snapshotRows + scene.figures.capturedRows == 336_776)
        #expect(scene.figures.observations == 540)
        try? FileManager.default.removeItem(at: workspace)
    }

    /// The folder of the test bundle, where the programs and plugins are built too.
    private static var binaries: String {
        get throws {
            let bundle = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            return URL(fileURLWithPath: bundle).deletingLastPathComponent().path
        }
    }
}

@MainActor
private final class StepLog: SceneReporter {
    private(set) var steps: [String] = []
    nonisolated init() {}
    func step(_ name: String, _ outcome: String) { steps.append(name) }
    func progress(_ what: String, _ fraction: Double) {}
}
