import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePorts
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `Asymmetric objects that are refused` {
    @Test func `reach the dead-letter topic, and their table when they are sent again`() async throws {
        try await KafkaShop.with { shop in
            try await shop.sql("ALTER TABLE readings ADD CONSTRAINT mild CHECK (value < 100)")
            try await shop.run { gateway in
                let line = #"{"_id":"a","store":"north","value":1000}"#
                let answer = try await gateway.request("POST", "/v1/ingest/Reading", line, token: try await gateway.anonymousToken())
                #expect(answer.status == 200)
                let letter = try #require(try await shop.deadLetters(1).first)
                #expect(letter["type"] == .string("Reading") && letter["code"]?.int == Int64(ErrorCode.ingestRejected.rawValue))
                #expect(letter["reason"]?.string?.contains("mild") == true && letter["offset"]?.int == 0, "\(letter.text)")
                #expect(letter["source"]?.string?.hasPrefix("\(shop.app).ingest.Reading/") == true)
                #expect(try JSON.parse(Array((letter["object"]?.string ?? "").utf8))["_id"] == .string("a"))
                // It is no better as long as nothing has changed: it comes back, with an id of its own.
                let id = try #require(letter["id"]?.int)
                #expect(try await Self.replay(gateway).json["sent"] == .int(1))
                #expect(try await gateway.eventually("SELECT min(id) FROM sluice.ingest_rejected", is: id + 1))
                try await shop.sql("ALTER TABLE readings DROP CONSTRAINT mild")
                #expect(try await Self.replay(gateway, #"{"type": "Reading", "code": 999}"#).json["sent"] == .int(0))
                #expect(try await Self.replay(gateway, #"{"type": "Reading", "ids": [\#(id + 1)]}"#).json["sent"] == .int(1))
                #expect(try await gateway.eventually("SELECT count(*) FROM readings WHERE value = 1000", is: 1))
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected", is: 0))
                #expect(try await shop.deadLetters(2).map { $0["id"]?.int } == [id, id + 1])
            }
        }
    }

    @Test func `are kept to the byte, and stay when they cannot be read`() async throws {
        try await KafkaShop.with { shop in
            try await shop.run { gateway in
                try await shop.produce([[0x7B, 0xFF, 0x00], Array(#"{"_id": "b", "store": "north", "value": 1}"#.utf8)], partition: 3)
                #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 1))
                let listed = try await gateway.request("GET", "/admin/v1/ingest/rejected?type=Reading", admin: true)
                let row = try #require(listed.json["rows"]?.array?.first)
                #expect(listed.json["count"] == .int(1) && row["bytes"] == .string("7bff00"), "\(listed)")
                #expect(row["code"]?.int == Int64(ErrorCode.ingestMalformed.rawValue))
                let answer = try await Self.replay(gateway)
                #expect(answer.json["sent"] == .int(0) && answer.json["refused"]?.array?.first?["id"] == row["id"], "\(answer)")
                #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected") == 1)
                let bad = try await Self.replay(gateway, #"{"ids": ["one"]}"#)
                #expect(bad.status == 400)
            }
        }
    }

    /// As text and bytes it would be larger than a producer takes.
    @Test func `are told of when they are larger than an object may be, cut in the topic and whole in the table`() async throws {
        try await KafkaShop.with { shop in
            try await shop.run { gateway in
                let large = [0xFF] + [UInt8](repeating: UInt8(ascii: "a"), count: 10 << 20)
                // Each of its characters is two in a letter.
                let quotes = String(repeating: #"\""#, count: 4_800_000)
                let long = Array(#"{"_id": "\#(quotes)", "store": "north", "value": 1}"#.utf8)
                try await shop.produce([large, long, Array("nothing".utf8)], partition: 5)
                try #require(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected", is: 3))
                let codes = try await gateway.texts("SELECT code FROM sluice.ingest_rejected ORDER BY log_offset")
                #expect(codes == [ErrorCode.ingestTooLarge, .ingestTooLarge, .ingestMalformed].map { "\($0.rawValue)" })
                #expect(try await gateway.count("SELECT max(octet_length(bytes)) FROM sluice.ingest_rejected") == (10 << 20) + 1)
                let letters = try await shop.deadLetters(3)
                try #require(letters.count == 3)
                #expect(letters.map { $0["cut"] } == [true, true, nil] && letters.allSatisfy { $0.utf8.count <= Limits.deadLetterBytes })
                #expect(letters.map { $0["bytes"] } == [nil, nil, nil])
                #expect(letters[1]["object"]?.string?.hasPrefix(#"{"_id": "\"\""#) == true && letters[2]["object"] == .string("nothing"))
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected WHERE NOT published", is: 0))
            }
        }
    }

    private static func replay(_ gateway: RunningGateway, _ body: String = "{}") async throws -> RunningGateway.Answer {
        try await gateway.request("POST", "/admin/v1/ingest/replay", body, admin: true)
    }
}

@Suite(.timeLimit(.minutes(5))) struct `Gateways that share an ingest topic` {
    @Test func `have its partitions between them, and those of one that ends`() async throws {
        try await KafkaShop.with { shop in
            try await shop.run { first in
                try await shop.run { _ in
                    #expect(try await first.eventually(Self.readers(shop.app), is: 2))
                    try await shop.produceEverywhere("a")
                    #expect(try await first.eventually("SELECT count(*) FROM readings", is: 16))
                }
                #expect(try await first.eventually(Self.readers(shop.app), is: 1))
                try await shop.produceEverywhere("b")
                #expect(try await first.eventually("SELECT count(*) FROM readings", is: 32))
                #expect(try await first.eventually("SELECT sum(next_offset) FROM sluice.ingest_offset", is: 32))
                #expect(try await first.count("SELECT count(*) FROM sluice.ingest_rejected") == 0)
                // Who cannot write lags behind, and says by how much.
                let other = try await PostgresConnection.connect(shop.conninfo)
                _ = try await other.script("BEGIN; LOCK TABLE readings IN ACCESS EXCLUSIVE MODE")
                try await shop.produceEverywhere("b")
                try await first.untilMetric("sluice_ingest_lag_records{type=\"Reading\"}", is: 16)
                _ = try await other.script("ROLLBACK")
                await other.close()
                try await first.untilMetric("sluice_ingest_duplicates_total{type=\"Reading\"}", is: 16)
                #expect(try await first.count("SELECT count(*) FROM readings") == 32)
            }
        }
    }

    /// How many connections hold eight or sixteen partitions of the topic each.
    private static func readers(_ app: String) -> String {
        """
        SELECT count(*) FROM (SELECT pid FROM pg_locks JOIN generate_series(0, 15) AS p
            ON (classid::bigint << 32) | objid::bigint = hashtextextended('sluice.ingest \(app).ingest.Reading/' || p, 0)
        WHERE locktype = 'advisory' AND granted GROUP BY pid HAVING count(*) IN (8, 16)) AS readers
        """
    }
}

/// The shop with Kafka, under a name of its own.
struct KafkaShop: Sendable {
    let app: String
    let conninfo: String
    let kafka: String

    static func with<R: Sendable>(_ body: @escaping @Sendable (KafkaShop) async throws -> R) async throws -> R {
        let kafka = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        return try await RunningGateway.deploy { deployment in
            try await body(
                KafkaShop(app: "shop-\(UUID().uuidString.prefix(8).lowercased())", conninfo: deployment.conninfo, kafka: kafka))
        }
    }

    /// - Parameters:
    ///   - files: of the app, to add or replace.
    ///   - plugins: names of plugins built with the tests.
    func run<R: Sendable>(
        files: [String: String] = [:], plugins: [String] = [], logger: Logger? = nil, environment: any Environment = SystemEnvironment(),
        _ body: @escaping @Sendable (RunningGateway) async throws -> R
    ) async throws -> R {
        let named = files.merging(["realm_config.json": #"{ "app_id": "\#(app)", "name": "shop" }"#]) { $1 }
        let configuration = GatewayConfiguration(
            app: try ShopApp.configuration(files: try RunningGateway.listing(plugins.map(Built.plugin), in: named)),
            postgres: conninfo, kafka: kafka, network: .init(port: 0, adminPort: 0))
        return try await RunningGateway.run(configuration, logger: logger, environment: environment, body)
    }

    func sql(_ text: String) async throws { try await RunningGateway(url: "", adminURL: "", conninfo: conninfo).sql(text) }

    /// Records straight into the ingest topic, as another producer would write them.
    func produce(_ records: [[UInt8]], partition: Int32) async throws {
        try await produce(records.map { (partition, $0) })
    }

    /// One object into each of the sixteen partitions.
    func produceEverywhere(_ prefix: String) async throws {
        try await produce((Int32(0)..<16).map { ($0, Array(#"{"_id": "\#(prefix)\#($0)", "store": "north", "value": 1}"#.utf8)) })
    }

    /// How many records the ingest topic has.
    func records() async throws -> Int64 {
        let places = (Int32(0)..<16).map { LogPartition("\(app).ingest.Reading", $0) }
        return try await withLog { try await $0.ends(of: places) }.values.reduce(0, +)
    }

    func produce(_ records: [(partition: Int32, value: [UInt8])]) async throws {
        var batch = LogBatch(topics: ["\(app).ingest.Reading"])
        for record in records { batch.append(topic: 0, partition: record.partition, key: [UInt8](), value: record.value) }
        // The topic is there: a gateway that is ready has made it.
        try await withLog { [batch] in _ = try await $0.append(batch) }
    }

    /// The first objects of the dead-letter topic, each once, waited for.
    func deadLetters(_ count: Int) async throws -> [JSON] {
        try await withLog { log in
            let reader = try await log.makeReader()
            try await reader.assign([LogPartition("\(app).ingest-rejected", 0): 0])
            var letters: [JSON] = []
            var fetch = LogFetch()
            let end = ContinuousClock.now + patience
            while letters.count < count, ContinuousClock.now < end {
                fetch = try await reader.next(fetch, milliseconds: 500)
                for entry in fetch.entries {
                    let letter = try JSON.parse(Array(fetch.arena[entry.value]))
                    if !letters.contains(letter) { letters.append(letter) }
                }
            }
            await reader.close()
            return letters
        }
    }

    func withLog<R: Sendable>(_ body: @Sendable (KafkaLog) async throws -> R) async throws -> R {
        let log = try KafkaLog(KafkaConfiguration(bootstrapServers: kafka, clientID: "test"), logger: Logger.quiet)
        do {
            let result = try await body(log)
            await log.close()
            return result
        } catch {
            await log.close()
            throw error
        }
    }
}
