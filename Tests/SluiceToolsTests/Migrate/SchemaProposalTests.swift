import Foundation
import SluiceCore
import SluiceGateway
import SluiceValues
import TestSupport
import Testing

@testable import SluiceTools

/// Schemas that `sluice migrate infer` proposes.
struct SchemaProposalTests {
    private static let empty = [
        "realm_config.json": #"{ "app_id": "dev-abcde", "name": "dev" }"#,
        "auth/providers.json": #"{ "anon-user": { "name": "anon-user", "type": "anon-user", "disabled": false } }"#,
        "sync/config.json":
            #"{ "type": "flexible", "state": "enabled", "development_mode_enabled": true, "service_name": "m", "queryable_fields_names": [] }"#,
    ]

    private static func with<R: Sendable>(
        _ files: [String: String] = empty, dump: [String: [UInt8]], _ body: (_ app: String, _ dump: String) async throws -> R
    ) async throws -> R {
        try await ExportCheckTests.with(files) { root in
            let folder = root + "-dump"
            defer { try? FileManager.default.removeItem(atPath: folder) }
            for (path, bytes) in dump {
                let file = URL(fileURLWithPath: "\(folder)/\(path)")
                try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(bytes).write(to: file)
            }
            return try await body(root, folder)
        }
    }

    private static func lines(_ documents: [JSON]) -> [UInt8] { Array(documents.map { $0.text + "\n" }.joined().utf8) }

    /// Returns the schema that is proposed for one collection of JSON documents.
    private static func proposal(_ documents: [JSON], tolerance: Double = 0.01) async throws -> (schema: JSON, text: String) {
        try await with(dump: ["db/items.json": lines(documents)]) { app, dump in
            let proposal = try SchemaProposal(at: app, options: .init(sources: [dump], tolerance: tolerance))
            let text = try #require(proposal.files["data_sources/m/db/items/schema.json"])
            return (try JSON.parse(text), proposal.text)
        }
    }

    // MARK: Types

    @Test func `numbers unify, and a field is required only if each document has a value`() async throws {
        let (schema, _) = try await Self.proposal([
            ["_id": "a", "long": 1, "double": 1, "decimal": 1.5, "always": true, "null": .null, "some": "x"],
            [
                "_id": "b", "long": ["$numberLong": "5000000000"], "double": 0.5, "decimal": ["$numberDecimal": "1"], "always": false,
                "some": .null,
            ],
        ])
        #expect(schema["title"] == "items" && schema["required"] == ["_id", "long", "double", "decimal", "always"])
        let types = try #require(schema["properties"]?.members).map { "\($0.key) \($0.value["bsonType"]?.string ?? "")" }
        #expect(types == ["_id string", "long long", "double double", "decimal decimal", "always bool", "some string"])
    }

    @Test func `a few values of another type are exceptions with a key, and more make the field mixed`() async throws {
        var documents = (0..<200).map { ["_id": .int(Int64($0)), "size": .string("s\($0)")] as JSON }
        documents[7] = ["_id": 7, "size": 7]
        let (schema, text) = try await Self.proposal(documents)
        #expect(schema["properties"]?["size"]?["bsonType"] == "string")
        #expect(text.contains("size: string, required") && text.contains("but long 1 times at size, such as in _id 7"), "\(text)")
        #expect(try await Self.proposal(documents, tolerance: 0).schema["properties"]?["size"]?["bsonType"] == "mixed")
        for index in 0..<5 { documents[index] = ["_id": .int(Int64(index)), "size": true] }
        #expect(try await Self.proposal(documents).schema["properties"]?["size"]?["bsonType"] == "mixed")
    }

    @Test func `objects are embedded, and dictionaries if their keys are many and their values of one type`() async throws {
        let documents: [JSON] = (0..<50).map { index in
            [
                "_id": .int(index), "address": ["city": "Ürgl", "zip": .int(index)],
                "scores": .object([.init("player\(index)", .int(index)), .init("player\(index + 1)", 1.5)]),
                "byDay": .object([.init("2024-01-0\(index % 9 + 1)", ["n": .int(index)])]), "tags": ["a", .null],
                "stops": [["name": "x"], ["name": "y", "at": ["$date": "2024-01-01T00:00:00Z"]]], "nothing": [:], "none": [],
            ]
        }
        let (schema, _) = try await Self.proposal(documents)
        let properties = try #require(schema["properties"])
        #expect(properties["address"]?["title"] == "items_address" && properties["address"]?["required"] == ["city", "zip"])
        #expect(properties["scores"] == ["bsonType": "object", "additionalProperties": ["bsonType": "double"]])
        #expect(properties["byDay"]?["additionalProperties"]?["title"] == "items_byDay")
        #expect(properties["tags"] == ["bsonType": "array", "items": ["bsonType": ["string", "null"]]])
        #expect(properties["stops"]?["items"]?["required"] == ["name"])
        #expect(
            properties["nothing"] == ["bsonType": "mixed"] && properties["none"] == ["bsonType": "array", "items": ["bsonType": "mixed"]])
        #expect(schema["required"] == ["_id"])
    }

    @Test func `values that no property holds and names that no property has are said`() async throws {
        let (schema, text) = try await Self.proposal([
            ["_id": 1, "pattern": ["$regex": "x", "$options": ""], "a.b": 1, "x": "y"],
            ["_id": 2, "pattern": "x", "a.b": 2],
        ])
        #expect(schema["properties"]?.members?.map(\.key) == ["_id", "pattern", "x"])
        #expect(
            schema["properties"]?["pattern"]?["bsonType"] == "string" && text.contains("but unfit 1 times at pattern, such as in _id 1"))
        #expect(
            text.contains("a.b: left out, because a property cannot have this name") && text.contains("x: string, in 1 (50.0 %)"), "\(text)"
        )
    }

    @Test func `a collection without a usable key is left out with the reason`() async throws {
        try await Self.with(dump: ["db/items.json": Self.lines([["_id": 1.5]]), "db/none.bson": []]) { app, dump in
            let proposal = try SchemaProposal(at: app, options: .init(sources: [dump]))
            #expect(proposal.isEmpty && proposal.notes.contains { $0.hasPrefix("db.items cannot be synchronised: its _id is none of") })
            #expect(proposal.notes.contains("db.none has no document."))
        }
    }

    // MARK: Links

    @Test func `a field whose values are keys of another collection is a link, with its rate`() async throws {
        let owners = (0..<30).map { ["_id": ["$oid": .string(Self.oid($0))], "name": .string("n\($0)")] as JSON }
        let items = (0..<300).map { index in
            [
                "_id": .string("i\(index)"), "owner": ["$oid": .string(Self.oid(index % 31))],
                "friends": [["$oid": .string(Self.oid(index % 30))]], "other": ["$oid": .string(Self.oid(1_000 + index))],
            ] as JSON
        }
        try await Self.with(dump: ["db/items.json": Self.lines(items), "db/owners.json": Self.lines(owners)]) { app, dump in
            let proposal = try SchemaProposal(at: app, options: .init(sources: [dump], classes: [("db.owners", "Owner")]))
            let links = try JSON.parse(try #require(proposal.files["data_sources/m/db/items/relationships.json"]))
            let ref: JSON = "#/relationship/m/db/owners"
            #expect(
                links == [
                    "owner": ["ref": ref, "foreign_key": "_id", "is_list": false],
                    "friends": ["ref": ref, "foreign_key": "_id", "is_list": true],
                ])
            #expect(proposal.text.contains("link to db.owners: 100 of 100 sampled values are keys there"), "\(proposal.text)")
            let schema = try JSON.parse(try #require(proposal.files["data_sources/m/db/items/schema.json"]))
            #expect(schema["required"] == ["_id", "other"])
            try proposal.write()
            let report = try await ExportCheck.report(at: app, appID: nil)
            #expect(report.refusals.isEmpty && report.app?.schema["items"]?["owner"]?.type == .link(to: "Owner"), "\(report.text)")
        }
    }

    @Test func `fields of embedded objects and of lists of them are links by their paths, and no link is required`() async throws {
        let owners = (0..<30).map { ["_id": ["$oid": .string(Self.oid($0))]] as JSON }
        let countries = (0..<20).map { ["_id": .string("country \($0)")] as JSON }
        let items = (0..<100).map { index in
            let owner = ["$oid": .string(Self.oid(index % 30))] as JSON
            return [
                "_id": .string("i\(index)"),
                "home": ["_id": owner, "country": .string("country \(index % 20)"), "zip": .string("\(index)")],
                "stops": [["at": ["owner": owner, "friends": [owner]], "n": 1], ["at": ["owner": owner, "friends": []], "n": 2]],
                // Values of a dictionary, and a name with a point, have no path.
                "byDay": .object([.init("2024-01-0\(index % 9 + 1)", ["owner": owner])]), "home.country": owner,
                "odd": index == 7 ? ["owner": "someone"] : ["owner": owner],
            ] as JSON
        }
        let dump = ["db/items.json": Self.lines(items), "db/owners.json": Self.lines(owners), "db/countries.json": Self.lines(countries)]
        try await Self.with(dump: dump) { app, dump in
            let proposal = try SchemaProposal(at: app, options: .init(sources: [dump]))
            let links = try JSON.parse(try #require(proposal.files["data_sources/m/db/items/relationships.json"]))
            func link(_ target: String, isList: Bool = false) -> JSON {
                ["ref": .string("#/relationship/m/db/\(target)"), "foreign_key": "_id", "is_list": .bool(isList)]
            }
            #expect(
                links == [
                    "home.country": link("countries"), "stops.[].at.owner": link("owners"),
                    "stops.[].at.friends": link("owners", isList: true),
                ], "\(links.text)")
            #expect(
                proposal.text.contains("stops.[].at.owner is a link to db.owners: 100 of 100 sampled values are keys there"),
                "\(proposal.text)")
            let schema = try JSON.parse(try #require(proposal.files["data_sources/m/db/items/schema.json"]))
            let stop = try #require(schema["properties"]?["stops"]?["items"])
            #expect(stop["required"] == ["n"] && stop["properties"]?["at"]?["required"] == nil, "\(stop.text)")
            #expect(schema["properties"]?["home"]?["required"] == ["_id", "zip"])
            try proposal.write()
            let report = try await ExportCheck.report(at: app, appID: nil)
            #expect(report.refusals.isEmpty, "\(report.text)")
            let types = report.app?.schema
            #expect(types?["items_home"]?["country"]?.type == .link(to: "countries"))
            #expect(types?["items_stops_at"]?["friends"]?.type == .link(to: "owners"))
        }
    }

    private static func oid(_ number: Int) -> String { ObjectIdentifierBytes(high: 3, low: UInt32(number)).description }

    // MARK: Files

    @Test func `a schema that exists stays, unless the command is told to replace it`() async throws {
        var files = Self.empty
        files["data_sources/m/db/items/schema.json"] = ExportCheckTests.item
        files["data_sources/m/db/empty/schema.json"] = "{}"
        let dump = ["db/items.json": Self.lines([["_id": 1]]), "db/empty.json": Self.lines([["_id": 2]])]
        try await Self.with(files, dump: dump) { app, dump in
            let proposal = try SchemaProposal(at: app, options: .init(sources: [dump]))
            #expect(Set(proposal.files.keys) == ["data_sources/m/db/empty/schema.json"])
            #expect(proposal.notes == ["db.items has a schema and is left as it is. --overwrite replaces it."])
            try proposal.write()
            #expect(try String(contentsOfFile: "\(app)/data_sources/m/db/items/schema.json", encoding: .utf8) == ExportCheckTests.item)
            let all = try SchemaProposal(at: app, options: .init(sources: [dump], overwrites: true))
            #expect(all.files.keys.contains("data_sources/m/db/items/schema.json"))
        }
    }

    @Test func `a path through dots names no database`() async throws {
        try await Self.with(dump: ["tasks.json": Self.lines([["_id": 1]])]) { app, dump in
            try FileManager.default.createDirectory(atPath: "\(dump)/x", withIntermediateDirectories: true)
            for source in ["\(dump)/./tasks.json", "\(dump)/x/../tasks.json"] {
                let error = #expect(throws: SluiceError.self) { try SchemaProposal(at: app, options: .init(sources: [source])) }
                #expect(error?.message.contains("it does not name its collection") == true, "\(String(describing: error))")
                let named = try SchemaProposal(at: app, options: .init(sources: [source], database: "todo"))
                #expect(named.files.keys.contains("data_sources/m/todo/tasks/schema.json"))
            }
        }
    }

    /// Collections are folders of the app directory, and a source may have any name.
    @Test func `a collection that no folder can be named after is left out`() async throws {
        let document = BSONWriter.document(["_id": .string("a")])
        let archive = ArchiveWriter.archive([
            .init("db", "../../../out", [document]), .init("..", "out", [document]), .init("db", "in", [document]),
        ])
        let dump = [
            "dump/db/logs%2F2020.json": Self.lines([["_id": 1]]), "dump/db/%2E%2E.json": Self.lines([["_id": 1]]),
            "dump/%2E%2E/out.json": Self.lines([["_id": 1]]), "dump/db/items.json": Self.lines([["_id": 1]]),
            "dump/db/long.bson": document, "dump/db/long.metadata.json": Array(#"{ "collectionName": "../../../out" }"#.utf8),
            "all": archive,
        ]
        try await Self.with(dump: dump) { app, dump in
            let proposal = try SchemaProposal(at: app, options: .init(sources: [dump + "/dump", dump + "/all"]))
            let schemas = proposal.files.keys.filter { $0.hasSuffix("/schema.json") }.sorted()
            #expect(schemas == ["data_sources/m/db/in/schema.json", "data_sources/m/db/items/schema.json"])
            #expect(proposal.notes.filter { $0.hasSuffix("is left out: a folder cannot have its name.") }.count == 6, "\(proposal.notes)")
            for name in ["todo.", ".tasks", "todo"] {
                let options = SchemaProposal.Options(sources: [], named: [(name, dump + "/dump/db/items.json")])
                let error = #expect(throws: SluiceError.self) { try SchemaProposal(at: app, options: options) }
                #expect(error?.code == .configInvalid)
            }
        }
    }
}
