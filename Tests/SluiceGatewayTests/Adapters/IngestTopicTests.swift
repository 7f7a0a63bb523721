import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePorts
import Testing

@Suite(.timeLimit(.minutes(5))) struct `An ingest topic` {
    @Test func `that was made anew is read from its beginning, and what is in the table already stays once`() async throws {
        let kafka = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        let app = "shop-\(UUID().uuidString.prefix(8).lowercased())"
        let place = LogPartition("\(app).ingest.Reading", 0)
        try await GatewayDatabase.with { conninfo in
            let configuration = GatewayConfiguration(
                app: try ShopApp.configuration(files: ["realm_config.json": #"{ "app_id": "\#(app)", "name": "shop" }"#]),
                postgres: conninfo, kafka: kafka, network: .init(port: 0, adminPort: 0))
            let outside = RunningGateway(url: "", adminURL: "", conninfo: conninfo)
            try await outside.sql(ShopApp.tables)
            try await RunningGateway.run(configuration) { gateway in
                try await Self.send(["a", "b"], to: place, at: kafka)
                #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 2))
            }
            // As if the topic had held a thousand records more before somebody deleted it.
            try await outside.sql("UPDATE sluice.ingest_offset SET next_offset = 1000 WHERE topic = '\(place.topic)' AND partition = 0")
            try await RunningGateway.run(configuration) { gateway in
                try await Self.send(["c"], to: place, at: kafka)
                #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 3))
                #expect(try await gateway.eventually("SELECT next_offset FROM sluice.ingest_offset WHERE partition = 0", is: 3))
            }
        }
    }

    private static func send(_ keys: [String], to place: LogPartition, at address: String) async throws {
        let log = try KafkaLog(KafkaConfiguration(bootstrapServers: address, clientID: "test"), logger: Logger.quiet)
        var batch = LogBatch(topics: [place.topic])
        for key in keys {
            batch.append(
                topic: 0, partition: place.partition, key: key.utf8, value: #"{"_id": "\#(key)", "store": "north", "value": 1.5}"#.utf8)
        }
        _ = try await log.append(batch)
        await log.close()
    }
}
