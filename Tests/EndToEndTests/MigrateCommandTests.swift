import Foundation
import SluiceCompression
import SluiceCore
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(10))) struct `sluice migrate` {
    /// Runs the body with a fresh database, an app directory and a folder.
    private static func withApp(_ body: (_ conninfo: String, _ app: String, _ folder: String) async throws -> Void) async throws {
        let base = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"])
        let name = "sluice_migrate_\(UInt64.random(in: .min ... .max))"
        let admin = try await PostgresConnection.connect(base)
        try await admin.execute("CREATE DATABASE \(name) TEMPLATE template0 ENCODING 'UTF8'", within: .seconds(60))
        let folder = try DataFolder()
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body("\(base) dbname=\(name)", try MigratedApp.write(into: folder.path), folder.path))
        } catch { outcome = .failure(error) }
        try await admin.execute("DROP DATABASE \(name) WITH (FORCE)", within: .seconds(60))
        await admin.close()
        try outcome.get()
    }

    private static func makeTables(_ app: String, _ conninfo: String) async throws {
        let made = try await Program.sluice(["migrate", "schema", app, "--postgres", conninfo, "--yes"])
        try #require(made.code == .exit(0), "\(made)")
    }

    // MARK: schema

    @Test func `schema shows the SQL, asks, and makes tables, indexes and comments once`() async throws {
        try await Self.withApp { conninfo, app, _ in
            let unasked = try await Program.sluice(["migrate", "schema", app, "--postgres", conninfo])
            #expect(unasked.code == .exit(78) && unasked.err.contains("pass --yes"), "\(unasked)")
            #expect(
                unasked.out.contains(#"CREATE TABLE "shop"."things""#) && unasked.out.contains(#"CREATE SCHEMA IF NOT EXISTS "people""#))
            #expect(unasked.out.contains(#"CREATE INDEX ON "shop"."things" ("owner");"#), "\(unasked.out)")
            #expect(unasked.out.contains(#"CREATE INDEX ON "people"."owners" ("team");"#), "\(unasked.out)")
            let connection = try await PostgresConnection.connect(conninfo)
            #expect(try await connection.query("SELECT to_regclass('shop.things') IS NULL").bool(0, 0) == true)
            try await Self.makeTables(app, conninfo)
            let found = try await connection.query(
                """
                SELECT obj_description('shop.things'::regclass), col_description('shop.things'::regclass, (
                    SELECT attnum FROM pg_attribute WHERE attrelid = 'shop.things'::regclass AND attname = 'owner')),
                    (SELECT count(*) FROM pg_index WHERE indrelid IN ('shop.things'::regclass, 'people.owners'::regclass))
                """)
            #expect(
                found[0, 0] == "Objects of class Thing." && found[0, 1] == "Link to Owner or null." && found.int(0, 2) == 4,
                "\(found[0, 1] ?? "")")
            let again = try await Program.sluice(["migrate", "schema", app, "--postgres", conninfo])
            #expect(again.code == .exit(0) && again.out.hasSuffix("-- Nothing changes."), "\(again)")
            #expect(try await connection.query("SELECT count(*) FROM pg_index WHERE indrelid = 'shop.things'::regclass").int(0, 0) == 2)
            // The table of custom user data alone is missing.
            let custom = """
                { "enabled": true, "mongo_service_name": "mongodb-atlas", "database_name": "people", "collection_name": "profiles",
                  "user_id_field": "userId" }
                """
            try MigratedApp.put(Array(custom.utf8), "\(app)/auth/custom_user_data.json")
            try await Self.makeTables(app, conninfo)
            #expect(try await connection.query("SELECT count(*) FROM people.profiles").int(0, 0) == 0)
            await connection.close()
        }
    }

    // MARK: data

    /// The documents of one collection.
    private struct Documents {
        var database: String
        var collection: String
        var type: ObjectType
        var all: [[String: Value]]

        var table: String { "\(database).\(collection)" }
        var bson: [[UInt8]] { all.map { BSONWriter.document($0) } }
    }

    /// Writes the documents in one form.
    ///
    /// - Returns: The words of the command that name them.
    private static func write(_ form: String, _ collections: [Documents], _ folder: String) throws -> [String] {
        let root = "\(folder)/\(form)"
        let isZipped = form.hasSuffix("-gz")
        func put(_ bytes: [UInt8], _ name: String) throws {
            try MigratedApp.put(isZipped ? Gzip.compress(bytes) : bytes, "\(root)/\(name)")
        }
        switch form {
        case "folder", "folder-gz":
            for part in collections {
                let metadata = #"{"options":{},"indexes":[],"collectionName":"\#(part.collection)"}"#
                try put(Array(part.bson.joined()), "dump/\(part.database)/\(part.collection).bson\(isZipped ? ".gz" : "")")
                try put(Array(metadata.utf8), "dump/\(part.database)/\(part.collection).metadata.json\(isZipped ? ".gz" : "")")
            }
            return ["\(root)/dump"]
        case "archive", "archive-gz":
            let parts = collections.map { ArchiveWriter.Collection($0.database, $0.collection, $0.bson) }
            try put(ArchiveWriter.archive(parts + [.init("shop", "unknown", [])], blockDocuments: 7), "all")
            return ["\(root)/all"]
        default:
            for part in collections { try put(Array(text(form, part.all).utf8), "\(part.collection).json") }
            return ["\(root)/\(collections[0].collection).json"]
                + collections.dropFirst().flatMap { ["--collection", "\($0.table)=\(root)/\($0.collection).json"] }
        }
    }

    /// Returns documents as `mongoexport` writes them: an array of the canonical form, lines of the relaxed form, or lines of v1.
    private static func text(_ form: String, _ documents: [[String: Value]]) -> String {
        let texts = documents.map { document in
            let value = Value.dictionary(document)
            return (form == "v1" ? MigratedApp.first(value) : form == "array" ? MigratedApp.canonical(value) : ExtendedJSON.json(value))
                .text
        }
        return form == "array" ? "[" + texts.joined(separator: ",\n") + "]\n" : texts.joined(separator: "\n")
    }

    @Test(arguments: ["folder", "folder-gz", "archive", "archive-gz", "array", "relaxed", "v1"])
    func `data of every form leaves the rows that SQL would`(form: String) async throws {
        var random = SplitMix64()
        let collections = [
            Documents(
                database: "shop", collection: "things", type: MigratedApp.thing, all: (0..<300).map { MigratedApp.thing($0, &random) }),
            Documents(database: "people", collection: "owners", type: MigratedApp.owner, all: MigratedApp.owners(20)),
            Documents(database: "shop", collection: "readings", type: MigratedApp.reading, all: MigratedApp.readings(10)),
        ]
        let seed = random.seed
        try await Self.withApp { conninfo, app, folder in
            try await Self.makeTables(app, conninfo)
            let words = try Self.write(form, collections, folder)
            let options = ["--app", app, "--postgres", conninfo, "--quarantine", folder + "/bad"]
            let ran = try await Program.sluice(["migrate", "data"] + words + options)
            #expect(ran.code == .exit(0), "seed \(seed): \(ran)")
            #expect(ran.out.contains("shop.things (class Thing)") && ran.out.contains("300 rows, 0 in quarantine; read back and equal"))
            // Standard error is no terminal here.
            #expect(ran.err.utf8.allSatisfy { $0 >= 0x20 || $0 == UInt8(ascii: "\n") })
            let connection = try await PostgresConnection.connect(conninfo)
            for part in collections {
                try await connection.script("CREATE TABLE public.expected (LIKE \(part.table) INCLUDING DEFAULTS)")
                try await MigratedApp.insert(part.all, part.type, "public.expected", connection)
                let (found, expected) = (
                    try await MigratedApp.rows(part.table, connection), try await MigratedApp.rows("public.expected", connection)
                )
                #expect(found == expected && found.count == part.all.count, "seed \(seed)")
                try await connection.script("DROP TABLE public.expected")
            }
            // A second run has nothing to do.
            let again = try await Program.sluice(["migrate", "data"] + words + options + ["--json"])
            let json = try JSON.parse(again.out)
            #expect(again.code == .exit(0) && json.array?.compactMap { $0["rows"]?.int } == [20, 10, 300], "\(again)")
            #expect(try await connection.query("SELECT count(*) FROM shop.things").int(0, 0) == 300)
            // Without the progress, the rows that are there already with equal values are no fault.
            try await connection.script("DELETE FROM sluice.import_progress")
            let same = try await Program.sluice(["migrate", "data"] + words + options)
            #expect(same.code == .exit(0) && same.out.contains("300 documents, 0 rows, 300 there already, 0 in quarantine"), "\(same)")
            #expect(same.out.contains("10 documents, 0 rows, 10 there already, 0 in quarantine"), "\(same)")
            try await connection.script("DELETE FROM sluice.import_progress; TRUNCATE shop.things")
            let filled = try await Program.sluice(["migrate", "data"] + words + options)
            #expect(filled.code == .exit(0) && filled.out.contains("300 documents, 300 rows, 0 in quarantine"), "\(filled)")
            // Whoever empties a table is told how its rows come again.
            try await connection.script("TRUNCATE shop.things")
            let gone = try await Program.sluice(["migrate", "data"] + words + options)
            #expect(gone.code == .exit(0) && gone.out.contains("the table is empty now"), "\(gone)")
            try await connection.script("DELETE FROM sluice.import_progress WHERE type = 'Thing'")
            let anew = try await Program.sluice(["migrate", "data"] + words + options)
            #expect(anew.code == .exit(0) && anew.out.contains("300 rows, 0 in quarantine; read back and equal"), "\(anew)")
            await connection.close()
        }
    }

    @Test func `documents that do not fit are in quarantine with place, key and reason, and the others are rows`() async throws {
        var random = SplitMix64(seed: 5)
        var things = (0..<200).map { MigratedApp.thing($0, &random) }
        things[3]["name"] = nil
        things[50]["name"] = .int(7)
        things[70]["name"] = .string("a\0b")
        things[90]["_id"] = things[10]["_id"]
        things[100]["__v"] = .int(0)
        let bytes = things.map { BSONWriter.document($0) }
        try await Self.withApp { [things] conninfo, app, folder in
            try await Self.makeTables(app, conninfo)
            try MigratedApp.put(Array(bytes.joined()), "\(folder)/shop/things.bson")
            let words = [
                "migrate", "data", "\(folder)/shop/things.bson", "--app", app, "--postgres", conninfo, "--quarantine", folder + "/bad",
            ]
            let ran = try await Program.sluice(words)
            #expect(ran.code == .exit(65), "\(ran)")
            #expect(ran.out.contains("200 documents, 196 rows, 4 in quarantine"), "\(ran.out)")
            #expect(ran.out.contains("not in the schema, left out: __v (1 documents)"), "\(ran.out)")
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder + "/bad").first)
            let lines = try String(contentsOfFile: "\(folder)/bad/\(name)", encoding: .utf8).split(separator: "\n").map {
                try JSON.parse(String($0))
            }
            let wanted = [(3, "required and missing"), (50, "expected string"), (70, "NUL"), (90, "same _id")]
            #expect(lines.count == wanted.count)
            for (line, (index, reason)) in zip(lines, wanted) {
                #expect(line["offset"]?.int == Int64(bytes[..<index].reduce(0) { $0 + $1.count }))
                #expect(line["reason"]?.string?.contains(reason) == true && line["collection"] == "shop.things", "\(line)")
                #expect(line["_id"].map { ExtendedJSON.value($0) } == things[index]["_id"])
                #expect(line["document"]?["_id"] == line["_id"])
            }
            // Again: the outcome is the same, and so is the file.
            let again = try await Program.sluice(words)
            #expect(again.code == .exit(65) && again.out.contains("196 rows, 4 in quarantine; imported before"), "\(again)")
            let after = try String(contentsOfFile: "\(folder)/bad/\(name)", encoding: .utf8).split(separator: "\n").count
            #expect(after == 4)
        }
    }

    @Test(arguments: ["bson", "bson.gz", "archive"])
    func `data continues after kill -9 without a lost or doubled row`(form: String) async throws {
        let count = 60_000
        let pad = String(repeating: "x", count: 300)
        // Every thousandth has no name and goes to the quarantine.
        let documents = (0..<count).map { index in
            BSONWriter.document {
                $0.value("_id", .objectId(ObjectIdentifierBytes(high: 1, low: UInt32(index))))
                if index % 1_000 != 999 { $0.value("name", .string("thing \(index)\(pad)")) }
                $0.value("count", .int(Int64(index)))
            }
        }
        try await Self.withApp { conninfo, app, folder in
            try await Self.makeTables(app, conninfo)
            let path = "\(folder)/shop/things.\(form)"
            let bytes =
                form == "archive"
                ? ArchiveWriter.archive([.init("shop", "things", documents)], blockDocuments: 1_000) : Array(documents.joined())
            try MigratedApp.put(form == "bson.gz" ? Gzip.compress(bytes, level: 1) : bytes, path)
            let words = ["migrate", "data", path, "--app", app, "--postgres", conninfo, "--quarantine", folder + "/bad"]
            let connection = try await PostgresConnection.connect(conninfo)
            var kills = 0
            for _ in 0..<20 {
                let before = try await Self.imported(connection)
                let program = try Program("sluice", words)
                // Killed once a chunk more is in, in the middle of the next one.
                let hasMoved = try await eventually { try await Self.imported(connection) > before || !program.isRunning }
                try #require(hasMoved)
                guard program.isRunning else { break }
                program.signal(SIGKILL)
                _ = await program.end()
                kills += 1
                if try await Self.imported(connection) > Int64(count) * 2 / 3 { break }
            }
            #expect(kills > 1)
            let ran = try await Program.sluice(words)
            #expect(ran.code == .exit(65), "\(ran)")
            #expect(
                ran.out.contains("\(count) documents, \(count - count / 1_000) rows, \(count / 1_000) in quarantine; read back and equal"),
                "\(ran.out)")
            let found = try await connection.query("SELECT count(*), count(DISTINCT count), sum(count) FROM shop.things")
            let sum = (0..<count).filter { $0 % 1_000 != 999 }.reduce(0, +)
            #expect(found.int(0, 0) == Int64(count - count / 1_000) && found.int(0, 1) == found.int(0, 0) && found.int(0, 2) == Int64(sum))
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder + "/bad").first)
            let lines = try String(contentsOfFile: "\(folder)/bad/\(name)", encoding: .utf8).split(separator: "\n")
            let indexes = try lines.map { try #require(try JSON.parse(String($0))["document"]?["count"]?.int) }
            #expect(indexes == (0..<count).filter { $0 % 1_000 == 999 }.map(Int64.init))
            await connection.close()
        }
    }

    /// The number of documents that the database knows to be imported.
    private static func imported(_ connection: PostgresConnection) async throws -> Int64 {
        guard try await connection.query("SELECT to_regclass('sluice.import_progress') IS NOT NULL").bool(0, 0) == true else { return 0 }
        return try await connection.query("SELECT coalesce(sum(documents), 0) FROM sluice.import_progress").int(0, 0) ?? 0
    }

    @Test func `a cut file is an error, and a row that another program changed is found`() async throws {
        try await Self.withApp { conninfo, app, folder in
            try await Self.makeTables(app, conninfo)
            let bytes = MigratedApp.owners(50).map { BSONWriter.document($0) }.joined()
            let words = ["--app", app, "--postgres", conninfo, "--quarantine", folder + "/bad"]
            try MigratedApp.put(Array(bytes.dropLast(3)), folder + "/people/owners.bson")
            let cut = try await Program.sluice(["migrate", "data", folder + "/people"] + words)
            #expect(cut.code == .exit(1) && cut.err.contains("ends inside of the document"), "\(cut)")
            let connection = try await PostgresConnection.connect(conninfo)
            try await connection.script(
                """
                CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.team := upper(NEW.team); RETURN NEW; END $$;
                CREATE TRIGGER changed BEFORE INSERT ON people.owners FOR EACH ROW EXECUTE FUNCTION changed()
                """)
            try MigratedApp.put(Array(bytes), folder + "/people/owners.bson")
            let changed = try await Program.sluice(["migrate", "data", folder + "/people"] + words)
            #expect(changed.code == .exit(1) && changed.err.contains("the table has 50 rows"), "\(changed)")
            await connection.close()
        }
    }

    @Test func `a source without a class of the app is an error with the app's collections`() async throws {
        try await Self.withApp { conninfo, app, folder in
            try MigratedApp.put([], folder + "/dump/shop/nothing.bson")
            try MigratedApp.put([], folder + "/things.bson")
            let words = ["--app", app, "--postgres", conninfo]
            let none = try await Program.sluice(["migrate", "data", folder + "/dump"] + words)
            #expect(
                none.code == .exit(78) && none.err.contains("people.owners, shop.readings, shop.things")
                    && none.err.contains("shop.nothing"), "\(none)")
            let wrong = try await Program.sluice(["migrate", "data", "--collection", "shop.thing=\(folder)/things.bson"] + words)
            #expect(wrong.code == .exit(78) && wrong.err.contains("No class has the collection shop.thing"), "\(wrong)")
            let missing = try await Program.sluice(["migrate", "data", folder + "/none.bson"] + words)
            #expect(missing.code == .exit(78) && missing.err.contains("cannot be read"), "\(missing)")
        }
    }
}
