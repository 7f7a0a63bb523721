import GatewayTestSupport
import NIOCore
import NetTestSupport
import SluiceCore
import SluiceValues
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `Database triggers of a gateway` {
    private static func files(_ service: RawPeer) -> [String: String] {
        [
            "functions/config.json": #"[{ "name": "ship", "private": true }]"#,
            "triggers/onLarge.json": """
            {
                "name": "onLarge", "type": "DATABASE", "function_name": "ship",
                "config": {
                    "operation_types": ["INSERT", "UPDATE"], "service_name": "postgres", "database": "public", "collection": "orders",
                    "match": { "fullDocument.size": { "$gte": 5 } }, "project": { "clusterTime": 0 },
                    "full_document": true, "full_document_before_change": true
                }
            }
            """,
            "secrets.json": #"{ "hook": "a key of the service" }"#,
            "sluice.json": """
            { "functions": { "*": { "url": "http://127.0.0.1:\(service.port)/", "secret": "hook", "allow_private_addresses": true } } }
            """,
        ]
    }

    /// The events that the service receives, by the keys of their objects.
    private static func events(_ service: RawPeer, _ count: Int) async throws -> [String: JSON] {
        var events: [String: JSON] = [:]
        while events.count < count, let request = await service.next() {
            let body = request.split(separator: "\r\n\r\n", maxSplits: 1).last.map { Array($0.utf8) } ?? []
            let json = try JSON.parse(body)
            #expect(json["user"] == .null && json["function"] == "ship" && request.contains("Sluice-Signature: t="))
            let event = try #require(json["arguments"]?.array?.first)
            events[event["documentKey"]?["_id"]?.string ?? ""] = event
        }
        return events
    }

    private static func play(_ gateway: RunningGateway, _ service: RawPeer) async throws {
        try await gateway.sql("INSERT INTO orders (_id, store, size, secret) VALUES ('sql', 'north', 1, 'hidden')")
        try await gateway.sql("UPDATE orders SET size = 9 WHERE _id = 'sql'")
        let session = try await gateway.openSession()
        try await session.subscribe(1, [("Order", "store == 'north'")])
        try await session.upload(
            1,
            [
                TestSession.order("small", ["store": .string("north"), "size": .int(2)]),
                TestSession.order("large", ["store": .string("north"), "size": .int(7)]),
            ])
        let events = try await events(service, 2)
        session.close()
        #expect(Set(events.keys) == ["sql", "large"])
        let row: JSON = ["_id": "sql", "store": "north", "title": .null, "size": 9, "secret": "hidden"]
        let (update, insert) = (events["sql"], events["large"])
        #expect(update?["operationType"] == "update" && update?["fullDocument"] == row && update?["clusterTime"] == nil)
        #expect(update?["fullDocumentBeforeChange"]?["size"] == 1 && update?["updateDescription"]?["updatedFields"] == ["size": 9])
        #expect(insert?["operationType"] == "insert" && insert?["fullDocument"]?["size"] == 7)
        #expect(insert?["ns"] == ["db": "public", "coll": "orders"])
        #expect(try await gateway.metric(#"sluice_trigger_calls_total{trigger="onLarge"}"#) == 2)
        // Both have the partition of their store.
        #expect(try await gateway.eventually("SELECT count(*) FROM sluice.trigger_cursor WHERE next_offset = 4", is: 1))
    }

    private static func service() async throws -> RawPeer {
        try await RawPeer { _, channel in channel.writeAndFlush(RawPeer.text("200 OK", #"{"result": null}"#), promise: nil) }
    }

    @Test func `call the service for writes of a client and of SQL, without Kafka`() async throws {
        let service = try await Self.service()
        try await RunningGateway.with(files: Self.files(service)) { try await Self.play($0, service) }
        await service.close()
    }

    @Test func `call the service for writes of a client and of SQL, and continue behind them after a restart`() async throws {
        let service = try await Self.service()
        try await KafkaShop.with { shop in
            try await shop.run(files: Self.files(service)) { try await Self.play($0, service) }
            try await shop.run(files: Self.files(service)) { gateway in
                try await gateway.sql("UPDATE orders SET size = 11 WHERE _id = 'large'")
                let event = try await Self.events(service, 1)["large"]
                #expect(event?["fullDocument"]?["size"] == 11)
                #expect(try await gateway.metric(#"sluice_trigger_calls_total{trigger="onLarge"}"#) == 1)
                let page = try await gateway.console().page
                #expect(page.text("triggers").contains("onLarge"))
            }
        }
        await service.close()
    }
}
