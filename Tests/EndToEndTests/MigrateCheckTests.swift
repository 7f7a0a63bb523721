import Foundation
import SluiceCore
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(5))) struct `sluice migrate check` {
    private let folder: DataFolder

    init() throws { folder = try DataFolder() }

    private func check(_ arguments: [String]) async throws -> (out: String, exit: Program.Ending, said: String) {
        let program = try Program("sluice", ["migrate", "check"] + arguments)
        let lines = try #require(await program.remainingLines())
        return (lines.joined(separator: "\n"), await program.end(), program.said)
    }

    private func write(_ text: String, _ path: String) throws {
        let file = URL(fileURLWithPath: "\(folder.path)/\(path)")
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try text.write(to: file, atomically: true, encoding: .utf8)
    }

    /// An export of the year 2022, with a byte-order mark and a file of another program.
    private func writeExport() throws {
        try write("\u{FEFF}{ \"name\": \"todo\" }", "root_config.json")
        try write("{ // comment", "tsconfig.json")
        try write(
            """
            { "type": "flexible", "queryable_fields_names": ["owner_id"], "permissions": { "rules": {}, "defaultRoles": [
              { "name": "own", "applyWhen": {}, "read": { "owner_id": "%%user.id" }, "write": { "owner_id": "%%user.id" } }] } }
            """, "sync/config.json")
        try write(#"{ "anon-user": { "type": "anon-user" } }"#, "auth/providers.json")
        try write(
            #"{ "bsonType": "object", "properties": { "_id": { "bsonType": "objectId" }, "owner_id": { "bsonType": "string" } } }"#,
            "data_sources/mongodb-atlas/todo/Item/schema.json")
    }

    @Test func `ends with 0 for an app that runs, with notes too, and 78 for one that does not`() async throws {
        try writeExport()
        let without = try await check([folder.path])
        #expect(without.exit == .exit(78))
        #expect(without.out.hasPrefix("The app does not run yet.") && without.out.contains("Pass --app-id"), "\(without)")
        let runs = try await check([folder.path, "--app-id", "todo-abcde"])
        #expect(runs.exit == .exit(0) && runs.said.isEmpty, "\(runs)")
        #expect(runs.out.hasPrefix("App todo-abcde runs as it is.\nRead: 1 class, "), "\(runs)")
        #expect(runs.out.contains("Read in its newer form:\n  sync/config.json:1:63: The roles of 'permissions' apply"), "\(runs)")
        try write(#"{ "state": "enabled", "partition": { "key": "_partition" } }"#, "sync/config.json")
        let partitioned = try await check([folder.path, "--app-id", "todo-abcde"])
        #expect(partitioned.exit == .exit(78) && partitioned.out.contains("partition-based sync by '_partition'"), "\(partitioned)")
    }

    @Test func `prints one line of JSON, and the same code`() async throws {
        try writeExport()
        let refused = try await check(["--json", folder.path])
        #expect(refused.exit == .exit(78))
        #expect(try JSON.parse(refused.out)["runs"] == false)
        let json = try JSON.parse(try await check(["--json", "--app-id", "todo-abcde", folder.path]).out)
        #expect(json["runs"] == true && json["app_id"] == "todo-abcde" && json["classes"] == ["Item"])
        #expect(json["notes"]?.array?.map { $0["kind"] } == ["adapted"])
    }

    @Test func `serve refuses with the same words and the same code`() async throws {
        try writeExport()
        try write(
            #"{ "roles": [{ "name": "own", "apply_when": {}, "document_filters": { "read": { "owner": 1 }, "write": true } }] }"#,
            "data_sources/mongodb-atlas/default_rule.json")
        let refused = try await check([folder.path])
        let lines = refused.out.split(separator: "\n").filter {
            $0.contains("'app_id' is missing") || $0.contains("Item has no field owner")
        }
        #expect(lines.count == 2, "\(refused)")
        let serve = try Program("sluice", ["serve", "--app", folder.path, "--postgres", "host=127.0.0.1 port=1"])
        _ = await serve.remainingLines()
        #expect(await serve.end() == .exit(78))
        for line in lines { #expect(serve.said.contains(line.trimmingCharacters(in: .whitespaces).prefix(60)), "\(serve.said)") }
    }

    @Test func `ends with 78 for a directory that does not exist`() async throws {
        let missing = try await check([folder.path + "/none"])
        #expect(missing.exit == .exit(78) && missing.said.contains("The app directory does not exist"), "\(missing)")
        try Data().write(to: URL(fileURLWithPath: folder.path + "/file"))
        let file = try await check([folder.path + "/file"])
        #expect(file.exit == .exit(78) && file.said.contains("This is a file and no app directory."), "\(file)")
    }
}
