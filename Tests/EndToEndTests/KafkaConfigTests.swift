import Foundation
import SluiceKafka
import Testing

@Suite(.timeLimit(.minutes(5))) struct `sluice serve --kafka-config` {
    private static let app = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Examples/AirportOps/app").standardized.path

    /// What a gateway ends with before it has asked PostgreSQL for anything, which would take half a minute here.
    private static func refusal(_ options: [String], environment: [String: String] = [:]) async throws -> String {
        let arguments = ["serve", "--app", app, "--postgres", "host=127.0.0.1 port=1", "--port", "0", "--admin-port", "0"]
        let program = try Program("sluice", arguments + options, environment: environment)
        #expect(await program.end(within: 20) == .exit(78), "\(program.said)")
        return program.said
    }

    @Test func `refuses a file that is wrong at once, by line and without what stands there`() async throws {
        let folder = try DataFolder()
        let file = folder.path + "/kafka.conf"
        let kafka = ["--kafka", "127.0.0.1:1", "--kafka-config", file]
        #expect(try await Self.refusal(kafka).contains("\(file): this file cannot be read: it does not exist."))
        func write(_ text: String) throws { try text.write(toFile: file, atomically: true, encoding: .utf8) }
        try write("security.protocol=ssl\nssl.key.passwort=hunter2\n")
        let unknown = try await Self.refusal(kafka)
        #expect(unknown.contains("config-invalid (901): \(file):2: ") && unknown.contains("ssl.key.passwort"), "\(unknown)")
        try write("security.protocol=sasl_ssl\nsasl.mechanism=hunter2\n")
        let refused = try await Self.refusal(kafka)
        #expect(refused.contains("\(file): a Kafka client cannot be created: Unsupported SASL mechanism"), "\(refused)")
        #expect(!unknown.contains("hunter2") && !refused.contains("hunter2"))

        // There are no brokers, or two lists of them.
        let alone = try await Self.refusal([], environment: ["SLUICE_KAFKA_CONFIG": file])
        #expect(alone.contains("\(file): it has settings for Kafka, but no Kafka is named."), "\(alone)")
        try write("client.id=a\nbootstrap.servers=127.0.0.1:2\n")
        #expect(try await Self.refusal(kafka).contains("\(file):2: these brokers differ from those of --kafka"))
    }

    @Test func `names the brokers in the file`() async throws {
        let folder = try DataFolder()
        let app = "airport-\(UUID().uuidString.prefix(8).lowercased())"
        let broker = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        let file = folder.path + "/kafka.conf"
        try "# both kinds of clients\nbootstrap.servers = \(broker)\nlinger.ms = 2\nfetch.min.bytes = 1\n"
            .write(toFile: file, atomically: true, encoding: .utf8)
        try await ServedGateways.with(try folder.app(named: app).path, kafkaFile: file) { gateways in
            // What the embedded log would not make.
            let admin = try KafkaAdmin(KafkaConfiguration(bootstrapServers: broker))
            #expect(try await admin.partitionCount(of: "\(app).progress") == 1)
            await admin.close()
            #expect(!gateways.all.contains { $0.said.contains("linger.ms") || $0.said.contains("fetch.min.bytes") })
        }
    }
}
