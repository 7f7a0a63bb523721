import Foundation

/// Where everything is: the servers, the built programs, the data.
public struct SceneSetup: Sendable {
    /// PostgreSQL as a libpq connection string; a database of its own.
    public var postgres: String
    /// Kafka's bootstrap servers.
    public var kafka: String
    /// Restarts the broker and returns when it is back; nil when it is not ours to restart.
    public var restartKafka: String?
    /// The folder with `sluice`, `sluice-plugin-host` and the plugins.
    public var binaries: String
    /// The app directory.
    public var app: String
    public var data: FlightData
    /// Where the agents keep their replicas, and the gateways write their logs.
    public var workspace: String

    public init(
        postgres: String, kafka: String, restartKafka: String?, binaries: String, app: String, data: FlightData, workspace: String
    ) {
        self.postgres = postgres
        self.kafka = kafka
        self.restartKafka = restartKafka
        self.binaries = binaries
        self.app = app
        self.data = data
        self.workspace = workspace
    }

    var logPath: String { "\(workspace)/gateway.log" }

    /// The gateways' log, opened for appending.
    var log: FileHandle {
        if !FileManager.default.fileExists(atPath: logPath) { _ = FileManager.default.createFile(atPath: logPath, contents: nil) }
        let handle = FileHandle(forWritingAtPath: logPath) ?? .nullDevice
        _ = try? handle.seekToEnd()
        return handle
    }
}

/// Hears how the scene goes.
@MainActor
public protocol SceneReporter {
    func step(_ name: String, _ outcome: String)
    /// - Parameter fraction: 0 to 1.
    func progress(_ what: String, _ fraction: Double)
}
