import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceValues
import Testing

@Suite struct `What would become of a subscription` {
    private static let role = NoteApp.role("member", read: #"{ "team": "%%user.custom_data.team" }"#, write: "false")

    private static func explain(_ gateway: RunningGateway, _ user: String, _ query: String, type: String? = "Note") async throws -> JSON {
        let text = query.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        let type = type.map { "&type=\($0)" } ?? ""
        return try await gateway.request("GET", "/admin/v1/explain?user=\(user)\(type)&query=\(text)", admin: true).json
    }

    @Test func `is the role's and the query's condition, with its SQL, rows and cost`() async throws {
        try await NoteApp.with(["Note": "[\(Self.role)]"]) { gateway in
            try await gateway.sql(
                """
                INSERT INTO "Note" (_id, owner_id, team, text) VALUES
                    ('mine', 'ann', 'red', 'x'), ('other', 'bob', 'red', 'x'), ('theirs', 'ann', 'blue', 'x')
                """)
            let ann = try await gateway.account(customData: #"{ "team": "red" }"#)
            let answer = try await Self.explain(gateway, ann.id, "owner_id == 'ann'")
            #expect(answer["rules"]?["role"] == .string("member") && answer["narrowed"] == .string("TRUEPREDICATE"))
            #expect(answer["condition"] == .string(#"owner_id == "ann" and team == "red""#), "\(answer.text)")
            #expect(answer["rows"]?["counted"] == .int(1))
            let sql = try #require(answer["postgres"]?["where"]?.string)
            #expect(sql.contains("\"owner_id\"") && sql.contains("\"team\"") && answer["postgres"]?["exact"] == .bool(true))
            let lines = answer["text"]?.array?.compactMap(\.string) ?? []
            #expect(lines.contains("rows") && lines.contains { $0.contains("member, which reads") })
            // Without a condition on the indexed field every change is looked at; what excludes itself costs nothing.
            #expect(try await Self.explain(gateway, ann.id, "TRUEPREDICATE")["cost"] == .string("unkeyed"))
            #expect(try await Self.explain(gateway, ann.id, "FALSEPREDICATE")["cost"] == .string("nothing"))

            let bob = try await gateway.account(customData: #"{ "team": "blue" }"#)
            #expect(try await Self.explain(gateway, bob.id, "owner_id == 'ann'")["rows"]?["counted"] == .int(1))
            #expect(try await Self.explain(gateway, "nobody", "TRUEPREDICATE")["code"]?.int == Int64(ErrorCode.userNotFound.rawValue))
            #expect(try await Self.explain(gateway, ann.id, "owner == 1")["code"]?.int == Int64(ErrorCode.queryUnknownProperty.rawValue))
            #expect(try await gateway.request("GET", "/admin/v1/explain", admin: true).status == 400)
        }
    }

    @Test func `is keyed by the indexed field, or refused without it`() async throws {
        try await RunningGateway.with { gateway in
            let keeper = try await gateway.account(customData: #"{ "store": "north" }"#)
            let answer = try await Self.explain(gateway, keeper.id, "store == 'north' AND size > 3", type: "Order")
            #expect(answer["cost"] == .string("keyed"), "\(answer.text)")
            #expect(answer["index"]?.array?.compactMap { $0["key"] } == [.string("north")])
            #expect(answer["index"]?.array?.first?["residual"] == .string("size > 3"))
            #expect(answer["rows"]?["counted"] == .int(0))
            // Without a class it is of the one that has its properties.
            let found = try await Self.explain(gateway, keeper.id, "store == 'north' AND size > 3", type: nil)
            #expect(found["type"] == .string("Order") && found["condition"] == answer["condition"], "\(found.text)")
            for query in ["TRUEPREDICATE", "colour == 1"] {
                let unclear = try await Self.explain(gateway, keeper.id, query, type: nil)
                #expect(unclear["code"]?.int == Int64(ErrorCode.badRequest.rawValue), "\(unclear.text)")
            }
            let refused = try await Self.explain(gateway, keeper.id, "size > 3", type: "Order")
            #expect(refused["code"]?.int == Int64(ErrorCode.queryIndexedFieldMissing.rawValue))
        }
    }
}
