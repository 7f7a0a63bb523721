import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePorts
import SluiceTools
import SluiceWire
import Testing

/// What plugins are asked and ask themselves, and what waits for them, beside what does not.
@Suite(.timeLimit(.minutes(5))) struct `What waits for a plugin` {
    /// - Parameter milliseconds: for each call.
    static func files(milliseconds: Int = 1_000) throws -> [String: String] {
        let plugin = Built.plugin("FaultyC")
        let list = """
            { "plugins": [
                { "file": "\(plugin)", "sha256": "\(try PluginList.sha256(of: plugin))", "deadline_ms": \(milliseconds) }
            ] }
            """
        return FaultyApp.files.merging(["plugins.json": list]) { $1 }
    }

    private static func reading(_ key: String, store: String = "north") -> ObjectChange {
        let values: [String: Value] = ["store": .string(store), "value": .double(1)]
        return ObjectChange(object: ObjectKey(type: "Reading", key: .string(key)), kind: .create, values: values)
    }

    /// More than there are connections, each of which asks for something itself while it is judged.
    @Test func `is judged when a plugin asks about users, from however many devices it comes at once`() async throws {
        try await RunningGateway.with(files: try Self.files()) { gateway in
            try await withThrowingTaskGroup(of: Int.self) { group in
                let token = try await gateway.anonymousToken()
                for number in 0..<16 {
                    group.addTask {
                        let session = try await gateway.session(token: token)
                        try await session.hello(["Order"])
                        try await session.subscribe(1, [("Order", "store == 'north'")])
                        for write in UInt64(1)...5 {
                            let values: [String: Value] = ["store": .string("north"), "title": .string("do-look"), "size": .int(1)]
                            try await session.upload(write, [TestSession.order("\(number)-\(write)", values)])
                        }
                        try await session.receive { $0.acknowledged == 5 }
                        defer { session.close() }
                        return session.compensations.count
                    }
                }
                #expect(try await group.reduce(0, +) == 0)
            }
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 80)
            #expect(try await gateway.metric("sluice_plugin_restarts_total") == 0)
        }
    }

    @Test func `is not what else a session writes, and is acknowledged once when the rules can decide`() async throws {
        let folder = try Phone.Folder()
        let awaited = folder.url.appendingPathComponent("awaited").path
        let log = LinesOfLog()
        let logger = Logger(label: "test") { _ in log }
        try await RunningGateway.with(files: try Self.files(), logger: logger) { gateway in
            let session = try await gateway.openSession(["Order", "Reading"])
            try await session.subscribe(1, [("Order", "store == 'north'")])
            try await session.sendIngest(1, [Self.reading("a", store: "do-await:\(awaited);")])
            await log.wait(for: "Asymmetric objects of a device wait for the rules or the log.", about: "plugin-failed")
            try await session.upload(1, [TestSession.order("mine", ["store": .string("north"), "size": .int(1)])])
            try await session.receive { $0.acknowledged == 1 && $0.keys("Order") == ["mine"] }
            #expect(session.ingested.number == 0 && session.error == nil)
            try folder.put("", at: "awaited")
            try await session.receive { $0.ingested.number == 1 }
            #expect(session.ingested.refused.isEmpty && session.error == nil)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.ingest_rejected") == 0)
            session.close()
        }
    }

    @Test func `lands when its records are in their topic, and alone is refused when one is larger than brokers take`() async throws {
        try await KafkaShop.with { shop in
            try await shop.run(files: try Self.files(milliseconds: 10_000)) { gateway in
                let lines = ["do-keep", "plain", "do-keep too much", "more"].map { #"{"_id":"\#($0)","store":"north","value":1}"# }
                let token = try await gateway.anonymousToken()
                let answer = try await gateway.ingest(Array(lines.joined(separator: "\n").utf8), token: token)
                #expect((answer.status, answer.accepted) == (200, 4), "\(answer)")
                #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 3))
                let refused = try await gateway.texts("SELECT code || ' ' || (object::jsonb ->> '_id') FROM sluice.ingest_rejected")
                #expect(refused == ["\(ErrorCode.logRecordTooLarge.rawValue) do-keep too much"])
                #expect(try await shop.kept("seen") >= 1)
            }
        }
    }
}

extension KafkaShop {
    /// How many records plugins have in a stream.
    fileprivate func kept(_ stream: String) async throws -> Int64 {
        let log = try KafkaLog(KafkaConfiguration(bootstrapServers: kafka, clientID: "test"), logger: Logger.quiet)
        let ends = try await log.ends(of: (Int32(0)..<4).map { LogPartition("\(app).records.\(stream)", $0) })
        await log.close()
        return ends.values.reduce(0, +)
    }
}
