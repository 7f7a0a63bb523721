import Foundation
import SluiceCore
import SluiceValues
import Testing

@Suite(.timeLimit(.minutes(5))) struct `sluice query` {
    private static let schema = """
        {"schemas": [
            {"title": "Book", "bsonType": "object", "required": ["_id", "title"], "properties": {
                "_id": {"bsonType": "long"}, "title": {"bsonType": "string"}, "pages": {"bsonType": "long"},
                "shop": {"bsonType": "string"}, "words": {"bsonType": "array", "items": {"bsonType": "string"}}}},
            {"title": "Shop", "bsonType": "object", "required": ["_id"], "properties": {
                "_id": {"bsonType": "string"}, "city": {"bsonType": "string"}}}],
         "relationships": {"Book": {"shop": {"ref": "Shop", "foreign_key": "_id", "is_list": false}}}}
        """
    private static let rows = """
        {"_class": "Book", "_id": 3, "title": "Sea", "pages": 90, "shop": "s1", "words": ["salt"]}
        {"_class": "Shop", "_id": "s1", "city": "Rome"}
        {"_class": "Book", "_id": 1, "title": "Air", "pages": 300}
        {"_class": "Book", "_id": 2, "title": "Ice", "shop": "s1"}

        """

    private let folder: DataFolder
    private var subject: [String] { ["--schema", "\(folder.path)/S.json", "--type", "Book"] }
    private var data: [String] { ["--data", "\(folder.path)/rows.jsonl"] }

    init() throws {
        folder = try DataFolder()
        try Self.schema.write(toFile: folder.path + "/S.json", atomically: true, encoding: .utf8)
        try Self.rows.write(toFile: folder.path + "/rows.jsonl", atomically: true, encoding: .utf8)
    }

    /// What the command prints, its exit code, and what it says on standard error.
    private func query(_ arguments: [String], input: String = "") async throws -> (lines: [String], exit: Program.Ending, said: String) {
        let program = try Program("sluice", ["query"] + arguments, input: input)
        let lines = try #require(await program.remainingLines())
        return (lines, await program.end(), program.said)
    }

    @Test func `run prints the keys in the file's order, or in the query's`() async throws {
        let all = try await query(["run"] + subject + data + ["TRUEPREDICATE"])
        #expect(all.lines == ["3", "1", "2"])
        #expect(all.exit == .exit(0))
        #expect(all.said.isEmpty)
        #expect(try await query(["run"] + subject + data + ["shop.city == 'Rome' SORT(title ASC)"]).lines == ["2", "3"])
        #expect(
            try await query(["run"] + subject + data + ["--arg", #""Air""#, "--arg", "-1", "title == $0 and pages > $1"]).lines == ["1"])
        let shops = ["--schema", "\(folder.path)/S.json", "--type", "Shop"]
        #expect(try await query(["run"] + shops + data + ["@links.Book.shop.title CONTAINS 'ce'"]).lines == ["s1"])
        let none = try await query(["run"] + subject + data + ["FALSEPREDICATE"])
        #expect(none.lines.isEmpty)
        #expect(none.exit == .exit(0))
    }

    @Test func `run shows what is wrong with a query and ends with 2`() async throws {
        for (text, code, place) in [
            ("pages >", "query-syntax (300)", "line 1, column 8"), ("page > 1", "query-unknown-property (301)", "line 1, column 1"),
            ("pages > 'x'", "query-type-mismatch (302)", "line 1, column 7"), ("pages > $1", "query-argument (303)", "line 1, column 9"),
        ] {
            let answer = try await query(["run"] + subject + data + [text])
            #expect(answer.exit == .exit(2))
            #expect(answer.lines.isEmpty)
            #expect(answer.said.hasPrefix("sluice: \(code): \(place): "), "\(answer.said)")
            #expect(answer.said.contains("\n    \(text)\n"), "\(answer.said)")
            #expect(answer.said.contains("^"), "\(answer.said)")
        }
    }

    @Test func `run ends with 1 and names the line when a file is wrong`() async throws {
        let rows = folder.path + "/wrong.jsonl"
        try (Self.rows + #"{"_id": 9, "pagse": 1}"#).write(toFile: rows, atomically: true, encoding: .utf8)
        let row = try await query(["run"] + subject + ["--data", rows, "TRUEPREDICATE"])
        #expect(row.exit == .exit(1))
        #expect(row.lines.isEmpty)
        #expect(row.said.contains("wrong.jsonl:5: Book has no property 'pagse'"), "\(row.said)")
        #expect(row.said.contains("Did you mean 'pages'?"), "\(row.said)")
        let missing = try await query(["run"] + subject + ["--data", folder.path + "/none.jsonl", "TRUEPREDICATE"])
        #expect(missing.exit == .exit(1))
        #expect(missing.said.contains("none.jsonl"), "\(missing.said)")
        let schema = folder.path + "/wrong.json"
        try Self.schema.replacingOccurrences(of: #""ref": "Shop""#, with: #""ref": "Shpo""#)
            .write(toFile: schema, atomically: true, encoding: .utf8)
        let link = try await query(["run", "--schema", schema, "--type", "Book"] + data + ["TRUEPREDICATE"])
        #expect(link.exit == .exit(1))
        #expect(link.said.contains("wrong.json:7:38: The class 'Shpo' does not exist."), "\(link.said)")
    }

    @Test func `parse prints the canonical text, of a query with a minus in front too`() async throws {
        #expect(try await query(["parse", "a=1&&NOT(b<>$0)"]).lines == ["a == 1 and !(b != $0)"])
        #expect(try await query(["parse", "-1 < a"]).lines == ["-1 < a"])
        #expect(try await query(["parse", "--", "-1 < a"]).lines == ["-1 < a"])
        let wrong = try await query(["parse", "a = = 1"])
        #expect(wrong.exit == .exit(2))
        #expect(wrong.said.hasPrefix("sluice: query-syntax (300): line 1, column 5: "), "\(wrong.said)")
    }

    @Test func `check prints accepted, or the refusal and ends with 3`() async throws {
        let accepted = try await query(["check"] + subject + ["--queryable", "pages,title", "pages > 3 and title != 'x'"])
        #expect(accepted.lines == ["accepted"])
        #expect(accepted.exit == .exit(0))
        for (options, text, code) in [
            (["--queryable", "title"], "pages > 3", "query-not-queryable (310)"), ([], "pages > 3 SORT(pages ASC)", "query-sort (322)"),
            (["--indexed", "pages"], "title == 'x'", "query-indexed-field-missing (312)"),
            ([], "shop.city == 'x'", "query-link-path (326)"),
        ] {
            let answer = try await query(["check"] + subject + options + [text])
            #expect(answer.exit == .exit(3))
            #expect(answer.lines == ["refused: \(code)"])
            #expect(answer.said.hasPrefix("sluice: \(code): line 1, column "), "\(answer.said)")
        }
        let wrong = try await query(["check"] + subject + ["pages > 'x'"])
        #expect(wrong.exit == .exit(2))
        #expect(wrong.lines.isEmpty)
    }

    @Test func `explain prints tree, types, SQL and index form`() async throws {
        let answer = try await query(["explain"] + subject + ["--indexed", "pages", "--arg", "90", "pages == $0 and title LIKE 'S*'"])
        #expect(answer.exit == .exit(0))
        let text = answer.lines.joined(separator: "\n")
        for part in [
            "pages == 90", "Book.title (string)", "PostgreSQL", #""pages" = $1"#, "SQLite", "?1", "$1 = 90 (int)", "key 90: title LIKE",
        ] {
            #expect(text.contains(part), "\(text)")
        }
    }

    @Test func `answers every line of standard input and ends with 0`() async throws {
        let input = "pages > 100\n\npages >\nTRUEPREDICATE SORT(title DESC)\npages == 'x'\npages SORT(pages ASC)"
        let ran = try await query(["run"] + subject + data + ["-"], input: input)
        #expect(ran.exit == .exit(0))
        let answers = try ran.lines.map { try JSON.parse($0) }
        #expect(answers.map { $0["ok"]?.bool } == [true, false, false, true, false, false])
        #expect(answers[0]["ids"] == [1])
        #expect(answers[3]["ids"] == [3, 2, 1])
        #expect(answers[1]["code"] == 300)
        #expect(answers[2]["column"] == 8)
        #expect(answers[4]["code"] == 302)
        #expect(answers[4]["line"] == 1)

        let parsed = try await query(["parse", "-"], input: "a=1\na=\n")
        #expect(parsed.exit == .exit(0))
        #expect(parsed.lines.first == #"{"ok":true,"canonical":"a == 1"}"#)
        #expect(parsed.lines.count == 2)

        let checked = try await query(["check"] + subject + ["-"], input: "pages > 1\nshop.city == 'x'\npages == 'x'\n")
        #expect(checked.exit == .exit(0))
        #expect(checked.lines.first == #"{"ok":true}"#)
        #expect(try checked.lines.dropFirst().map { try JSON.parse($0)["code"] } == [326, 302])

        #expect(try await query(["parse", "-"]).lines.isEmpty)
    }

    @Test func `ends quietly when nobody reads on`() throws {
        let shell = Process()
        let output = Pipe()
        shell.executableURL = URL(fileURLWithPath: "/bin/bash")
        let script = #"yes "a = 1" | head -n 50000 | "$0" query parse - 2>&1 | head -n 1; echo "${PIPESTATUS[2]}""#
        shell.arguments = ["-c", script, Program.folder.appendingPathComponent("sluice").path]
        shell.standardOutput = output
        try shell.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        shell.waitUntilExit()
        #expect(text == #"{"ok":true,"canonical":"a == 1"}"# + "\n0\n")
    }
}
