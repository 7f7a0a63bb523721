import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif
#if canImport(Glibc)
    import Glibc
#endif

/// What the ways of ingest are tried on: the airport's app, served by two gateways.
final class IngestField: Sendable {
    static let email = "station@airport.example"
    static let password = "gate-agents-2013"

    let app: String
    let gateways: ServedGateways
    /// Nil when it is everybody's.
    private let broker: TestBroker?
    /// A command that restarts the broker that is everybody's.
    private let restart: String?

    var kafka: String { gateways.kafka }
    var topic: String { "\(app).ingest.WeatherObservation" }

    /// - Parameters:
    ///   - broker: one of its own, to be restarted; nil: the one that is everybody's.
    ///   - restart: a command that restarts the latter; nil leaves it alone.
    ///   - server: a PostgreSQL of the test's own; nil: the one that is everybody's.
    ///   - files: of the app, to replace.
    static func with(
        _ broker: TestBroker?, restart: String? = nil, server: String? = nil, grace: Int = 3, files: [String: String] = [:],
        _ body: (IngestField) async throws -> Void
    ) async throws {
        let app = "station-\(UUID().uuidString.prefix(8).lowercased())"
        let folder = try DataFolder()
        let directory = try folder.app(named: app).path
        for (path, text) in files { try text.write(toFile: "\(directory)/\(path)", atomically: true, encoding: .utf8) }
        try await ServedGateways.with(directory, server: server, broker: broker?.address, grace: grace) { gateways in
            let field = IngestField(app, gateways, broker, restart)
            try await field.register()
            try await body(field)
        }
        await broker?.end()
        withExtendedLifetime(folder) {}
    }

    private init(_ app: String, _ gateways: ServedGateways, _ broker: TestBroker?, _ restart: String?) {
        self.app = app
        self.gateways = gateways
        self.broker = broker
        self.restart = restart
    }

    func url(_ number: Int) -> String { gateways.all[number % gateways.all.count].url }
    func count(_ query: String) async throws -> Int? { try await gateways.query(query).int(0, 0).map { Int($0) } }

    /// What is in the table of the refused: the record's own name by the letter's id.
    func lettersKept() async throws -> [Int: String] {
        let result = try await gateways.query("SELECT id, object::jsonb ->> '_id' FROM sluice.ingest_rejected")
        return Dictionary(uniqueKeysWithValues: (0..<result.count).map { (Int(result.int($0, 0) ?? 0), result[$0, 1] ?? "") })
    }

    private func register() async throws {
        let body = #"{"email":"\#(Self.email)","password":"\#(Self.password)","custom_data":{"origin":"JFK"}}"#
        _ = try await post("\(gateways.all[0].adminURL)/admin/v1/users", body)
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

    private enum Fault: CaseIterable {
        case gateway, pluginHost, broker
    }

    /// Each kind once before any is drawn again, in an order that the play draws.
    private func faults(_ count: Int, _ random: inout SplitMix64) -> [Fault] {
        let kinds = Fault.allCases.filter { $0 != .broker || broker != nil || restart != nil }
        var faults: [Fault] = []
        while faults.count < count { faults += kinds.shuffled(using: &random) }
        return Array(faults.prefix(count))
    }

    /// Kills something at a random moment of each share of the records.
    /// - Returns: what, in order.
    func play(_ plan: IngestPlan, _ random: SplitMix64, at pace: Pace) async throws -> [String] {
        var random = random
        var done: [String] = []
        for (fault, kind) in faults(plan.faults, &random).enumerated() {
            await pace.wait(for: ["http", "kafka", "sdk"], to: fault)
            // The moment is what the play draws; nothing is waited for.
            try await Task.sleep(for: .milliseconds(random.below(300)))
            let number = random.below(gateways.all.count)
            switch kind {
            case .gateway:
                done.append("gateway \(number)")
                await gateways.all[number].kill()
                try await gateways.all[number].start()
            case .pluginHost:
                let hosts = try await untilHosted(gateways.all[number])
                done.append("plugin host of \(number)")
                kill(random.pick(hosts), SIGKILL)
            case .broker:
                done.append("broker")
                try await broker?.restart()
                if let restart {
                    let status = try await Self.run(restart)
                    try #require(status == 0, "The broker did not come back.")
                }
            }
            await pace.advance("faults", to: fault + 1)
        }
        return done
    }

    /// A gateway that was killed a moment ago has hosts again when it is ready; one that was killed itself is started anew.
    private func untilHosted(_ gateway: ServedGateway) async throws -> [Int32] {
        try #require(
            try await found {
                let hosts = gateway.pluginHosts
                return hosts.isEmpty ? nil : hosts
            }, "A gateway has no plugin hosts.")
    }

    private static func run(_ path: String) async throws -> Int32 {
        try await withCheckedThrowingContinuation { continuation in
            let process = Process()
            process.executableURL = URL(fileURLWithPath: path)
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
    }

    /// Everything is in the tables where it belongs, once.
    func expectOnce(_ plan: IngestPlan, by senders: [any IngestSender], _ comment: Comment) async throws {
        try #require(await settles(plan), comment)
        // Of each way everything, not only as many.
        for sender in senders {
            let way = sender.way
            let stored = try await count("SELECT count(*) FROM weather_observations WHERE \"_id\" LIKE '\(way)-%' AND units = 'si'")
            #expect(stored == plan.count - plan.refused, "\(way), \(comment)")
        }
        // Each is refused once, whoever sent it again for want of an answer.
        let kept = try await lettersKept()
        #expect(kept.count == 3 * plan.refused && Set(kept.values).count == kept.count, comment)
        let both = "SELECT count(*) FROM weather_observations w JOIN sluice.ingest_rejected r ON w.\"_id\" = r.object::jsonb ->> '_id'"
        #expect(try await count(both) == 0, comment)
    }

    /// Waits until everything is where it belongs.
    private func settles(_ plan: IngestPlan) async throws -> Bool {
        let (stored, refused) = (3 * (plan.count - plan.refused), 3 * plan.refused)
        var seen = ""
        let areThere = try await eventually(within: .seconds(300), every: .milliseconds(100)) {
            let rows = try await count("SELECT count(*) FROM weather_observations")
            let letters = try await count("SELECT count(*) FROM sluice.ingest_rejected")
            seen = "\(rows ?? -1) of \(stored) are stored, \(letters ?? -1) of \(refused) refused."
            return rows == stored && letters == refused
        }
        #expect(areThere, "\(seen)")
        return areThere
    }
}
