import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePostgres
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The audit log` {
    @Test func `has every change with who, what, before and after, and no secret`() async throws {
        try await GuardedGateway.with { gateway in
            func change(_ method: String, _ path: String, _ body: String = "") async throws -> RunningGateway.Answer {
                try await gateway.request(method, "/admin/v1/\(path)", body, admin: true, token: GuardedGateway.change)
            }
            let made = try await change(
                "POST", "users", #"{"email":"ann@example.com","password":"password-1","custom_data":{"store":"north"}}"#)
            let user = try #require(made.json["id"]?.string)
            _ = try await change("PUT", "users/\(user)/custom_data", #"{"store":"south"}"#)
            let key = try await change("POST", "users/\(user)/api_keys", #"{"name":"pipeline"}"#)
            let (id, secret) = (try #require(key.json["_id"]?.string), try #require(key.json["key"]?.string))
            _ = try await change("PUT", "users/\(user)/api_keys/\(id)/disable")
            _ = try await change("PUT", "users/\(user)/disable")
            _ = try await change("PUT", "users/\(user)/logout")
            #expect(try await change("PUT", "users/none/disable").status == 404)
            _ = try await change("POST", "quarantine/release")
            _ = try await change("POST", "ingest/replay", #"{"type":"Reading"}"#)
            _ = try await change("DELETE", "users/\(user)")

            let answer = try await gateway.request("GET", "/admin/v1/audit", admin: true, token: GuardedGateway.read)
            let entries = Array((answer.json["entries"]?.array ?? []).reversed())
            #expect(
                entries.compactMap { $0["action"]?.string } == [
                    "POST /admin/v1/users", "PUT /admin/v1/users/\(user)/custom_data", "POST /admin/v1/users/\(user)/api_keys",
                    "PUT /admin/v1/users/\(user)/api_keys/\(id)/disable", "PUT /admin/v1/users/\(user)/disable",
                    "PUT /admin/v1/users/\(user)/logout", "POST /admin/v1/quarantine/release", "POST /admin/v1/ingest/replay",
                    "DELETE /admin/v1/users/\(user)",
                ], "a change that fails leaves no entry: \(answer.json.text)")
            #expect(entries.allSatisfy { $0["actor"] == "token ops" && $0["address"] == "127.0.0.1" })
            try #require(entries.count == 9)
            #expect(entries[0]["before"] == .null && entries[0]["after"]?["email"] == "ann@example.com")
            #expect(entries[1]["before"]?["custom_data"] == ["store": "north"] && entries[1]["after"]?["custom_data"] == ["store": "south"])
            #expect(entries[3]["before"]?["disabled"] == false && entries[3]["after"]?["disabled"] == true)
            #expect(entries[4]["subject"] == .string("user \(user)") && entries[4]["after"]?["disabled"] == true)
            #expect(entries[7]["after"]?["sent"] == 0 && entries[7]["after"]?["asked"]?["type"] == "Reading")
            #expect(entries[8]["before"]?["disabled"] == true && entries[8]["after"] == .null)
            let text = answer.json.text
            #expect(!text.contains("scrypt") && !text.contains(secret) && !text.contains("password-1"))

            let page = try await gateway.request(
                "GET", "/admin/v1/audit?limit=2&before=\(entries[4]["id"]?.int ?? 0)", admin: true, token: GuardedGateway.read)
            #expect(page.json["entries"]?.array?.compactMap { $0["id"] } == [entries[3], entries[2]].compactMap { $0["id"] })
            #expect(page.json["next"] == entries[2]["id"])
        }
    }

    @Test func `has nothing of what users do themselves, and keeps a bounded number`() async throws {
        try await RunningGateway.with { gateway in
            let user = try await gateway.account()
            #expect(
                try await gateway.texts("SELECT DISTINCT action FROM sluice.admin_audit") == ["PUT /admin/v1/users/\(user.id)/custom_data"])
            try await gateway.sql(
                """
                INSERT INTO sluice.admin_audit (actor, address, action, subject)
                SELECT 'x', '', 'x', 'x' FROM generate_series(1, 50)
                """)
            let pool = PostgresPool(gateway.conninfo, size: 1)
            let log = AuditLog(pool: pool)
            #expect(try await log.prune(keeping: 10) == 41)
            #expect(try await log.list(limit: 100).count == 10)
            await pool.close()
        }
    }
}
