import Foundation
import SluiceCore
import SluiceGateway
import TestSupport
import Testing

@testable import SluiceTools

/// The files and classes of an import.
struct ImportPlanTests {
    private static func app() throws -> ImportApp {
        var files = [
            "realm_config.json": #"{"app_id": "a", "name": "a"}"#,
            "sync/config.json": #"{"type": "flexible", "state": "enabled", "service_name": "s"}"#,
            "data_sources/s/config.json": #"{"name": "s", "type": "mongodb-atlas", "config": {}}"#,
        ]
        for (place, title) in [("shop/orders", "Order"), ("shop/tags", "Tag"), ("blog/tags", "Topic")] {
            files["data_sources/s/\(place)/schema.json"] =
                #"{"title": "\#(title)", "bsonType": "object", "properties": {"_id": {"bsonType": "string"}}}"#
        }
        return ImportApp(try AppDirectory.read(files: files))
    }

    /// Runs the body with a folder of files.
    private static func withFiles(_ files: [String: [UInt8]], _ body: (String) throws -> Void) throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("plan-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        for (name, bytes) in files {
            let url = root.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(bytes).write(to: url)
        }
        try body(root.path)
    }

    private static func plan(_ sources: [String], named: [(collection: String, path: String)] = [], jobs: Int = 2) throws -> ImportPlan {
        try ImportPlan(sources: sources, named: named, app: try app(), jobs: jobs)
    }

    private static let document = BSONWriter.document(["_id": .string("a")])

    @Test func `a folder gives a pass for each collection with a class, the largest first, and names the others`() throws {
        let files = [
            "dump/shop/orders.bson": Self.document, "dump/shop/tags.bson": Self.document + Self.document,
            "dump/shop/carts.bson": Self.document, "dump/blog/orders.bson": Self.document, "dump/blog/tags.bson": [],
            "dump/admin/system.version.bson": Self.document, "dump/oplog.bson": Self.document, "dump/prelude.json": Array("{}".utf8),
            "dump/shop/orders.metadata.json": Array("{}".utf8),
        ]
        try Self.withFiles(files) { root in
            let plan = try Self.plan([root + "/dump"])
            // The folder of a database names it, however it is called.
            #expect(try Self.plan([root + "/dump/blog/../shop/."]).types == ["Order", "Tag"])
            #expect(plan.stages.map { $0.map { $0.map(\.targets).joined().map(\.type) } } == [[["Tag"], ["Order"], ["Topic"]]])
            #expect(plan.notes.count == 2 && plan.notes[0].contains("blog.orders") && plan.notes[1].contains("shop.carts"), "\(plan.notes)")
        }
    }

    @Test func `two files of a class follow each other`() throws {
        try Self.withFiles(["a/shop/orders.bson": Self.document, "b/shop/orders.bson": Self.document]) { root in
            let plan = try Self.plan([root + "/a", root + "/b"])
            #expect(plan.stages.map { $0.map(\.count) } == [[2]])
        }
    }

    @Test func `a file finds its class by folder, by its name alone, or by the option`() throws {
        let files = ["shop/tags.json": "[]", "x/orders.json": "[]", "x/tags.json": "[]", "x/other": "[]"].mapValues { Array($0.utf8) }
        try Self.withFiles(files) { root in
            let plans = [
                try Self.plan([root + "/shop/tags.json"]), try Self.plan([root + "/x/orders.json"]),
                try Self.plan([], named: [("blog.tags", root + "/x/other")]),
            ]
            #expect(plans.map(\.types) == [["Tag"], ["Order"], ["Topic"]])
            // Two databases have a collection of the name.
            let error = #expect(throws: SluiceError.self) { try Self.plan([root + "/x/tags.json"]) }
            #expect(error?.code == .configInvalid && error?.fix?.contains("--collection db.coll=") == true)
            let unknown = #expect(throws: SluiceError.self) { try Self.plan([], named: [("blog.tag", root + "/x/other")]) }
            #expect(unknown?.message.contains("blog.tag") == true && unknown?.fix?.contains("blog.tags, shop.orders, shop.tags") == true)
        }
    }

    @Test func `the collections of an archive are shared out among the jobs`() throws {
        let archive = ArchiveWriter.archive([
            .init("shop", "orders", [Self.document]), .init("shop", "tags", []), .init("blog", "tags", [Self.document]),
            .init("blog", "carts", []), .init("admin", "system.version", [Self.document]),
        ])
        try Self.withFiles(["all": archive]) { root in
            for (jobs, types) in [
                (1, [["Order", "Tag", "Topic"]]), (2, [["Order", "Topic"], ["Tag"]]), (9, [["Order"], ["Tag"], ["Topic"]]),
            ] {
                let plan = try Self.plan([root + "/all"], jobs: jobs)
                #expect(plan.stages.map { $0.map { $0.map(\.targets).joined().map(\.type) } } == [types])
                #expect(plan.notes.count == 1 && plan.notes[0].contains("blog.carts"), "\(plan.notes)")
            }
            let error = #expect(throws: SluiceError.self) { try Self.plan([], named: [("shop.orders", root + "/all")]) }
            #expect(error?.message.contains("is an archive") == true)
        }
    }
}
