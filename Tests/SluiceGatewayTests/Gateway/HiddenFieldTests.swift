import GatewayTestSupport
import SluiceCore
import SluiceValues
import SluiceWire
import SwiftProtobuf
import Testing

/// A field that a role hides must not be told by which objects come (G5).
@Suite(.timeLimit(.minutes(5))) struct `Fields that are hidden` {
    private static let clerk = """
        {
            "name": "clerk", "apply_when": { "%%user.custom_data.isClerk": true }, "document_filters": { "read": true, "write": true },
            "fields": { "secret": { "read": false, "write": false } },
            "additional_fields": { "read": true, "write": true }, "insert": true, "delete": true
        }
        """

    private static func with(_ body: @escaping @Sendable (RunningGateway) async throws -> Void) async throws {
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            let files = NoteApp.files(["Note": "[\(clerk), \(NoteApp.role("chief"))]"], queryable: ["secret"])
            try await deployment.run(files) { gateway in
                try await gateway.sql(
                    """
                    INSERT INTO "Note" (_id, owner_id, team, secret) VALUES
                    ('a', 'x', 'red', '1'), ('b', 'x', 'red', '2'), ('c', 'x', 'red', NULL)
                    """)
                try await body(gateway)
            }
        }
    }

    private static func session(_ gateway: RunningGateway, clerk: Bool) async throws -> TestSession {
        let user = try await gateway.account(customData: clerk ? #"{ "isClerk": true }"# : "{}")
        let session = try await gateway.session(token: user.token)
        try await session.hello(["Note"])
        return session
    }

    @Test func `select nothing by what they hold, now and later`() async throws {
        try await Self.with { gateway in
            let chief = try await Self.session(gateway, clerk: false)
            let clerk = try await Self.session(gateway, clerk: true)
            let queries: [(text: String, chief: Set<String>, clerk: Set<String>)] = [
                ("secret == '1'", ["a"], []), ("secret BEGINSWITH ''", ["a", "b"], []), ("secret > '1'", ["b"], []),
                ("secret != '1'", ["b", "c"], ["a", "b", "c"]), ("secret == nil", ["c"], ["a", "b", "c"]),
                ("secret IN {'1', '2'} AND team == 'red'", ["a", "b"], []), ("secret == '1' OR _id == 'b'", ["a", "b"], ["b"]),
            ]
            for (number, query) in queries.enumerated() {
                for session in [chief, clerk] { try await session.subscribe(UInt64(number + 1), [("Note", query.text)]) }
                #expect(chief.keys("Note") == query.chief, "\(query.text)")
                #expect(clerk.keys("Note") == query.clerk, "\(query.text)")
            }
            // What comes by changes is judged alike: c changes to what the query names, d is new.
            try await gateway.sql(
                #"UPDATE "Note" SET secret = '1' WHERE _id = 'c'; INSERT INTO "Note" (_id, owner_id, team, secret) VALUES ('d', 'x', 'red', '1')"#
            )
            try await chief.receive { $0.keys("Note") == ["a", "b", "c", "d"] }
            try await clerk.sendMark(1)
            try await clerk.receive { $0.mark == 1 }
            #expect(clerk.keys("Note") == ["b"])
            for session in [chief, clerk] { session.close() }
        }
    }

    @Test func `put objects in no order`() async throws {
        try await Self.with { gateway in
            let chief = try await Self.session(gateway, clerk: false)
            let clerk = try await Self.session(gateway, clerk: true)
            for session in [chief, clerk] {
                try await session.send(
                    .subscribe(
                        .with {
                            $0.version = 1
                            $0.queries = [
                                .with {
                                    $0.type = "Note"
                                    $0.text = "TRUEPREDICATE"
                                    $0.limit = 1
                                    $0.sort = [
                                        .with {
                                            $0.path = "secret"
                                            $0.descending = true
                                        }
                                    ]
                                }
                            ]
                        }))
                try await session.receive { $0.completed == 1 }
            }
            #expect(chief.keys("Note") == ["b"] && clerk.keys("Note") == ["a"])
            for session in [chief, clerk] { session.close() }
        }
    }

    @Test func `say so where operators ask`() async throws {
        try await Self.with { gateway in
            let user = try await gateway.account(customData: #"{ "isClerk": true }"#)
            let path = "/admin/v1/explain?user=\(user.id)&type=Note&query=secret%20==%20'1'"
            let answer = try await gateway.request("GET", path, admin: true).json
            #expect(answer["condition"]?.string == "FALSEPREDICATE" && answer["rows"]?["counted"]?.int == 0, "\(answer)")
            let lines = answer["text"]?.array?.compactMap(\.string) ?? []
            #expect(lines.contains("    without the fields secret, which count as null in the query"), "\(lines)")
        }
    }
}
