import Foundation
import SluiceCore
import SluicePostgres

/// The app of `sluice dev --sample`: an app directory, and rows of its two users.
package enum SampleApp: String, CaseIterable, Sendable {
    case tasks

    /// The files of the app directory, by path.
    var files: [String: String] {
        let folder = "data_sources/postgres/public"
        return [
            "realm_config.json": #"{ "app_id": "tasks", "name": "tasks" }"#,
            "auth/providers.json": """
            {
                "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": true },
                "local-userpass": { "name": "local-userpass", "type": "local-userpass", "disabled": false }
            }
            """,
            "sync/config.json": """
            {
                "type": "flexible",
                "state": "enabled",
                "service_name": "postgres",
                "database_name": "public",
                "queryable_fields_names": ["owner_id", "is_shared", "is_done", "list"]
            }
            """,
            "data_sources/postgres/config.json": #"{ "name": "postgres", "type": "mongodb-atlas" }"#,
            "\(folder)/tasks/schema.json": Self.task, "\(folder)/tasks/relationships.json": Self.links,
            "\(folder)/tasks/rules.json": Self.taskRules, "\(folder)/lists/schema.json": Self.list,
            "\(folder)/lists/rules.json": Self.listRules,
        ]
    }

    private static let task = """
        {
            "title": "Task",
            "bsonType": "object",
            "required": ["_id", "title", "is_done", "is_shared", "owner_id"],
            "properties": {
                "_id": { "bsonType": "objectId" },
                "title": { "bsonType": "string" },
                "is_done": { "bsonType": "bool" },
                "is_shared": { "bsonType": "bool" },
                "owner_id": { "bsonType": "string" },
                "list": { "bsonType": "string" }
            }
        }
        """

    private static let links = """
        { "list": { "ref": "#/relationship/postgres/public/lists", "foreign_key": "_id", "is_list": false } }
        """

    private static let list = """
        {
            "title": "TaskList",
            "bsonType": "object",
            "required": ["_id", "name"],
            "properties": {
                "_id": { "bsonType": "string" },
                "name": { "bsonType": "string" }
            }
        }
        """

    /// A user reads the own tasks and the shared ones, and writes the own ones.
    private static let taskRules = """
        {
            "database": "public",
            "collection": "tasks",
            "roles": [
                {
                    "name": "owner",
                    "apply_when": {},
                    "document_filters": {
                        "read": { "$or": [{ "owner_id": "%%user.id" }, { "is_shared": true }] },
                        "write": { "owner_id": "%%user.id" }
                    },
                    "read": true,
                    "write": true,
                    "insert": true,
                    "delete": true,
                    "search": true
                }
            ]
        }
        """

    /// All users read the lists, and none writes them.
    private static let listRules = """
        {
            "database": "public",
            "collection": "lists",
            "roles": [
                {
                    "name": "reader",
                    "apply_when": {},
                    "document_filters": { "read": true, "write": false },
                    "read": true,
                    "write": false,
                    "insert": false,
                    "delete": false,
                    "search": true
                }
            ]
        }
        """

    // MARK: Files and rows

    /// Writes the app directory, unless it is there from an earlier run. Edits of it stay.
    ///
    /// - Throws: `configInvalid` if it cannot be written.
    func write(into directory: String) throws(SluiceError) {
        guard !FileManager.default.fileExists(atPath: "\(directory)/realm_config.json") else { return }
        for (path, text) in files.sorted(by: { $0.key > $1.key }) {
            let file = URL(fileURLWithPath: "\(directory)/\(path)")
            do {
                try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data((text + "\n").utf8).write(to: file, options: .atomic)
            } catch {
                throw SluiceError(
                    .configInvalid, "The sample's file \(file.path) cannot be written.", fix: "Name another folder with --data-dir.",
                    cause: ErrorCause(error))
            }
        }
    }

    /// The key of a task of the first user that the second one does not see.
    static let privateTask = "600000000000000000000001"
    /// The key of a task of the first user that is shared.
    static let sharedTask = "600000000000000000000002"

    /// Inserts rows of the two users, unless the table has some.
    func insert(_ users: [String], _ connection: PostgresConnection) async throws {
        guard users.count == 2 else { return }
        try await connection.script(
            "INSERT INTO public.lists (_id, name) VALUES ('home', 'Home'), ('work', 'Work') ON CONFLICT (_id) DO NOTHING")
        try await connection.execute(
            """
            INSERT INTO public.tasks (_id, title, is_done, is_shared, owner_id, list)
            SELECT v.id, v.title, v.done, v.shared, CASE v.owner WHEN 0 THEN $1 ELSE $2 END, v.list
            FROM (VALUES
                ('600000000000000000000001', 'Plan the surprise party', false, false, 0, 'home'),
                ('600000000000000000000002', 'Buy milk', false, true, 0, 'home'),
                ('600000000000000000000003', 'Water the plants', true, true, 0, 'home'),
                ('600000000000000000000004', 'Write the report', false, false, 1, 'work'),
                ('600000000000000000000005', 'Book a meeting room', true, true, 1, 'work'),
                ('600000000000000000000006', 'Answer the letter', false, true, 1, 'work')
            ) AS v (id, title, done, shared, owner, list)
            WHERE NOT EXISTS (SELECT FROM public.tasks)
            """, [.text(users[0]), .text(users[1])])
    }
}
