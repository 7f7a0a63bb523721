import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import Synchronization
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Two gateways of an app over Kafka, and their database.
struct ServedGateways: Sendable {
    let all: [ServedGateway]
    let kafka: String
    /// A superuser's connection string for the database.
    let postgres: String

    /// Makes the tables of an app directory and runs gateways of it as long as the body runs. The broker is everybody's unless another is
    /// given: the app wants a name of its own.
    /// - Parameters:
    ///   - server: a PostgreSQL of the test's own; nil: the one that is everybody's.
    ///   - kafkaFile: settings that name the broker, which nothing else does then.
    ///   - grace: the seconds that a gateway has to end.
    static func with(
        _ directory: String, server own: String? = nil, broker: String? = nil, kafkaFile: String? = nil, grace: Int = 3,
        _ body: (ServedGateways) async throws -> Void
    ) async throws {
        let environment = ProcessInfo.processInfo.environment
        let server = try #require(
            own ?? environment["SLUICE_TEST_POSTGRES"], "SLUICE_TEST_POSTGRES is not set: run the tests with `make test`.")
        let kafka = try #require(
            broker ?? environment["SLUICE_TEST_KAFKA"], "SLUICE_TEST_KAFKA is not set: run the tests with `make test`.")
        let database = "served_\(UUID().uuidString.lowercased().replacingOccurrences(of: "-", with: "_"))"
        let admin = try await PostgresConnection.connect(server)
        _ = try await admin.script("CREATE DATABASE \(database)")
        let postgres = "\(server) dbname=\(database)"
        let apply = try Program("sluice", ["schema", "apply", "--app", directory, "--postgres", postgres])
        try #require(await apply.end() == .exit(0), "\(apply.said)")
        let log = kafkaFile.map { ["--kafka-config", $0] } ?? ["--kafka", kafka]
        let arguments = ["serve", "--app", directory, "--postgres", postgres, "--json", "--grace-seconds", "\(grace)"] + log
        let gateways = ServedGateways(all: try (0..<2).map { _ in try ServedGateway(arguments) }, kafka: kafka, postgres: postgres)
        do {
            for gateway in gateways.all { try await gateway.start() }
            try await body(gateways)
            await gateways.stop()
        } catch {
            Issue.record("the gateways said: \(gateways.all.map { $0.said.suffix(2_000) })")
            await gateways.stop()
            throw error
        }
        // The test ends its own with everything in it.
        guard own == nil else { return }
        // A slot that nobody reads keeps the write-ahead log of the whole server, and who read it may not have left yet.
        let slots = "FROM pg_replication_slots WHERE database = '\(database)'"
        try await admin.query("SELECT pg_terminate_backend(active_pid, 30000) \(slots) AND active_pid IS NOT NULL")
        try await admin.query("SELECT pg_drop_replication_slot(slot_name) \(slots)")
        _ = try await admin.script("DROP DATABASE \(database) WITH (FORCE)")
        await admin.close()
    }

    private func stop() async {
        for gateway in all { await gateway.stop() }
    }

    /// By a connection of its own, as the server may have been another one a moment ago.
    func query(_ text: String) async throws -> PostgresResult {
        let connection = try await PostgresConnection.connect(postgres)
        let result = try await connection.query(text)
        await connection.close()
        return result
    }
}

/// `sluice serve` that is started again, on its port. Its methods are called one at a time.
final class ServedGateway: Sendable {
    private struct State {
        var program: Program?
        var adminURL = ""
        var words = ""
    }

    private let arguments: [String]
    private let ownPort: Int
    private let state = Mutex(State())

    init(_ arguments: [String]) throws {
        ownPort = try LocalSocket.portToComeBackTo()
        self.arguments = arguments + ["--port", "\(ownPort)", "--admin-port", "0"]
    }

    private var now: State { state.withLock { $0 } }
    /// Whether it is the process that was started last.
    var isRunning: Bool { now.program?.isRunning ?? false }
    /// Nil while it does not run.
    var port: Int? { now.program.map { _ in ownPort } }
    var url: String { "http://127.0.0.1:\(ownPort)" }
    var adminURL: String { now.adminURL }
    var said: String { now.words + (now.program?.said ?? "") }

    func start() async throws {
        let program = try Program("sluice", arguments)
        let ready = try JSON.parse(try #require(await program.line(), "The gateway did not start: \(program.said)"))
        let adminURL = try #require(ready["admin_url"]?.string)
        state.withLock { $0 = State(program: program, adminURL: adminURL, words: $0.words) }
    }

    /// As a power cut would: no goodbye, nothing flushed. It comes back with `start`.
    func kill() async { await end(SIGKILL) }

    @discardableResult
    func stop() async -> Program.Ending { await end(SIGTERM) }

    @discardableResult
    private func end(_ signal: Int32) async -> Program.Ending {
        let program = state.withLock { state in
            defer { state.program = nil }
            return state.program
        }
        program?.signal(signal)
        let ending = await program?.end() ?? .none
        state.withLock { $0.words += program?.said ?? "" }
        return ending
    }

    /// Bytes of memory that it has now, and the most that it had at a time since `forgetPeak`.
    func memory() throws -> (now: Int, peak: Int) {
        let status = try String(contentsOfFile: "/proc/\(try process())/status", encoding: .utf8)
        func bytes(_ name: String) throws -> Int {
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("\(name):") })
            return try #require(line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }) << 10
        }
        return (try bytes("VmRSS"), try bytes("VmHWM"))
    }

    /// From here on, `memory().peak` counts.
    func forgetPeak() throws { try "5".write(toFile: "/proc/\(try process())/clear_refs", atomically: false, encoding: .utf8) }

    private func process() throws -> Int32 { try #require(now.program?.identifier, "It does not run.") }

    /// The processes of its plugins.
    var pluginHosts: [Int32] {
        guard let parent = now.program?.identifier else { return [] }
        return ProcessState.children(of: parent).filter { $0.name == "sluice-plugin-h" }.map(\.id).sorted()
    }
}
