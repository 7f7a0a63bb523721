import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluicePorts
import SluicePostgres
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// Accounts that `sluice migrate users` makes.
@Suite(.timeLimit(.minutes(5))) struct `Migrated users` {
    /// A folder with pages of users and a database.
    private struct Move: Sendable {
        let folder: String
        let conninfo: String
        var credentials: String { folder + "/credentials.ndjson" }

        func run(
            _ users: [JSON], renews: Bool = false, credentials: String? = nil, now: Int64 = SystemEnvironment().wallMilliseconds(),
            files: [String: String] = [:]
        ) async throws -> UserMigrationReport {
            let page = "\(folder)/\(UUID()).json"
            try Data(JSON.array(users).text.utf8).write(to: URL(fileURLWithPath: page))
            let migration = try UserMigration(
                app: try ShopApp.configuration(files: files), postgres: conninfo,
                options: .init(sources: [page], credentials: credentials ?? self.credentials, validDays: 1, renews: renews))
            return try await migration.run(now: now)
        }

        var lines: [JSON] {
            get throws {
                guard FileManager.default.fileExists(atPath: credentials) else { return [] }
                return try String(contentsOfFile: credentials, encoding: .utf8).split(separator: "\n").map { try JSON.parse(String($0)) }
            }
        }

        func query(_ text: String) async throws -> PostgresResult {
            let connection = try await PostgresConnection.connect(conninfo)
            let result = try await connection.query(text)
            await connection.close()
            return result
        }

        func script(_ text: String) async throws {
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script(text)
            await connection.close()
        }
    }

    private static func with(_ body: @escaping @Sendable (Move) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("users-\(UUID())")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try await RunningGateway.deploy("SELECT") { try await body(Move(folder: folder.path, conninfo: $0.conninfo)) }
    }

    private static func id(_ number: Int) -> String { ObjectIdentifierBytes(high: 0x64, low: UInt32(number)).description }

    private static func user(
        _ number: Int, _ provider: String = "local-userpass", identity: String? = nil, data: JSON = .object([]), members: [JSON.Member] = []
    ) -> JSON {
        let identity: JSON = ["id": .string(identity ?? "identity-\(number)"), "provider_type": .string(provider), "provider_id": "p"]
        let email: JSON = provider == "local-userpass" ? ["email": .string("User\(number)@Example.com")] : data
        return .object(
            [.init("_id", .string(id(number))), .init("identities", [identity]), .init("type", "normal"), .init("data", email)] + members)
    }

    @Test func `keep id, identity, state and age, and get one link each`() async throws {
        try await Self.with { move in
            let users = [
                Self.user(1, members: [.init("creation_date", 1_500_000_000), .init("custom_data", ["store": "north"])]),
                Self.user(2, members: [.init("disabled", true)]), Self.user(3, "custom-token", identity: "subject-3"),
                Self.user(4, "anon-user"),
            ]
            let report = try await move.run(users)
            #expect(report.isWhole && report.created == 4, "\(report.text)")
            let found = try await move.query(
                "SELECT id, email, disabled, custom_data ->> 'store', extract(epoch FROM created_at)::bigint FROM sluice.user_account ORDER BY id"
            )
            #expect(found.column(0) == (1...4).map(Self.id))
            #expect(found[0, 1] == "user1@example.com" && found[0, 3] == "north" && found.int(0, 4) == 1_500_000_000)
            #expect(found.column(2) == ["f", "t", "f", "f"])
            let pool = PostgresPool(move.conninfo, name: "test", size: 1)
            let login = try await LoginStore(pool: pool).add(
                "l1", of: .init(provider: "custom-token", id: "subject-3"), expires: 4_000_000_000_000)
            #expect(login?.id == Self.id(3))
            await pool.close()
            #expect(report.text.contains("cannot log in: 1 with custom-token only"), "\(report.text)")
            // One link, as the disabled user has no use for one.
            let lines = try move.lines
            #expect(lines.map { $0["subject"]?.string } == [Self.id(1)] && lines[0]["email"] == "user1@example.com")
            let (token, id) = (try #require(lines[0]["token"]?.string), try #require(lines[0]["tokenId"]?.string))
            #expect(!report.text.contains(token) && !report.json.text.contains(token) && !report.json.text.contains("@"))
            let stored = try await move.query("SELECT id, encode(hash, 'hex') FROM sluice.password_reset")
            #expect(stored[0, 0] == id && stored[0, 1] != token && stored.count == 1)
            let mode = try FileManager.default.attributesOfItem(atPath: move.credentials)[.posixPermissions] as? Int
            #expect(mode == 0o600)
        }
    }

    @Test func `are the same after a second run, a lost file and an interruption`() async throws {
        try await Self.with { move in
            let server: JSON = [
                "_id": .string(Self.id(9)), "type": "server", "data": ["name": "my key!"],
                "identities": [["id": .string(Self.id(90)), "provider_type": "api-key"]],
            ]
            let users = (1...3).map { Self.user($0) } + [server]
            let first = try await move.run(users)
            #expect(first.json["listed"] == 3 && first.json["keys"] == 1, "\(first.text)")
            let lines = try move.lines
            #expect(lines.last?["name"] == "my-key-")
            let again = try await move.run(users)
            #expect(again.json["created"] == 0 && again.json["existing"] == 4 && again.json["listed"] == 0 && again.json["awaited"] == 3)
            #expect(try move.lines == lines)
            // The database lost the chunk, as in an interruption before its commit: the secrets of the file become valid.
            let hashes = try await move.query(
                "SELECT hash::text FROM sluice.password_reset UNION SELECT hash::text FROM sluice.api_key ORDER BY 1")
            try await move.script("DELETE FROM sluice.user_account")
            let repeated = try await move.run(users)
            #expect(repeated.json["created"] == 4 && repeated.json["listed"] == 3, "\(repeated.text)")
            #expect(try move.lines == lines)
            let after = try await move.query(
                "SELECT hash::text FROM sluice.password_reset UNION SELECT hash::text FROM sluice.api_key ORDER BY 1")
            #expect(after.column(0) == hashes.column(0) && after.count == 4)
            // Another file has nothing, until new links are asked for.
            let other = move.folder + "/other.ndjson"
            #expect(try await move.run(users, credentials: other).json["awaited"] == 3)
            #expect(!FileManager.default.fileExists(atPath: other))
            let renewed = try await move.run(users, renews: true, credentials: other)
            #expect(renewed.json["listed"] == 3 && renewed.json["keys"] == 0)
            #expect(try await move.query("SELECT count(*) FROM sluice.password_reset").int(0, 0) == 3)
        }
    }

    @Test func `get a new link once the old one has expired, and none with a password`() async throws {
        try await Self.with { move in
            let now = SystemEnvironment().wallMilliseconds()
            _ = try await move.run([Self.user(1), Self.user(2)], now: now - 2 * 86_400_000)
            try await move.script("UPDATE sluice.user_account SET password_hash = 'x' WHERE id = '\(Self.id(2))'")
            let later = try await move.run([Self.user(1), Self.user(2)], now: now)
            #expect(later.json["listed"] == 1 && later.json["awaited"] == 0, "\(later.text)")
            let lines = try move.lines
            #expect(lines.count == 3 && lines[2]["subject"]?.string == Self.id(1) && lines[2]["token"] != lines[0]["token"])
        }
    }

    @Test func `are left out with a reason, and the others are not`() async throws {
        try await Self.with { move in
            var twin = Self.user(2)
            twin = .object((twin.members ?? []).map { $0.key == "data" ? .init("data", ["email": "uSer1@example.COM"]) : $0 })
            let report = try await move.run([
                Self.user(1), twin, ["_id": "not an id", "identities": []], ["_id": .string(Self.id(3)), "identities": []],
                .object((Self.user(4).members ?? []).filter { $0.key != "data" }),
                ["_id": .string(Self.id(5)), "user_id": "", "domain_id": "d", "login_ids": [["id": "x@example.com", "id_type": "email"]]],
                Self.user(6, "anon-user", members: [.init("custom_data", ["big": .string(String(repeating: "x", count: 20_000))])]),
            ])
            #expect(!report.isWhole && report.created == 2)
            let reasons = report.json["leftOut"]?.array?.compactMap { $0["reason"]?.string }
            #expect(
                reasons == [
                    "another account has the e-mail address", "the _id is not 24 hexadecimal digits",
                    "the e-mail address is missing or malformed", "the user has no identity",
                ], "\(report.text)")
            #expect(report.json["pending"] == 1 && report.json["incomplete"]?.array?.count == 1, "\(report.text)")
        }
    }

    private static func pending(_ number: Int, _ email: String) -> JSON {
        ["_id": .string(id(number)), "login_ids": [["id": .string(email), "id_type": "email"]]]
    }

    @Test func `that are pending stay pending under their ids, and have no password`() async throws {
        try await Self.with { move in
            let now = SystemEnvironment().wallMilliseconds()
            let users = [Self.pending(1, "Ada@Example.com"), Self.pending(2, "user3@example.com"), Self.user(3)]
            let report = try await move.run(
                users + [Self.pending(4, "ada@example.com"), ["_id": .string(Self.id(5)), "login_ids": []], Self.pending(6, "none")],
                now: now)
            #expect(report.created == 1 && report.json["pending"] == 1 && report.json["pendingExisting"] == 2, "\(report.text)")
            let reasons = report.json["leftOut"]?.array?.map { "\($0["reason"]?.string ?? "") \($0["count"]?.int ?? 0)" }
            #expect(reasons == ["the e-mail address of the pending user is missing or malformed 2"], "\(report.text)")
            let pool = PostgresPool(move.conninfo, name: "test", size: 1)
            let store = PendingUserStore(pool: pool)
            let found = try await store.listPending(after: "", limit: 10)
            let week = now + Limits.pendingUserSeconds * 1_000
            var user = PendingUser(id: Self.id(1), email: "ada@example.com", passwordHash: nil, expires: week)
            user.registered = found.first?.registered ?? 0
            #expect(found == [user] && user.registered > 0)
            // Another mail leads to an account of the id, without a password. A registration brings its own.
            let mail = LinkToken(id: "a", hash: [1], expires: week)
            #expect(try await store.add(mail, email: "ada@example.com", expires: week)?.passwordHash == nil)
            let new = PendingUser(id: Self.id(9), email: "ada@example.com", passwordHash: "hash", expires: week)
            #expect(try await store.add(new, LinkToken(id: "b", hash: [2], expires: week)).id == Self.id(1))
            let confirmed = try await store.pendingUser(token: "b", hash: [2], now: now)
            #expect(confirmed?.id == Self.id(1) && confirmed?.passwordHash == "hash")
            await pool.close()
            let again = try await move.run(users, now: now)
            #expect(again.isWhole && again.json["pending"] == 0 && again.json["pendingExisting"] == 2, "\(again.text)")
        }
    }

    /// A key of a person has no name of its own in an export, and names are unique for a user.
    @Test func `keep all their API keys`() async throws {
        try await Self.with { move in
            let keys = [80, 81].map { number -> JSON in ["id": .string(Self.id(number)), "provider_type": "api-key"] }
            let person: JSON = ["_id": .string(Self.id(8)), "type": "normal", "data": ["name": "Ada"], "identities": .array(keys)]
            let report = try await move.run([person])
            #expect(report.isWhole && report.json["keys"] == 2, "\(report.text)")
            #expect(try move.lines.map { $0["name"]?.string } == [80, 81].map { "key-\(Self.id($0))" })
        }
    }

    @Test func `with a value that PostgreSQL does not take are left out alone`() async throws {
        try await Self.with { move in
            let report = try await move.run([
                Self.user(1, "anon-user", data: ["name": "a\u{0}b"]), Self.user(2),
                Self.user(3, members: [.init("creation_date", ["$numberLong": .string("\(Int64.min)")])]),
                Self.user(4, members: [.init("creation_date", .int(.max))]),
            ])
            #expect(report.created == 3, "\(report.text)")
            let reasons = report.json["leftOut"]?.array?.compactMap { $0["reason"]?.string } ?? []
            #expect(reasons.count == 1 && reasons[0].hasPrefix("PostgreSQL does not take a value: "), "\(reasons)")
            // A time of creation beyond PostgreSQL's is none.
            let recent = "SELECT count(*) FROM sluice.user_account WHERE created_at > now() - interval '1 hour'"
            #expect(try await move.query(recent).int(0, 0) == 3)
        }
    }

    private static let people = [
        "auth/custom_user_data.json":
            #"{ "enabled": true, "database_name": "public", "collection_name": "people", "user_id_field": "_id" }"#,
        ShopApp.table("people", "schema"): """
        { "title": "Person", "bsonType": "object", "required": ["_id"], "mapping": { "_id": "user_ref" },
          "properties": { "_id": { "bsonType": "string" }, "store": { "bsonType": "string" } } }
        """,
    ]

    @Test func `find their rows by the column that the user's id is mapped to, and get none without an account`() async throws {
        try await Self.with { move in
            try await move.script(
                "CREATE TABLE people (user_ref text PRIMARY KEY, store text); INSERT INTO people VALUES ('\(Self.id(1))', 'west')")
            func user(_ number: Int, _ email: String) -> JSON {
                let data: [JSON.Member] = [.init("custom_data", ["_id": .string(Self.id(number)), "store": "north"])]
                return .object(
                    (Self.user(number, members: data).members ?? []).map {
                        $0.key == "data" ? .init("data", ["email": .string(email)]) : $0
                    })
            }
            let report = try await move.run(
                [user(1, "a@example.com"), user(2, "b@example.com"), user(3, "A@example.com")], files: Self.people)
            #expect(
                report.created == 2 && report.json["customDataRows"] == 1 && report.json["leftOut"]?.array?.count == 1, "\(report.text)")
            let rows = try await move.query("SELECT user_ref, store FROM people ORDER BY user_ref")
            #expect(rows.column(0) == [1, 2].map(Self.id) && rows.column(1) == ["west", "north"])
        }
    }

    @Test func `write their custom data into the app's table, if it has no row of theirs`() async throws {
        try await Self.with { move in
            let files = [
                "auth/custom_user_data.json":
                    #"{ "enabled": true, "database_name": "public", "collection_name": "people", "user_id_field": "user" }"#
            ]
            let users = [
                Self.user(1, members: [.init("custom_data", ["_id": "a", "store": "north"])]),
                Self.user(2, members: [.init("custom_data", ["_id": "b", "store": "south"])]), Self.user(3),
            ]
            let missing = await #expect(throws: SluiceError.self) { try await move.run(users, files: files) }
            #expect(missing?.code == .tableUnfit && missing?.message.contains("public.people") == true)
            try await move.script(
                """
                CREATE TABLE people ("user" text PRIMARY KEY, custom_data jsonb NOT NULL);
                INSERT INTO people VALUES ('\(Self.id(1))', '{"store": "west"}')
                """)
            let report = try await move.run(users, files: files)
            #expect(report.isWhole && report.json["customDataRows"] == 1, "\(report.text)")
            let rows = try await move.query("SELECT custom_data ->> 'store' FROM people ORDER BY \"user\"")
            #expect(rows.column(0) == ["west", "south"])
            #expect(try await move.run(users, files: files).json["customDataRows"] == 0)
        }
    }

    @Test func `need a file that only the operator can read, whose cut line is dropped`() async throws {
        try await Self.with { move in
            _ = try await move.run([Self.user(1)])
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: move.credentials)
            let open = await #expect(throws: SluiceError.self) { try await move.run([Self.user(1)]) }
            #expect(open?.code == .configInvalid && open?.fix?.contains("chmod 600") == true)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: move.credentials)
            let whole = try String(contentsOfFile: move.credentials, encoding: .utf8)
            let handle = try #require(FileHandle(forUpdatingAtPath: move.credentials))
            try handle.seekToEnd()
            try handle.write(contentsOf: Data(#"{"kind":"password","sub"#.utf8))
            try handle.close()
            #expect(try await move.run([Self.user(1)]).isWhole)
            #expect(try String(contentsOfFile: move.credentials, encoding: .utf8) == whole)
            try Data("no credential\n".utf8).write(to: URL(fileURLWithPath: move.credentials))
            let foreign = await #expect(throws: SluiceError.self) { try await move.run([Self.user(1)]) }
            #expect(foreign?.message.contains("Line 1 of") == true)
        }
    }
}
