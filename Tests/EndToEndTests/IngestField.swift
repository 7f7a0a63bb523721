import Foundation
import SluiceCore
import SluicePostgres
import Synchronization
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif
#if canImport(Glibc)
    import Glibc
#endif

/// Two gateways, each a process that comes back on its port when it is killed, a database and topics of their own.
final class IngestField: Sendable {
    static let email = "station@airport.example"
    static let password = "gate-agents-2013"

    let app: String
    let kafka: String
    private let folder: DataFolder
    private let directory: String
    private let postgres: String
    private let sql: PostgresConnection
    private let gateways: [Gateway]

    var topic: String { "\(app).ingest.WeatherObservation" }

    static func with(_ body: (IngestField) async throws -> Void) async throws {
        let environment = ProcessInfo.processInfo.environment
        let server = try #require(environment["SLUICE_TEST_POSTGRES"], "SLUICE_TEST_POSTGRES is not set: run the tests with `make test`.")
        let kafka = try #require(environment["SLUICE_TEST_KAFKA"], "SLUICE_TEST_KAFKA is not set: run the tests with `make test`.")
        let field = try await IngestField(server: server, kafka: kafka)
        do {
            for gateway in field.gateways { try await gateway.start() }
            try await field.register()
            try await body(field)
            await field.stop()
        } catch {
            Issue.record("the gateways said: \(field.gateways.map { $0.said.suffix(2_000) })")
            await field.stop()
            throw error
        }
    }

    private init(server: String, kafka: String) async throws {
        self.kafka = kafka
        app = "station-\(UUID().uuidString.prefix(8).lowercased())"
        folder = try DataFolder()
        let directory = try folder.app(named: app).path
        self.directory = directory
        let database = "station_\(UUID().uuidString.lowercased().replacingOccurrences(of: "-", with: "_"))"
        let connection = try await PostgresConnection.connect(server)
        _ = try await connection.script("CREATE DATABASE \(database)")
        await connection.close()
        let postgres = "\(server) dbname=\(database)"
        self.postgres = postgres
        sql = try await PostgresConnection.connect(postgres)
        let apply = try Program("sluice", ["schema", "apply", "--app", directory, "--postgres", postgres])
        try #require(await apply.end() == .exit(0), "\(apply.said)")
        gateways = (0..<2).map { _ in Gateway(["serve", "--app", directory, "--postgres", postgres, "--kafka", kafka, "--json"]) }
    }

    private func stop() async {
        for gateway in gateways { await gateway.stop() }
        await sql.close()
    }

    func url(_ number: Int) -> String { gateways[number % gateways.count].url }
    func count(_ query: String) async throws -> Int? { try await sql.query(query).int(0, 0).map { Int($0) } }

    /// What is in the table of the refused: the record's own name by the letter's id.
    func lettersKept() async throws -> [Int: String] {
        let result = try await sql.query("SELECT id, object::jsonb ->> '_id' FROM sluice.ingest_rejected")
        return Dictionary(uniqueKeysWithValues: (0..<result.count).map { (Int(result.int($0, 0) ?? 0), result[$0, 1] ?? "") })
    }

    private func register() async throws {
        let body = #"{"email":"\#(Self.email)","password":"\#(Self.password)","custom_data":{"origin":"JFK"}}"#
        _ = try await post("\(gateways[0].adminURL)/admin/v1/users", body)
    }

    func token() async throws -> String {
        let url = "\(url(0))/api/client/v2.0/app/\(app)/auth/providers/local-userpass/login"
        let answer = try await post(url, #"{"username":"\#(Self.email)","password":"\#(Self.password)"}"#)
        return try #require(answer["access_token"]?.string)
    }

    private func post(_ url: String, _ body: String) async throws -> JSON {
        var request = URLRequest(url: try #require(URL(string: url)))
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.httpBody = Data(body.utf8)
        let (data, response) = try await URLSession.shared.data(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        try #require((200..<300).contains(status), "\(String(decoding: data, as: UTF8.self))")
        return try JSON.parse(Array(data))
    }

    /// Kills something at a random moment of each share of the records.
    /// - Returns: what, in order.
    func play(_ plan: IngestPlan, _ random: SplitMix64, _ restart: String?, at pace: Pace) async throws -> [String] {
        var random = random
        var done: [String] = []
        for fault in 0..<plan.faults {
            await pace.wait(for: ["http", "kafka", "sdk"], to: fault)
            // The moment is what the play draws; nothing is waited for.
            try await Task.sleep(for: .milliseconds(random.below(300)))
            let number = random.below(gateways.count)
            switch random.below(restart == nil ? 4 : 5) {
            case 0, 1:
                done.append("gateway \(number)")
                try await gateways[number].restart()
            case 2, 3:
                let hosts = gateways[number].pluginHosts
                done.append("\(hosts.isEmpty ? "no " : "")plugin host of \(number)")
                if !hosts.isEmpty { kill(random.pick(hosts), SIGKILL) }
            default:
                done.append("broker")
                let status = try await Self.run(restart ?? "")
                try #require(status == 0, "The broker did not come back.")
            }
            await pace.advance("faults", to: fault + 1)
        }
        return done
    }

    private static func run(_ path: String) async throws -> Int32 {
        try await withCheckedThrowingContinuation { continuation in
            let process = Process()
            process.executableURL = URL(fileURLWithPath: path)
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
    }

    /// Waits until everything is where it belongs.
    func settles(_ plan: IngestPlan) async throws -> Bool {
        let (stored, refused) = (3 * (plan.count - plan.refused), 3 * plan.refused)
        let deadline = ContinuousClock.now + .seconds(300)
        while true {
            let rows = try await count("SELECT count(*) FROM weather_observations")
            let letters = try await count("SELECT count(DISTINCT object::jsonb ->> '_id') FROM sluice.ingest_rejected")
            if rows == stored, letters == refused { return true }
            guard ContinuousClock.now < deadline else {
                Issue.record("\(rows ?? -1) of \(stored) are stored, \(letters ?? -1) of \(refused) refused.")
                return false
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }
}

/// `sluice serve` that is started again, on the port that it had. Its methods are called one at a time.
private final class Gateway: Sendable {
    private struct State {
        var program: Program?
        var port = 0
        var adminURL = ""
        var words = ""
    }

    private let arguments: [String]
    private let state = Mutex(State())

    init(_ arguments: [String]) { self.arguments = arguments }

    private var now: State { state.withLock { $0 } }
    var url: String { "http://127.0.0.1:\(now.port)" }
    var adminURL: String { now.adminURL }
    var said: String { now.words + (now.program?.said ?? "") }

    func start() async throws {
        let program = try Program("sluice", arguments + ["--port", "\(now.port)", "--admin-port", "0"])
        let ready = try JSON.parse(try #require(await program.line(), "The gateway did not start: \(program.said)"))
        let port = try #require(ready["url"]?.string?.split(separator: ":").last.flatMap { Int($0) })
        let adminURL = try #require(ready["admin_url"]?.string)
        state.withLock { $0 = State(program: program, port: port, adminURL: adminURL, words: $0.words) }
    }

    /// As a power cut would: no goodbye, nothing flushed.
    func restart() async throws {
        let program = now.program
        program?.signal(SIGKILL)
        _ = await program?.end()
        state.withLock { $0.words += program?.said ?? "" }
        try await start()
    }

    func stop() async {
        let program = now.program
        program?.signal(SIGTERM)
        _ = await program?.end()
    }

    /// The processes of its plugins.
    var pluginHosts: [Int32] {
        guard let parent = now.program?.identifier else { return [] }
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return all.compactMap { Int32($0) }.filter { process in
            guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return false }
            let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
            return text.contains("(sluice-plugin-h") && fields.count > 2 && fields[2] == "\(parent)"
        }.sorted()
    }
}
