import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePipeline
import SluicePostgres
import TestSupport
import Testing

/// Random apps, subscriptions, rules and writers; after a barrier every replica must be what PostgreSQL holds of its
/// subscriptions and its user's rules, value by value (G3, G4), and at no moment anything else (G5).
/// Two of the users have a file of a Realm SDK instead of a replica (`OracleRealmClient`). It is compared at the barriers alone.
///
/// `SLUICE_ORACLE_RUNS` plays so many instead of the usual number, and `SLUICE_SOAK=1` 5,000. `SLUICE_ORACLE_SEED` plays one seed, so many
/// times, and prints what happens: what a play finds may depend on time.
@Suite(.serialized) struct OracleTests {
    private static let seeds = seeds("ORACLE", usually: 20, soak: 5_000)
    /// Those in which the rules are edited all have: `SLUICE_LEAK_RUNS`, `SLUICE_LEAK_SEED`.
    private static let leakSeeds = seeds("LEAK", usually: 5, soak: 300)

    private static func seeds(_ name: String, usually: Int, soak: Int) -> [UInt64] {
        if let seed = ProcessInfo.processInfo.environment["SLUICE_\(name)_SEED"].flatMap({ UInt64($0) }) {
            return Array(repeating: seed, count: runs(name, usually: 1, soak: 1))
        }
        // Seeds that eight divides use two gateways over Kafka: every draw has one.
        return [8] + TestSupport.seeds(exactly: runs(name, usually: usually, soak: soak) - 1)
    }

    /// Prints a step when one seed is run again.
    static func trace(_ text: @autoclosure () -> String) { if isTraced { print(text().replacing("\0", with: "\\0")) } }
    private static let isTraced = ["SLUICE_ORACLE_SEED", "SLUICE_LEAK_SEED"].contains { ProcessInfo.processInfo.environment[$0] != nil }

    @Test func `Scenario 42: whatever is written, subscribed, cut off and restarted, replicas are their view of the database`() async throws
    {
        try await Self.play(all: Self.seeds)
    }

    @Test func `nobody has more than the rules let them, while rules, roles, custom data and masks change under them`() async throws {
        try await Self.play(all: Self.leakSeeds, isEdited: true)
    }

    private static func play(all seeds: [UInt64], isEdited: Bool? = nil) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for first in 0..<min(width, seeds.count) {
                let own = stride(from: first, to: seeds.count, by: width).map { seeds[$0] }
                group.addTask { try await play(own, isEdited: isEdited) }
            }
            try await group.waitForAll()
        }
    }

    /// How many apps are played at a time: more find what a busy machine brings about.
    private static let width = ProcessInfo.processInfo.environment["SLUICE_ORACLE_WIDTH"].flatMap { Int($0) } ?? (isSoak ? 3 : 1)

    /// Plays one app after another in one database, which is cleared in between.
    private static func play(_ seeds: [UInt64], isEdited: Bool?) async throws {
        try await GatewayDatabase.with { conninfo in
            for seed in seeds {
                do {
                    try await OraclePlay(seed: seed, isEdited: isEdited).run(conninfo)
                } catch {
                    Issue.record(error, "seed \(seed)")
                }
                try await GatewayDatabase.clear(conninfo)
            }
        }
    }
}

/// One random app and what happens to it.
private struct OraclePlay: Sendable {
    let seed: UInt64
    let app: OracleApp
    /// Whether the rules are edited. It takes a second each time, so that few plays do.
    private let isEdited: Bool
    /// Whether two gateways share the devices, over Kafka, and a device that comes back finds either of them; otherwise there is one, with
    /// the embedded log. It takes seconds, so that the seeds that eight divides do.
    private var isShared: Bool { seed.isMultiple(of: 8) }
    private let random: SplitMix64

    /// - Parameter isEdited: nil leaves it to the seed.
    init(seed: UInt64, isEdited: Bool? = nil) throws {
        self.seed = seed
        var random = SplitMix64(seed: seed)
        app = try OracleApp(&random)
        let isPicked = random.chance(10)
        self.isEdited = isEdited ?? isPicked
        self.random = random
    }

    func run(_ conninfo: String) async throws {
        let (app, seed, random) = (app, seed, random)
        let name = isShared ? "oracle-\(UUID().uuidString.lowercased())" : "shop"
        let files = app.files.merging(["realm_config.json": #"{ "app_id": "\#(name)", "name": "oracle" }"#]) { $1 }
        let folder = isEdited ? try Phone.Folder() : nil
        for (path, text) in folder == nil ? [:] : files { try folder?.put(text, at: path) }
        let connection = try await PostgresConnection.connect(conninfo)
        _ = try await TableCatalog(schema: app.schema).create(connection)
        await connection.close()
        let configuration = GatewayConfiguration(
            app: try AppDirectory.read(files: files), directory: folder?.url.path, postgres: conninfo, kafka: isShared ? try broker() : nil,
            network: .init(port: 0, adminPort: 0))
        try await gateways(configuration) { gateways in
            var stage = OracleStage(gateways, app, random, "seed \(seed)", folder)
            try await stage.play()
        }
        if isShared { try await deleteTopics(of: name) }
    }

    private func gateways(
        _ configuration: GatewayConfiguration, _ body: @escaping @Sendable ([RunningGateway]) async throws -> Void
    ) async throws {
        let isShared = isShared
        try await RunningGateway.run(configuration) { first in
            guard isShared else { return try await body([first]) }
            try await RunningGateway.run(configuration) { try await body([first, $0]) }
        }
    }

    private func broker() throws -> String {
        try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
    }

    /// The broker is that of all tests, and hundreds of plays would fill it.
    private func deleteTopics(of name: String) async throws {
        let admin = try KafkaAdmin(KafkaConfiguration(bootstrapServers: try broker(), clientID: "test"))
        let topics = Topics(app: name)
        try await admin.delete([topics.progress] + app.classes.map { topics.changes(of: $0.name) })
        await admin.close()
    }
}
