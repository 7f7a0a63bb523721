import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePipeline
import SluicePorts
import SluiceValues
import SluiceWire
import TestSupport
import Testing

/// Change topics that take smaller records than the gateway would write.
@Suite(.timeLimit(.minutes(5))) struct `Objects that a topic does not take` {
    /// No compression makes it smaller.
    private static func text(_ count: Int, seed: UInt64) -> String {
        var random = SplitMix64(seed: seed)
        let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".utf8)
        return String(decoding: (0..<count).map { _ in letters[random.below(64)] }, as: UTF8.self)
    }

    private static func insert(_ key: String, _ title: String = "small") -> String {
        "INSERT INTO orders (_id, store, title) VALUES ('\(key)', 'north', '\(title)')"
    }

    private static func order(_ key: String, title: String) -> ObjectChange {
        TestSession.order(key, ["store": .string("north"), "title": .string(title), "size": .int(1)])
    }

    private static func warnings(_ gateway: RunningGateway, admin: Bool = true) async throws -> [String] {
        let answer = try await gateway.request("GET", "/ready", admin: admin)
        #expect(answer.status == 200, "\(answer)")
        return (answer.json["warnings"]?.array ?? []).compactMap { $0["warning"]?.string }
    }

    @Test func `are undone or quarantined by a bound that the start and the admin port name`() async throws {
        try await KafkaShop.with { shop in
            try await shop.run { gateway in
                // Topics of the gateway's own take whatever it writes.
                let (warnings, bound) = (try await Self.warnings(gateway), try await shop.bound(of: "Order"))
                #expect(warnings.isEmpty && bound == 20 << 20, "\(warnings)")
            }
            try await shop.setBound(of: "Order", 500_000)
            let log = LinesOfLog()
            try await shop.run(logger: Logger(label: "test") { _ in log }) { gateway in
                let warnings = try await Self.warnings(gateway)
                #expect(
                    warnings.count == 1 && warnings.first?.contains("\(shop.app).Order accepts records of 500000 bytes") == true,
                    "\(warnings)")
                #expect(try await Self.warnings(gateway, admin: false).isEmpty)
                #expect(log.lines.contains { $0.message == "Topics accept smaller records than the gateway needs." })

                let session = try await gateway.openSession(["Order"])
                try await session.subscribe(1, [("Order", "store == 'north'")])
                let changes = [
                    Self.order("large", title: Self.text(300_000, seed: 1)), Self.order("fits", title: Self.text(100_000, seed: 2)),
                ]
                try await session.upload(1, changes)
                try await session.receive { $0.acknowledged == 1 }
                let compensation = try #require(session.compensations.first)
                #expect(session.compensations.count == 1 && compensation.object.key == .string("large"), "\(session.compensations)")
                #expect(compensation.error.code == .compensatingWrite && compensation.error.message.contains("KiB"), "\(compensation)")
                #expect(try await gateway.count("SELECT count(*) FROM orders") == 1)

                try await gateway.sql(Self.insert("quarantined", Self.text(300_000, seed: 3)) + ";" + Self.insert("after"))
                try await session.receive { $0.keys("Order") == ["fits", "after"] }
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.quarantine WHERE key = 'quarantined'", is: 1))
                // The other classes keep their bound.
                #expect(try await gateway.metric("sluice_refused_records_total") == 0)
                #expect(session.error == nil)
            }
        }
    }

    /// The bound is read every minute; until then brokers refuse.
    @Test func `are quarantined with the brokers' words, and publishing goes on`() async throws {
        try await KafkaShop.with { shop in
            let log = LinesOfLog()
            try await shop.run(logger: Logger(label: "test") { _ in log }) { gateway in
                let session = try await gateway.openSession(["Order"])
                try await session.subscribe(1, [("Order", "store == 'north'")])
                try await gateway.sql(Self.insert("before"))
                try await session.receive { $0.keys("Order") == ["before"] }
                try await shop.setBound(of: "Order", 500_000)

                try await gateway.sql(Self.insert("poison", Self.text(2_000_000, seed: 4)))
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.quarantine WHERE key = 'poison'", is: 1))
                let reason = try await gateway.texts("SELECT reason FROM sluice.quarantine").first
                #expect(
                    reason?.contains("too large") == true && reason?.contains("\(shop.app).Order") == true, "\(String(describing: reason))")
                try await gateway.untilMetric("sluice_refused_records_total", is: 1)
                for number in 0..<20 { try await gateway.sql(Self.insert("after \(number)")) }
                let wanted = Set(["before"] + (0..<20).map { "after \($0)" })
                let again = try await gateway.openSession(["Order"])
                try await again.subscribe(1, [("Order", "store == 'north'")])
                try await again.receive { $0.keys("Order") == wanted }
                #expect(try await gateway.request("GET", "/ready", admin: true).status == 200)
                // One for each change, and at most one in the place of the refused one.
                #expect(try await shop.records(of: "Order") <= 1 + 20 + 1)
                #expect(try await gateway.metric("sluice_refused_records_total") == 1)

                // A device that writes as large an object is told so.
                try await again.upload(1, [Self.order("mine", title: Self.text(1_900_000, seed: 5))])
                try await again.receive { $0.acknowledged == 1 && $0.compensations.count == 1 }
                #expect(again.compensations.first?.object.key == .string("mine"))
                // Shrinking the row releases it, and deleting it would as well.
                try await gateway.sql("UPDATE orders SET title = 'small' WHERE _id = 'poison'")
                try await again.receive { $0.keys("Order") == wanted.union(["poison"]) }
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.quarantine", is: 0))
            }
            #expect(!log.lines.contains { $0.message == "Publishing stopped and is restarted." }, "\(log.lines)")
        }
    }

    @Test func `are told apart from topics that have too few replicas`() async throws {
        let shop = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
        let configuration = KafkaConfiguration(bootstrapServers: shop, clientID: "test")
        let topic = "replicas-\(UUID().uuidString.prefix(13).lowercased())"
        let admin = try KafkaAdmin(configuration)
        try await admin.create([KafkaTopic(topic, partitions: 1, settings: ["min.insync.replicas": "2"])])
        let log = try KafkaLog(configuration, logger: Logger.quiet)
        var batch = LogBatch(topics: [topic])
        batch.append(topic: 0, partition: 0, key: [1], value: [1])
        // Brokers say nothing: the library tries again until the time is over.
        let error = await log.explain(SluiceError(.logDelivery, "A record was not acknowledged: timed out."), of: batch)
        #expect(error.code == .logReplicas && error.message.contains("\(topic)[0]"), "\(error)")
        let other = await log.explain(SluiceError(.logTopic, "A topic is missing."), of: batch)
        #expect(other.code == .logTopic)
        try await admin.delete([topic])
        await log.close()
        await admin.close()
    }
}

extension KafkaShop {
    private func topic(of type: String) -> String { Topics(app: app).changes(of: type) }

    /// Bytes of the largest record that a class's change topic takes.
    fileprivate func bound(of type: String) async throws -> Int? {
        try await withLog { try await $0.recordBounds(of: [topic(of: type)]) }[topic(of: type)]
    }

    /// The number of records in a class's change topic.
    fileprivate func records(of type: String) async throws -> Int64 {
        let admin = try KafkaAdmin(KafkaConfiguration(bootstrapServers: kafka, clientID: "test"))
        let marks = try await admin.watermarks(ofTopic: topic(of: type))
        await admin.close()
        return marks.reduce(0) { $0 + $1.high }
    }

    /// Sets `max.message.bytes` of a class's change topic, as an operator does.
    fileprivate func setBound(of type: String, _ bytes: Int) async throws {
        let program = """
            import sys
            from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
            entry = ConfigEntry("max.message.bytes", sys.argv[3], incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource("topic", sys.argv[2], incremental_configs=[entry])
            client = AdminClient({"bootstrap.servers": sys.argv[1]})
            for answer in client.incremental_alter_configs([resource]).values():
                answer.result()
            """
        #expect(try await Program.python(["-c", program, kafka, topic(of: type), "\(bytes)"]) == 0)
    }
}
