import GatewayTestSupport
import SluiceCore
import SluiceGateway
import Testing

/// Roles that compare links by the keys of their targets, as App Services stored them.
@Suite(.timeLimit(.minutes(5))) struct `A role with a link` {
    private static let files: [String: String] = {
        var files = NoteApp.files(["Person": "[\(NoteApp.role("all"))]"], queryable: ["keeper"])
        files[ShopApp.table("Task", "schema")] = """
            {
                "title": "Task", "bsonType": "object", "required": ["_id"],
                "properties": { "_id": { "bsonType": "string" }, "keeper": { "bsonType": "string" }, "text": { "bsonType": "string" } }
            }
            """
        files[ShopApp.table("Task", "relationships")] =
            ##"{ "keeper": { "ref": "#/relationship/postgres/public/Person", "foreign_key": "_id", "is_list": false } }"##
        let filter = #"{ "keeper": "%%user.id" }"#
        files[ShopApp.table("Task", "rules")] = #"{ "roles": [\#(NoteApp.role("keeper", read: filter, write: filter))] }"#
        return files
    }()

    @Test func `shows the objects that link to the user, and follows the link as it changes`() async throws {
        #expect(try AppDirectory.read(files: Self.files).schema["Task"]?["keeper"]?.type == .link(to: "Person"))
        let tables = NoteApp.tables(["Person"]) + #"CREATE TABLE "Task" (_id text PRIMARY KEY, keeper text, text text);"#
        try await RunningGateway.deploy(tables) { deployment in
            try await deployment.run(Self.files) { gateway in
                let account = try await gateway.account(customData: "{}")
                try await gateway.sql(
                    #"INSERT INTO "Task" VALUES ('t1', '\#(account.id)', 'mine'), ('t2', 'eve', 'hers'), ('t3', NULL, 'of nobody')"#)
                let session = try await gateway.noteSession(account, ["Task"])
                #expect(session.keys("Task") == ["t1"])
                try await gateway.sql(#"UPDATE "Task" SET keeper = '\#(account.id)' WHERE _id = 't2'"#)
                try await session.receive { $0.keys("Task").contains("t2") }
                try await gateway.sql(#"UPDATE "Task" SET keeper = NULL WHERE _id = 't1'"#)
                try await session.receive { !$0.keys("Task").contains("t1") }
                #expect(session.keys("Task") == ["t2"])
                session.close()
            }
        }
    }
}
