import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePipeline
import SluiceSDK
import Testing

/// The shop under a name of its own, so that its topics are not those of another test.
struct AppLog: Sendable {
    let name = "shop-\(UUID().uuidString.prefix(13).lowercased())"
    let broker: String

    init() throws {
        broker = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
    }

    var files: [String: String] {
        ShopApp.files.merging(["realm_config.json": #"{ "app_id": "\#(name)", "name": "shop" }"#]) { $1 }
    }

    /// Deletes what docs/operations.md says, or all that there is.
    func deleteTopics(withIngest: Bool = false) async throws {
        let topics = Topics(app: name)
        let admin = try KafkaAdmin(KafkaConfiguration(bootstrapServers: broker, clientID: "test"))
        try await admin.delete(
            [topics.progress, topics.changes(of: "Order"), topics.changes(of: "Tag")]
                + (withIngest ? [topics.ingest(of: "Reading"), topics.deadLetters] : []))
        await admin.close()
    }
}

/// Kafka is not history that anything depends on: PostgreSQL has all that is authoritative.
@Suite(.serialized, .timeLimit(.minutes(5))) struct `A log that is lost` {
    private static func send(_ key: String, _ gateway: RunningGateway) async throws {
        let session = try await gateway.openSession(["Order", "Reading"])
        let values: [String: Value] = ["store": .string("north"), "value": .double(1.5)]
        try await session.ingest(1, [ObjectChange(object: ObjectKey(type: "Reading", key: .string(key)), kind: .create, values: values)])
        session.close()
    }

    @MainActor
    @Test(arguments: [false, true])
    func `is made anew from the slot and the tables, and devices go on without a reset`(isAllLost: Bool) async throws {
        let log = try AppLog()
        try await RestorableServer.with { server in
            var phones: [String: Phone] = [:]
            try await server.run(log.files, kafka: log.broker) { gateway in
                try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 4) i")
                for name in ["idle", "writing", "away"] {
                    phones[name] = try await Phone.open(gateway, orders: ["store == 'north'"], mode: .manual())
                }
                try phones["writing"]?.add("early")
                for phone in phones.values { try await phone.wait { $0.count == 5 } }
                phones["away"]?.session.suspend()
                // Of this the lost log had what one device has not seen.
                try await gateway.sql("UPDATE orders SET size = 50 WHERE _id = 'n1'; DELETE FROM orders WHERE _id = 'n2'")
                for name in ["idle", "writing"] { try await phones[name]?.settles(gateway) }
                try await Self.send("before", gateway)
                #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 1))
            }
            for (name, phone) in phones { try phone.add("offline, \(name)") }
            try await log.deleteTopics(withIngest: isAllLost)
            try await server.sql(
                "UPDATE orders SET size = 30 WHERE _id = 'n3'; INSERT INTO orders (_id, store, size) VALUES ('sql', 'north', 7)")
            try await server.run(log.files, kafka: log.broker) { gateway in
                phones["away"]?.session.resume()
                for phone in phones.values { try await phone.session.wait(for: .upload) }
                for phone in phones.values { try await phone.settles(gateway) }
                let keys: Set = ["n1", "n3", "n4", "early", "sql", "offline, idle", "offline, writing", "offline, away"]
                #expect(phones["away"]?.keys == keys)
                // Both ways, by the topics that the gateway made.
                try phones["away"]?.add("late")
                try await phones["away"]?.session.wait(for: .upload)
                try await gateway.sql("DELETE FROM orders WHERE _id = 'n4'; UPDATE orders SET size = 8 WHERE _id = 'sql'")
                for phone in phones.values { try await phone.settles(gateway) }
                try await Self.send("after", gateway)
                #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 2))
                for (name, phone) in phones { #expect(phone.said.all.isEmpty, "\(name): \(phone.said.all)") }
            }
            try await log.deleteTopics(withIngest: true)
        }
    }
}
