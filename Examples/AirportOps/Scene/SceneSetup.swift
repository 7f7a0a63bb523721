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
    /// A copy of the app directory, in which the app has an ID that no other scene has.
    public let app: String
    /// The app's ID. It names the topics, which belong to one database: another scene on the same broker needs others.
    public let appID: String
    public var data: FlightData
    /// Where the agents keep their replicas, and the gateways write their logs.
    public var workspace: String

    /// - Parameter app: the app directory. It is copied into the workspace.
    public init(
        postgres: String, kafka: String, restartKafka: String?, binaries: String, app: String, data: FlightData, workspace: String
    ) throws {
        self.postgres = postgres
        self.kafka = kafka
        self.restartKafka = restartKafka
        self.binaries = binaries
        appID = "airport-ops-\(UUID().uuidString.prefix(8).lowercased())"
        self.app = "\(workspace)/app"
        try FileManager.default.copyItem(atPath: app, toPath: self.app)
        let main = "\(self.app)/realm_config.json"
        let text = try String(contentsOfFile: main, encoding: .utf8)
        guard text.contains("\"airport-ops\"") else { throw SceneFailure("\(app)/realm_config.json does not name the app airport-ops.") }
        try text.replacingOccurrences(of: "\"airport-ops\"", with: "\"\(appID)\"").write(toFile: main, atomically: true, encoding: .utf8)
        self.data = data
        self.workspace = workspace
    }

    var logPath: String { "\(workspace)/gateway.log" }

    /// The last line of the gateways' log that has a fault; nil if none has.
    var lastFault: String? {
        let lines = (try? String(contentsOfFile: logPath, encoding: .utf8))?.split(separator: "\n") ?? []
        let line = lines.last { $0.contains("error:") || $0.contains(" error ") || $0.contains("\"error\"") } ?? lines.last
        return line.map { String($0.prefix(1_000)) }
    }

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
