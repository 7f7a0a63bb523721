import GatewayTestSupport
import SluiceCore
import SluiceValues
import SluiceWire
import SwiftProtobuf
import Testing

/// Checks that the order of a limit does not reveal values of linked objects that the user may not read.
@Suite(.timeLimit(.minutes(5))) struct `Linked objects that are hidden` {
    /// A role that reads the people of the red team, without their secrets.
    private static let clerk = """
        {
            "name": "clerk", "apply_when": { "%%user.custom_data.isClerk": true },
            "document_filters": { "read": { "team": "red" }, "write": false },
            "fields": { "secret": { "read": false, "write": false } }, "additional_fields": { "read": true, "write": true }
        }
        """

    private static var files: [String: String] {
        let chief = NoteApp.role("chief")
        var files = NoteApp.files(["Note": "[\(chief)]", "Person": "[\(clerk), \(chief)]"])
        let note = ShopApp.table("Note", "schema")
        files[note] = files[note]?.replacing(#""text":"#, with: #""author": { "bsonType": "string" }, "text":"#)
        files[ShopApp.table("Note", "relationships")] =
            ##"{ "author": { "ref": "#/relationship/postgres/public/Person", "foreign_key": "_id", "is_list": false } }"##
        return files
    }

    private static let rows = """
        ALTER TABLE "Note" ADD COLUMN author text;
        INSERT INTO "Person" (_id, owner_id, team, text, secret) VALUES
            ('p1', 'x', 'red', 'a', '9'), ('p2', 'x', 'blue', 'z', '5'), ('p3', 'x', 'red', 'm', '1');
        INSERT INTO "Note" (_id, owner_id, team, author) VALUES
            ('n1', 'x', 'red', 'p3'), ('n2', 'x', 'red', 'p2'), ('n3', 'x', 'red', 'p1');
        """

    private static func with(_ body: @escaping @Sendable (RunningGateway) async throws -> Void) async throws {
        try await RunningGateway.deploy(NoteApp.tables(["Note", "Person"]) + rows) { deployment in
            try await deployment.run(files, body)
        }
    }

    private static func session(
        _ gateway: RunningGateway, clerk: Bool, _ types: [String] = ["Note", "Person"]
    ) async throws -> TestSession {
        let user = try await gateway.account(customData: clerk ? #"{ "isClerk": true }"# : "{}")
        let session = try await gateway.session(token: user.token)
        try await session.hello(types)
        return session
    }

    /// Subscribes to the first notes by a path, the highest first, and returns their keys.
    private static func first(
        _ limit: UInt32, by path: String, distinct: String? = nil, _ version: UInt64, of session: TestSession
    ) async throws -> Set<String> {
        try await session.send(
            .subscribe(
                .with {
                    $0.version = version
                    $0.queries = [
                        .with { query in
                            query.type = "Note"
                            query.text = "TRUEPREDICATE"
                            query.limit = limit
                            query.sort = [
                                .with {
                                    $0.path = path
                                    $0.descending = true
                                }
                            ]
                            if let distinct {
                                query.distinct = [
                                    .with {
                                        $0.paths = [distinct]
                                        $0.sort = query.sort
                                    }
                                ]
                            }
                        }
                    ]
                }))
        try await session.receive { $0.completed == version || !$0.queryErrors.isEmpty }
        #expect(session.queryErrors.isEmpty, "\(session.queryErrors)")
        return session.keys("Note")
    }

    @Test func `put the objects that link to them in no order, and tell none of them apart`() async throws {
        try await Self.with { gateway in
            let chief = try await Self.session(gateway, clerk: false)
            let clerk = try await Self.session(gateway, clerk: true)
            #expect(try await Self.first(1, by: "author.text", 1, of: chief) == ["n2"])
            #expect(try await Self.first(1, by: "author.text", 1, of: clerk) == ["n1"])
            #expect(try await Self.first(1, by: "author.secret", 2, of: chief) == ["n3"])
            // Secrets are null, so only the keys decide.
            #expect(try await Self.first(2, by: "author.secret", 2, of: clerk) == ["n1", "n2"])
            #expect(try await Self.first(9, by: "_id", distinct: "author.secret", 3, of: chief) == ["n1", "n2", "n3"])
            #expect(try await Self.first(9, by: "_id", distinct: "author.secret", 3, of: clerk) == ["n3"])
            // The key of a hidden person is null as well.
            #expect(try await Self.first(1, by: "author._id", 4, of: chief) == ["n1"])
            #expect(try await Self.first(3, by: "_id", distinct: "author._id", 5, of: clerk) == ["n1", "n2", "n3"])
            try await gateway.sql(#"INSERT INTO "Note" (_id, owner_id, team) VALUES ('n4', 'x', 'red')"#)
            try await clerk.sendMark(1)
            try await clerk.receive { $0.mark == 1 }
            // A note with a hidden author equals one without an author.
            #expect(clerk.keys("Note") == ["n1", "n3", "n4"])
            for session in [chief, clerk] { session.close() }
        }
    }

    @Test func `do not show when they change, until they may be read`() async throws {
        try await Self.with { gateway in
            let clerk = try await Self.session(gateway, clerk: true)
            #expect(try await Self.first(1, by: "author.text", 1, of: clerk) == ["n1"])
            var marks: UInt64 = 0
            func mark() async throws {
                marks += 1
                let now = marks
                try await clerk.sendMark(now)
                try await clerk.receive { $0.mark == now }
            }
            try await mark()
            let bootstraps = clerk.bootstraps
            try await gateway.sql(#"UPDATE "Person" SET text = 'zz', secret = '0' WHERE _id = 'p2'"#)
            try await gateway.sql(#"UPDATE "Person" SET secret = '0' WHERE _id = 'p1'"#)
            try await mark()
            #expect(clerk.keys("Note") == ["n1"] && clerk.bootstraps == bootstraps)
            try await gateway.sql(#"UPDATE "Person" SET team = 'red' WHERE _id = 'p2'"#)
            try await mark()
            #expect(clerk.keys("Note") == ["n2"])
            try await gateway.sql(#"UPDATE "Person" SET team = 'blue' WHERE _id = 'p2'"#)
            try await mark()
            #expect(clerk.keys("Note") == ["n1"])
            clerk.close()
        }
    }

    @Test func `have no values for a device that does not know their class, and are none of its objects`() async throws {
        try await Self.with { gateway in
            let user = try await gateway.account()
            let session = try await gateway.session(token: user.token)
            try await session.hello(["Note"])
            #expect(try await Self.first(1, by: "author.text", 1, of: session) == ["n1"])
            session.close()
            let whole = try await gateway.session(token: user.token)
            try await whole.hello(["Note", "Person"])
            #expect(try await Self.first(1, by: "author.text", 1, of: whole) == ["n2"])
            #expect(whole.keys("Person").isEmpty)
            let answer = try await gateway.request("GET", "/admin/v1/why?user=\(user.id)&type=Person&id=p2", admin: true).json
            let reasons = answer["because"]?.array?.compactMap(\.string) ?? []
            #expect(reasons.contains("Device \(whole.welcome?.client ?? 0) does not subscribe to the class."), "\(answer)")
            whole.close()
        }
    }
}
