import Foundation
import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceKafka
import SluicePipeline
import SluicePorts
import SluiceWire
import Testing

/// A session that goes on where the one before ended, with what the log has since.
@Suite(.timeLimit(.minutes(5))) struct `A session that comes back` {
    private static let fill = """
        INSERT INTO orders (_id, store, title, size)
        SELECT 'k' || g, (ARRAY['north', 'south'])[g % 2 + 1], 't', g FROM generate_series(1, 100) g
        """
    private static let changes = """
        UPDATE orders SET size = size + 1000 WHERE _id IN ('k4', 'k6');
        UPDATE orders SET store = 'south' WHERE _id = 'k8';
        UPDATE orders SET store = 'north' WHERE _id = 'k1';
        DELETE FROM orders WHERE _id = 'k10';
        BEGIN; INSERT INTO orders (_id, store, size) VALUES ('new', 'north', 7); UPDATE orders SET size = 8 WHERE _id = 'new'; COMMIT;
        INSERT INTO orders (_id, store, size) VALUES ('gone', 'north', 7); DELETE FROM orders WHERE _id = 'gone';
        """

    private static func files(_ app: String) -> [String: String] {
        var files = ShopApp.files
        files["realm_config.json"] = #"{ "app_id": "\#(app)", "name": "shop" }"#
        return files
    }

    private static func broker() throws -> String {
        try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_KAFKA"], "Run `make test`, which starts a broker.")
    }

    /// A session that has the north, and is over.
    private static func leave(
        _ gateway: RunningGateway, query: String = "store == 'north'"
    ) async throws -> (TestSession.File, token: String) {
        let token = try await gateway.anonymousToken()
        let session = try await gateway.session(token: token)
        try await session.hello()
        try await session.subscribe(1, [("Order", query)])
        session.close()
        #expect(session.brought.kept == 0)
        return (session.file, token)
    }

    private static func comeBack(
        _ gateway: RunningGateway, _ before: TestSession.File, _ token: String, query: String = "store == 'north'"
    ) async throws -> TestSession {
        let session = try await gateway.session(token: token)
        session.goOn(from: before)
        try await session.hello()
        try await session.subscribe(1, [("Order", query)])
        return session
    }

    /// Whether the session shows what PostgreSQL has.
    private static func expectEqual(
        _ session: TestSession, _ gateway: RunningGateway, _ condition: String = "store = 'north'",
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let pairs = (session.rows["Order"] ?? [:]).map { key, values in
            guard case .string(let id) = key, case .int(let size)? = values["size"] else { return "" }
            return "('\(id)', \(size))"
        }
        let shown = pairs.isEmpty ? "SELECT '', 0 WHERE false" : "VALUES \(pairs.joined(separator: ", "))"
        let rows = "SELECT _id, size FROM orders WHERE \(condition)"
        let differences = try await gateway.count(
            "SELECT count(*) FROM ((\(rows) EXCEPT \(shown)) UNION ALL (\(shown) EXCEPT \(rows))) AS d")
        #expect(differences == 0, sourceLocation: sourceLocation)
    }

    @Test func `is told what the log has since, with why objects left, and goes on from there`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(Self.fill)
            let (before, token) = try await Self.leave(gateway)
            try await gateway.sql(Self.changes)
            let session = try await Self.comeBack(gateway, before, token)
            // k4, k6, k1 and the new one; no row is named that is as it was.
            #expect(session.brought == (4, 0))
            #expect(session.left == ["string(\"k8\")": .leftQuery, "string(\"k10\")": .deleted, "string(\"gone\")": .deleted])
            try await Self.expectEqual(session, gateway)
            try await gateway.sql("UPDATE orders SET size = 5 WHERE store = 'north'")
            try await session.receive { session in (session.rows["Order"] ?? [:]).values.allSatisfy { $0["size"] == .int(5) } }
            try await Self.expectEqual(session, gateway)
            // What it has is still known: a changed set sends the difference.
            let more = "store IN {'north', 'south'} AND size < 10"
            try await session.subscribe(2, [("Order", more)])
            try await Self.expectEqual(session, gateway, "size < 10")
            session.close()
            // And once more, with nothing new.
            let again = try await Self.comeBack(gateway, session.file, token, query: more)
            #expect(again.brought == (0, 0))
            try await Self.expectEqual(again, gateway, "size < 10")
            again.close()
        }
    }

    @Test func `has everything as of its return, so that the next difference leaves out what it was told`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(Self.fill)
            let (before, token) = try await Self.leave(gateway)
            try await gateway.sql("UPDATE orders SET size = size + 1000 WHERE store = 'north'")
            // The rows are newer than the bootstrap, and not than the return, unless somebody else's transaction runs on the server.
            var kept = 0
            for _ in 0..<50 where kept < 50 {
                let session = try await Self.comeBack(gateway, before, token)
                #expect(session.brought == (50, 0))
                try await session.subscribe(2, [("Order", "store IN {'north', 'south'} AND (size > 1000 OR size < 10)")])
                kept = session.brought.kept
                #expect(kept + session.brought.rows == 55)
                try await Self.expectEqual(session, gateway, "size > 1000 OR size < 10")
                session.close()
            }
            #expect(kept == 50)
        }
    }

    @Test func `has the difference read from the tables when the log cannot tell`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(Self.fill)
            let (before, token) = try await Self.leave(gateway)
            // Nobody can say what a TRUNCATE took.
            try await gateway.sql("BEGIN; TRUNCATE orders; INSERT INTO orders (_id, store, size) VALUES ('a', 'north', 1); COMMIT")
            let session = try await Self.comeBack(gateway, before, token)
            #expect(session.keys("Order") == ["a"])
            session.close()
            // Another query than before. The key is enough, unless somebody else's older transaction runs on the server.
            let other = try await Self.comeBack(gateway, session.file, token, query: "store == 'north' AND size < 5")
            #expect(other.brought.rows + other.brought.kept == 1)
            other.close()
            // Another database, or the same of another time.
            let restored = try await gateway.session(token: token)
            restored.goOn(from: other.file)
            restored.held?.cluster += "x"
            try await restored.hello()
            try await restored.subscribe(1, [("Order", "store == 'north' AND size < 5")])
            #expect(restored.brought == (1, 0))
            restored.close()
            // What the file's last bootstrap saw was not in this history, whatever else it has: nothing is taken for known.
            let strange = try await gateway.session(token: token)
            strange.goOn(from: restored.file)
            strange.held?.committed = .init(HistoryAnchor(transaction: 1_000_000_000, commitTime: 1).bytes)
            try await strange.hello()
            try await strange.subscribe(1, [("Order", "store == 'north' AND size < 5")])
            #expect(strange.brought == (1, 0))
            strange.close()
        }
    }

    @Test func `is told by a gateway that has begun since, from the log if that begins early enough and else from the tables`() async throws
    {
        try await RunningGateway.deploy { deployment in
            let (before, token) = try await deployment.run(ShopApp.files) { gateway in
                try await gateway.sql(Self.fill)
                return try await Self.leave(gateway)
            }
            // The embedded logs of gateways that have ended are gone, with what the client has not seen: the tables tell.
            for _ in 0..<2 {
                try await deployment.run(ShopApp.files) { gateway in
                    try await gateway.sql(Self.changes)
                    let session = try await Self.comeBack(gateway, before, token)
                    try await Self.expectEqual(session, gateway)
                    session.close()
                    try await gateway.sql("DELETE FROM orders WHERE _id = 'new'")
                }
            }
        }
    }

    @Test func `is told from Kafka by any gateway, however many came and went meanwhile`() async throws {
        let broker = try Self.broker()
        let files = Self.files("shop-\(UUID().uuidString.prefix(13).lowercased())")
        try await RunningGateway.deploy { deployment in
            let (before, token) = try await deployment.run(files, kafka: broker) { gateway in
                try await gateway.sql(Self.fill)
                return try await Self.leave(gateway)
            }
            let seen = try await deployment.run(files, kafka: broker) { gateway in
                try await gateway.sql(Self.changes)
                // Far more than the search begins with.
                try await gateway.sql(
                    """
                    DO $$ BEGIN
                        FOR round IN 1..300 LOOP UPDATE orders SET size = round WHERE _id = 'k2'; COMMIT; END LOOP;
                    END $$
                    """)
                let session = try await Self.comeBack(gateway, before, token)
                #expect(session.brought == (5, 0))
                try await Self.expectEqual(session, gateway)
                session.close()
                return session.file
            }
            try await deployment.run(files, kafka: broker) { gateway in
                for (file, news) in [(seen, 0), (before, 5)] {
                    let again = try await Self.comeBack(gateway, file, token)
                    #expect(again.brought == (news, 0))
                    try await Self.expectEqual(again, gateway)
                    let size = try #require(again.rows["Order"]?[.string("k2")]?["size"])
                    try await gateway.sql("UPDATE orders SET size = size + 1 WHERE _id IN ('k2', 'k4')")
                    try await again.receive { $0.rows["Order"]?[.string("k2")]?["size"] != size }
                    again.close()
                }
            }
        }
    }

    /// Takes the newest records of all partitions of the orders away, as an unclean leader election does. The progress records stay.
    /// - Parameter left: the number of records that each partition keeps of those it has.
    private static func cut(_ app: String, at broker: String, left: (Int) -> Int) async throws {
        let configuration = KafkaConfiguration(bootstrapServers: broker)
        let log = try KafkaLog(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let admin = try KafkaAdmin(configuration)
        let topic = Topics(app: app).changes(of: "Order")
        let count = try await admin.partitionCount(of: topic)
        let partitions = (0..<count).map { LogPartition(topic, $0) }
        let ends = try await log.ends(of: partitions).filter { $0.value > 0 }
        var records: [LogPartition: [[UInt8]]] = [:]
        try await log.withReader { reader in
            try await reader.assign(ends.mapValues { _ in 0 })
            var fetch = LogFetch()
            while ends.contains(where: { records[$0.key, default: []].count < $0.value }) {
                fetch = try await reader.next(fetch, milliseconds: 1_000)
                for entry in fetch.entries { records[entry.partition, default: []].append(Array(fetch.arena[entry.value])) }
            }
        }
        try await admin.delete([topic])
        try await admin.create([KafkaTopic(topic, partitions: count)])
        var batch = LogBatch(topics: [topic])
        for (partition, values) in records {
            for value in values.prefix(left(values.count)) { batch.append(topic: 0, partition: partition.partition, key: [], value: value) }
        }
        _ = try await log.append(batch)
        await admin.close()
        await log.close()
    }

    @Test(arguments: ["none", "some"])
    func `is told from the tables when the log lost the newest records of its partitions, and the progress records did not`(
        left: String
    ) async throws {
        let broker = try Self.broker()
        let app = "shop-\(UUID().uuidString.prefix(13).lowercased())"
        let files = Self.files(app)
        try await RunningGateway.deploy { deployment in
            let (before, token) = try await deployment.run(files, kafka: broker) { gateway in
                try await gateway.sql(Self.fill)
                let left = try await Self.leave(gateway)
                let other = try await gateway.openSession(["Order"])
                try await other.subscribe(1, [("Order", "store == 'north'")])
                try await gateway.sql(Self.changes)
                try await other.receive { $0.keys("Order").contains("new") }
                other.close()
                return left
            }
            try await Self.cut(app, at: broker) { left == "none" ? 0 : max(0, $0 - 3) }
            try await deployment.run(files, kafka: broker) { gateway in
                let session = try await Self.comeBack(gateway, before, token)
                try await Self.expectEqual(session, gateway)
                // New records follow on what is left, and lie where the lost ones were.
                try await gateway.sql("UPDATE orders SET size = size + 1 WHERE store = 'north'")
                let size = try #require(try await gateway.count("SELECT size FROM orders WHERE _id = 'k4'"))
                try await session.receive { $0.rows["Order"]?[.string("k4")]?["size"] == .int(size) || $0.hasEnded }
                // The first record behind a cut ends the sessions that read the partition, and their devices come back.
                if session.hasEnded {
                    #expect(
                        session.error?.error.code == .resync && session.error?.action == .transient, "\(String(describing: session.error))")
                    let next = try await Self.comeBack(gateway, session.file, token)
                    try await next.receive { $0.rows["Order"]?[.string("k4")]?["size"] == .int(size) }
                    try await Self.expectEqual(next, gateway)
                    next.close()
                }
                session.close()
                let again = try await Self.comeBack(gateway, before, token)
                try await Self.expectEqual(again, gateway)
                again.close()
            }
        }
    }
}
