import Foundation

/// The servers, the built programs and the data of the scene.
public struct SceneSetup: Sendable {
    /// The libpq connection string of a PostgreSQL database for the scene alone.
    public var postgres: String
    /// Kafka's bootstrap servers.
    public var kafka: String
    /// A command that restarts the broker and returns when it is ready. Nil if the scene must not restart it.
    public var restartKafka: String?
    /// The folder with `sluice`, `sluice-plugin-host` and the plugins.
    public var binaries: String
    /// A copy of the app directory, with a unique ID of the app.
    public let app: String
    /// The app's ID. It names the topics, which belong to one database, so another scene on the same broker needs another ID.
    public let appID: String
    /// The secret that the gateway and the airport's own identity provider share.
    let identityKey: String
    public var data: FlightData
    /// The folder of the agents' replicas and the gateways' logs.
    public var workspace: String

    /// - Parameter app: The app directory. It is copied into the workspace.
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
        identityKey = UUID().uuidString + UUID().uuidString
        try Self.add(IdentityProvider.settings, to: "\(self.app)/auth/providers.json")
        try Self.add(["identity-provider": identityKey], to: "\(self.app)/secrets.json")
        self.data = data
        self.workspace = workspace
    }

    /// Adds members to an object in a file. A missing file is an empty object.
    private static func add(_ members: [String: Any], to path: String) throws {
        let file = URL(fileURLWithPath: path)
        let old = try (try? Data(contentsOf: file)).map { try JSONSerialization.jsonObject(with: $0) } as? [String: Any] ?? [:]
        try JSONSerialization.data(withJSONObject: old.merging(members) { $1 }, options: .prettyPrinted).write(to: file)
    }

    var logPath: String { "\(workspace)/gateway.log" }

    /// The last line of the gateways' log that reports an error, otherwise the last line. Nil for an empty log.
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

/// Receives the progress of the scene.
@MainActor
public protocol SceneReporter {
    func step(_ name: String, _ outcome: String)
    /// - Parameter fraction: 0 to 1.
    func progress(_ what: String, _ fraction: Double)
}
