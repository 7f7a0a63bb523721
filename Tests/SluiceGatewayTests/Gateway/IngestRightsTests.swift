import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceValues
import Testing

/// What a role says about asymmetric objects, as those who send them by HTTP meet it (ING-9).
@Suite(.timeLimit(.minutes(3))) struct `Roles about ingest` {
    private static let files = [
        ShopApp.table("readings", "schema"): """
        {
            "title": "Reading", "bsonType": "object", "required": ["_id", "store", "value"],
            "properties": {
                "_id": { "bsonType": "string" }, "store": { "bsonType": "string" }, "value": { "bsonType": "double" },
                "note": { "bsonType": "string" }, "tags": { "bsonType": "array", "items": { "bsonType": "string" } }
            }
        }
        """,
        ShopApp.table("readings", "rules"): """
        {
            "database": "public", "collection": "readings",
            "roles": [
                {
                    "name": "keeper", "apply_when": { "%%user.custom_data.store": { "%exists": true } },
                    "document_filters": { "read": true, "write": { "store": "%%user.custom_data.store" } },
                    "fields": { "store": { "write": true }, "value": { "write": true } }
                },
                {
                    "name": "nobody", "apply_when": {}, "document_filters": { "read": true, "write": false }, "read": true, "write": true
                }
            ]
        }
        """,
    ]

    @Test func `refuse what the write filter does not match, and fields that may not be written, line by line`() async throws {
        let tables = ShopApp.tables + "ALTER TABLE readings ADD note text, ADD tags text[] NOT NULL DEFAULT '{}';"
        try await RunningGateway.deploy(tables) { deployment in
            try await deployment.run(ShopApp.files.merging(Self.files) { $1 }) { gateway in
                let keeper = try await gateway.account(customData: #"{ "store": "north" }"#)
                let body = [
                    #"{"_id": "a", "store": "north", "value": 1}"#, #"{"_id": "b", "store": "south", "value": 1}"#,
                    #"{"_id": "c", "store": "north", "value": 1, "note": "mine"}"#,
                    #"{"_id": "d", "store": "north", "value": 1, "note": null, "tags": []}"#,
                    #"{"_id": "e", "store": "north", "value": 1, "tags": ["x"]}"#,
                    // Forms that the fast way through the JSON leaves to the other.
                    #"{"_id": "f", "store": "south", "value": {"$numberDouble": "1"}}"#,
                    #"{"_id": "g", "store": "nor\u0074h", "value": {"$numberDouble": "1"}}"#, "nonsense",
                ]
                let answer = try await gateway.ingest(Array(body.joined(separator: "\n").utf8), token: keeper.token)
                #expect((answer.status, answer.accepted) == (207, 3), "\(answer)")
                let refused = answer.json["rejected"]?.array ?? []
                #expect(refused.map { $0["line"] } == [2, 3, 5, 6, 8])
                #expect(refused.prefix(4).allSatisfy { $0["code"] == .int(Int64(ErrorCode.writeNotAllowed.rawValue)) })
                #expect(refused.first?["error"] == "Not allowed to insert this object into Reading.")
                #expect(refused.dropFirst().first?["error"] == "Not allowed to write field note of Reading.")
                #expect(try await gateway.eventually("SELECT count(*) FROM readings WHERE _id IN ('a', 'd', 'g')", is: 3))
                #expect(try await gateway.count("SELECT count(*) FROM readings") == 3)

                let nobody = try await gateway.ingest(Readings.lines(3), token: try await gateway.anonymousToken())
                #expect(nobody.status == 403 && nobody.json["code"]?.int == Int64(ErrorCode.permissionDenied.rawValue), "\(nobody)")
            }
        }
    }
}
