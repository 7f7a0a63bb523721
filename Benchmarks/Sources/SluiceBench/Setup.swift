import Foundation
import SluicePostgres

/// The servers, programs and files of a run.
struct Setup {
    let postgres: String
    let kafka: String
    let rounds: Int
    let scale: Double
    /// `true` if a sustained rate is confirmed for three minutes.
    let confirms: Bool
    /// The folder of logs, replicas and app directories.
    let workspace: String

    init(rounds: Int, scale: Double, confirms: Bool) throws {
        let environment = ProcessInfo.processInfo.environment
        guard let postgres = environment["SLUICE_TEST_POSTGRES"], let kafka = environment["SLUICE_TEST_KAFKA"] else {
            throw BenchFailure("SLUICE_TEST_POSTGRES and SLUICE_TEST_KAFKA are not set; use make bench.")
        }
        self.postgres = postgres
        self.kafka = kafka
        self.rounds = rounds
        self.scale = scale
        self.confirms = confirms
        workspace = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-bench.\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: true)
    }

    func removeWorkspace() { try? FileManager.default.removeItem(atPath: workspace) }

    /// Returns a count at the scale of this run.
    func scaled(_ count: Int) -> Int { max(Int(Double(count) * scale), 1) }

    func program(_ name: String) throws -> String { try Self.sibling(name) }

    /// Returns the path of a program that was built with this one.
    static func sibling(_ name: String) throws -> String {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let path = "\(URL(fileURLWithPath: program).deletingLastPathComponent().path)/\(name)"
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw BenchFailure("\(name) is not built; run swift build -c release --package-path Benchmarks.")
        }
        return path
    }

    /// Returns the path of one of PostgreSQL's own programs.
    func postgresProgram(_ name: String) throws -> String {
        let root = "/usr/lib/postgresql"
        let versions = ((try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []).sorted { (Int($0) ?? 0) > (Int($1) ?? 0) }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let places = versions.map { "\(root)/\($0)/bin" } + path.split(separator: ":").map(String.init)
        guard let folder = places.first(where: { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }) else {
            throw BenchFailure("\(name) is not installed; it comes with PostgreSQL.")
        }
        return "\(folder)/\(name)"
    }

    func log(_ name: String) throws -> FileHandle {
        let path = "\(workspace)/\(name).log"
        if !FileManager.default.fileExists(atPath: path) { _ = FileManager.default.createFile(atPath: path, contents: nil) }
        guard let handle = FileHandle(forWritingAtPath: path) else { throw BenchFailure("\(path) cannot be written.") }
        _ = try handle.seekToEnd()
        return handle
    }

    /// Creates a database with the table of `Item`, and connects to it.
    func database(_ name: String) async throws -> (conninfo: String, sql: PostgresConnection) {
        let server = try await PostgresConnection.connect(postgres)
        _ = try await server.query("DROP DATABASE IF EXISTS \(name) WITH (FORCE)")
        _ = try await server.query("CREATE DATABASE \(name)", within: .seconds(60))
        await server.close()
        let conninfo = postgres + " dbname=\(name)"
        let sql = try await PostgresConnection.connect(conninfo)
        try await sql.script(Item.table)
        return (conninfo, sql)
    }

    /// Starts a gateway of its own app, so that its topics are also its own.
    /// - Parameters:
    ///   - kafka: `true` for Kafka, `false` for the embedded log.
    ///   - folder: The app directory. Default: `app`.
    ///   - environment: Additional environment variables.
    ///   - rules: The text of the rules of `items`, which replaces those of the directory.
    ///   - more: Additional arguments of `sluice serve`.
    ///   - change: A file of the directory, a text in it, and the text in its place.
    func gateway(
        _ name: String, _ conninfo: String, kafka: Bool, app folder: String = "app", rules: String? = nil,
        environment: [String: String] = [:], arguments more: [String] = [],
        replacing change: (file: String, text: String, new: String)? = nil
    ) async throws -> RunningGateway {
        let app = try appDirectory(name, from: folder)
        if let change {
            let file = "\(app)/\(change.file)"
            let text = try String(contentsOfFile: file, encoding: .utf8).replacingOccurrences(of: change.text, with: change.new)
            try text.write(toFile: file, atomically: true, encoding: .utf8)
        }
        if let rules {
            try rules.write(toFile: "\(app)/data_sources/postgres/public/items/rules.json", atomically: true, encoding: .utf8)
        }
        var arguments = ["serve", "--app", app, "--postgres", conninfo, "--port", "0", "--admin-port", "0", "--json"] + more
        // All clients connect from this machine.
        arguments += ["--connections-per-address", "12000"]
        if kafka { arguments += ["--kafka", self.kafka] }
        return try await RunningGateway.ready(Child(program("sluice"), arguments, log: log(name), environment: environment))
    }

    /// Starts `sluice dev` with its own PostgreSQL and no configuration.
    func development(_ name: String, kafka: Bool) async throws -> RunningGateway {
        var arguments = ["dev", "--port", "0", "--admin-port", "0", "--json"]
        if kafka { arguments += ["--kafka", self.kafka] }
        return try await RunningGateway.ready(Child(program("sluice"), arguments, log: log(name)))
    }

    /// Copies the app directory under another id.
    private func appDirectory(_ id: String, from folder: String) throws -> String {
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../\(folder)").standardized
        let target = "\(workspace)/\(id).app"
        try FileManager.default.copyItem(atPath: source.path, toPath: target)
        let file = "\(target)/realm_config.json"
        let text = try String(contentsOfFile: file, encoding: .utf8).replacingOccurrences(of: "\"bench\"", with: "\"\(id)\"")
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        return target
    }
}

extension PostgresConnection {
    /// Returns the slot and the publication of the only gateway in this database, once it reads.
    func replication() async throws -> (slot: String, publication: String) {
        let deadline = seconds() + 30
        while seconds() < deadline {
            let slots = try await query(
                "SELECT slot_name FROM pg_replication_slots WHERE database = current_database() AND slot_name LIKE 'sluice%' AND active")
            let publications = try await query("SELECT pubname FROM pg_publication")
            if let slot = slots.column(0).first, let publication = publications.column(0).first { return (slot, publication) }
            try await Task.sleep(for: .milliseconds(50))
        }
        throw BenchFailure("In 30 s the gateway has not begun to read a slot.")
    }
}

/// A gateway that is ready.
struct RunningGateway {
    let child: Child
    let url: String
    let appID: String
    /// The PostgreSQL of `sluice dev`. Nil for `sluice serve`.
    let postgres: String?

    private struct Ready: Decodable {
        var url: String
        var app_id: String
        var postgres: String?
    }

    /// Not an initializer: async ones do not return to the caller's actor (Swift 6.3).
    static func ready(_ child: Child) async throws -> RunningGateway {
        let line = try await child.line()
        guard let ready = try? JSONDecoder().decode(Ready.self, from: Data(line.utf8)) else {
            throw BenchFailure("The gateway said “\(line)” in place of its addresses.")
        }
        return RunningGateway(child: child, url: ready.url, appID: ready.app_id, postgres: ready.postgres)
    }

    var port: Int { URL(string: url)?.port ?? 0 }
}
