import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluiceValues
import Testing

/// Objects that a program in another language writes to `<app>.ingest.<Type>`: by the example in Examples/Ingest.
@Suite(.timeLimit(.minutes(5))) struct `A pipeline that writes to Kafka` {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..").standardized

    private static func produce(_ lines: [String], _ format: String, to topic: String, at kafka: String) async throws {
        let program = root.appendingPathComponent("Examples/Ingest/produce.py").path
        let code = try await Program.python(
            [program, "--brokers", kafka, "--topic", topic, "--format", format], lines.joined(separator: "\n") + "\n")
        #expect(code == 0)
    }

    private static func with(
        _ body: @escaping @Sendable (RunningGateway, _ topic: String, _ kafka: String) async throws -> Void
    ) async throws {
        let kafka = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        let app = "shop-\(UUID().uuidString.prefix(8).lowercased())"
        let files = ShopApp.files.merging(["realm_config.json": #"{ "app_id": "\#(app)", "name": "shop" }"#]) { $1 }
        try await RunningGateway.deploy { deployment in
            try await deployment.run(files, kafka: kafka) { gateway in try await body(gateway, "\(app).ingest.Reading", kafka) }
        }
    }

    @Test func `may be the one line that the manual has`() async throws {
        let manual = try String(contentsOf: Self.root.appendingPathComponent("docs/ingest.md"), encoding: .utf8)
        let block = try #require(manual.components(separatedBy: "```").first { $0.contains("kcat -P") })
        try await Self.with { (gateway, topic, kafka) async throws in
            let command = block.replacingOccurrences(of: "broker:9092", with: kafka)
                .replacingOccurrences(of: "shop.ingest.Reading", with: topic)
            #expect(try await Program.run(URL(fileURLWithPath: "/bin/sh"), ["-c", command]) == 0)
            #expect(try await gateway.eventually("SELECT count(*) FROM readings WHERE _id = 'a' AND value = 1.5", is: 1))
        }
    }

    @Test(arguments: ["json", "protobuf"]) func `finds its objects in the table, under the same rules`(format: String) async throws {
        try await Self.with { (gateway, topic, kafka) async throws in
            let good = (0..<200).map { #"{"_id": "\#(format)-\#($0)", "store": "north é", "value": \#($0).25}"# }
            let bad = [
                #"{"_id": "none", "store": "north"}"#, #"{"_id": "odd", "store": "north", "value": "warm"}"#,
                #"{"_id": "more", "store": "north", "value": 1.5, "colour": "red"}"#,
            ]
            try await Self.produce(Array(good[..<100]) + bad + Array(good[100...]), format, to: topic, at: kafka)
            #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 200))
            #expect(try await gateway.count("SELECT count(*) FROM readings WHERE store = 'north é' AND value = 77.25") == 1)
            #expect(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected", is: 3))
            // Whatever it came as, it is kept as JSON.
            #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected WHERE object::jsonb ->> 'colour' = 'red'") == 1)
            // Again, as after an answer that was lost: nothing lands twice.
            try await Self.produce(good + [#"{"_id": "last", "store": "south", "value": 1.0}"#], format, to: topic, at: kafka)
            #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 201))
        }
    }

    @Test func `is told in the dead letters of records that nobody can read, and the others go on`() async throws {
        try await Self.with { (gateway, topic, kafka) async throws in
            let script = """
                import sys
                from confluent_kafka import Producer
                producer = Producer({"bootstrap.servers": "\(kafka)"})
                for number, (kind, value) in enumerate([
                    ("application/protobuf", b"\\xff\\xff\\xff"), ("application/x-avro", b"{}"), ("application/json", b"\\x00\\xff"),
                    ("application/protobuf", b""), ("application/json; charset=utf-8", b'{"_id": "fine", "store": "n", "value": 1.5}'),
                ]):
                    producer.produce("\(topic)", key=b"k", value=value, partition=0, headers={"content-type": kind})
                sys.exit(producer.flush(20))
                """
            #expect(try await Program.python(["-c", script], "") == 0)
            #expect(try await gateway.eventually("SELECT count(*) FROM readings WHERE _id = 'fine'", is: 1))
            #expect(
                try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected WHERE code = \(ErrorCode.ingestMalformed.rawValue)")
                    == 4)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected WHERE reason LIKE '%application/x-avro%'") == 1)
        }
    }

    @Test func `and HTTP are told apart by nothing, and HTTP says where its objects are`() async throws {
        try await Self.with { gateway, topic, _ in
            let token = try await gateway.anonymousToken()
            let body = (0..<300).map { #"{"_id": "h\#($0)", "store": "north", "value": 1.5}"# }.joined(separator: "\n")
            let reply = try await gateway.ingest(Array(body.utf8), token: token, ["Accept": "application/x-ndjson"])
            let places = reply.lines.dropLast().map { [$0["partition"]?.int ?? -1, $0["offset"]?.int ?? -1] }
            #expect(Set(places).count == 300)
            // A new topic: the offsets of each partition count from 0.
            for (_, offsets) in Dictionary(grouping: places, by: { $0[0] }) {
                #expect(offsets.map { $0[1] }.sorted() == (0..<offsets.count).map { Int64($0) })
            }
            #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 300))
        }
    }
}
