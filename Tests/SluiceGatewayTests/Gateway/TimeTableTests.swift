import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceTools
import Testing

/// The table of an asymmetric class that is cut by time, from `ingest.json` to the partition that is dropped.
@Suite(.timeLimit(.minutes(5))) struct `A table cut by time behind a gateway` {
    private static let files = [
        ShopApp.table("readings", "schema"): """
        {
            "title": "Reading", "bsonType": "object", "required": ["_id", "store", "value", "at"],
            "properties": {
                "_id": { "bsonType": "string" }, "store": { "bsonType": "string" }, "value": { "bsonType": "double" },
                "at": { "bsonType": "date" }
            }
        }
        """,
        ShopApp.table("readings", "ingest"): #"{ "partition_by": "at", "every": "day", "keep_days": 3 }"#,
    ]

    /// A day in the names of partitions, and in JSON as noon of it.
    private struct Day {
        let name: String
        let noon: String

        init(_ days: Int, after first: Date) {
            let format = DateFormatter()
            format.locale = Locale(identifier: "en_US_POSIX")
            format.timeZone = TimeZone(identifier: "UTC")
            format.dateFormat = "yyyyMMdd"
            let date = first.addingTimeInterval(Double(days) * 86_400)
            name = "readings_\(format.string(from: date))"
            format.dateFormat = "yyyy-MM-dd'T12:00:00Z'"
            noon = format.string(from: date)
        }

        func record(_ key: String) -> [UInt8] {
            Array(#"{"_id": "\#(key)", "store": "north", "value": 1, "at": "\#(noon)"}"#.utf8)
        }
    }

    private static func wait(_ gateway: RunningGateway, for what: String, is wanted: Int64, in query: String) async throws {
        try #require(try await gateway.eventually(query, is: wanted), "\(what): not \(wanted)")
    }

    @Test func `has a partition for the day, what Kafka brings in it, and drops it when it is older than is kept`() async throws {
        try await KafkaShop.with { shop in
            let today = Date()
            try await shop.sql("DROP TABLE readings")
            let tool = SchemaTool(app: try ShopApp.configuration(files: Self.files), postgres: shop.conninfo)
            #expect(try await tool.apply(acceptsBreaking: false).statements.contains { $0.contains("PARTITION BY RANGE") })
            // The partitions are of three days from now on: these are there though midnight pass meanwhile.
            let (first, next, later) = (Day(1, after: today), Day(2, after: today), Day(7, after: today))
            try await shop.run(files: Self.files) { gateway in
                try await Self.wait(gateway, for: next.name, is: 1, in: "SELECT count(*) FROM pg_class WHERE relname = '\(next.name)'")
                try await shop.produce([first.record("a"), first.record("b"), next.record("c")], partition: 5)
                try await Self.wait(gateway, for: "objects", is: 3, in: "SELECT count(*) FROM readings")
                #expect(try await gateway.texts("SELECT _id FROM \(first.name) ORDER BY 1") == ["a", "b"])
                #expect(try await gateway.texts("SELECT _id FROM \(next.name)") == ["c"])
            }
            try await shop.run(files: Self.files, environment: Ahead(milliseconds: 6 * 86_400_000)) { gateway in
                try await Self.wait(gateway, for: later.name, is: 1, in: "SELECT count(*) FROM pg_class WHERE relname = '\(later.name)'")
                let old = "'\(first.name)', '\(next.name)'"
                try await Self.wait(gateway, for: old, is: 0, in: "SELECT count(*) FROM pg_class WHERE relname IN (\(old))")
                try await shop.produce([later.record("d")], partition: 5)
                try await Self.wait(gateway, for: "objects", is: 1, in: "SELECT count(*) FROM \(later.name)")
                #expect(try await gateway.texts("SELECT _id FROM readings") == ["d"])
            }
        }
    }
}
