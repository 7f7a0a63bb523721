import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceSDK
import TestSupport
import Testing

final class Reading: AsymmetricObject {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var store: String
    @Persisted var value: Double
}

final class Sample: EmbeddedObject {
    @Persisted var name: String
    @Persisted var level: Int
}

final class Survey: AsymmetricObject {
    @Persisted(primaryKey: true) var _id: String
    @Persisted var main: Sample?
    @Persisted var others: List<Sample>
    @Persisted var named: Map<String, Sample?>
    @Persisted var order: Order?
}

/// Asymmetric objects of an app, from the device to their table (ING-4 to ING-9).
@Suite(.timeLimit(.minutes(5))) struct `Asymmetric objects of an app` {
    /// An app that only sends.
    @MainActor
    private static func open(
        _ gateway: RunningGateway, _ folder: Phone.Folder, _ said: Phone.Said, _ types: [ObjectBase.Type] = [Reading.self, Order.self]
    ) async throws -> Realm {
        var configuration = try await Phone.user(gateway, said, folder).flexibleSyncConfiguration()
        configuration.objectTypes = types
        return try await Realm(configuration: configuration)
    }

    @MainActor
    private static func send(_ realm: Realm, _ keys: [String], store: String = "north") throws {
        try realm.write {
            for key in keys { realm.create(Reading.self, value: ["_id": key, "store": store, "value": 1.5] as [String: Any]) }
        }
    }

    @MainActor
    private static func upload(_ realm: Realm) async throws { try await #require(realm.syncSession).wait(for: .upload) }

    @MainActor
    @Test func `Scenario 35, 36: land once, of one commit or of many, and of equal keys the first`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let (folder, said) = (try Phone.Folder(), Phone.Said())
            let realm = try await Self.open(gateway, folder, said)
            try Self.send(realm, (0..<1_500).map { "one\($0)" })
            for number in 0..<50 { try Self.send(realm, ["many\(number)"]) }
            try Self.send(realm, ["one7"], store: "later")
            try await Self.upload(realm)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 1_550)
            #expect(try await gateway.count("SELECT count(*) FROM readings WHERE store = 'later'") == 0)
            #expect(said.all.isEmpty, "\(said.all)")
        }
    }

    /// How many objects of a device's file wait to be sent.
    @MainActor
    private static func waiting(_ realm: Realm) throws -> Int64 {
        let path = try #require(realm.configuration.fileURL).path
        let file = try SQLiteLibrary(reading: path)
        try file.run("PRAGMA busy_timeout = 30000")
        return try #require(try file.run("SELECT count(*) FROM _sluice_ingest").first)
    }

    @MainActor
    @Test func `Scenario 35: leave the device when they are acknowledged, of one commit or of many`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let (folder, said) = (try Phone.Folder(), Phone.Said())
            let realm = try await Self.open(gateway, folder, said)
            let session = try #require(realm.syncSession)
            let commits = [[(0..<1_500).map { "one\($0)" }], (0..<50).map { ["many\($0)"] }]
            for (number, commits) in commits.enumerated() {
                session.suspend()
                for keys in commits { try Self.send(realm, keys) }
                #expect(try Self.waiting(realm) == Int64(commits.joined().count))
                session.resume()
                try await Self.upload(realm)
                #expect(try Self.waiting(realm) == 0)
                #expect(try await gateway.count("SELECT count(*) FROM readings") == [1_500, 1_550][number])
            }
            #expect(said.all.isEmpty, "\(said.all)")
        }
    }

    @MainActor
    @Test func `Scenario 40: wait for any time offline, also over a restart of the app, and land once`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            let (folder, said) = (try Phone.Folder(), Phone.Said())
            do {
                let realm = try await Self.open(gateway, folder, said)
                let session = try #require(realm.syncSession)
                session.suspend()
                try Self.send(realm, (0..<2_500).map { "r\($0)" })
                #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
            }
            let realm = try await Self.open(gateway, folder, said)
            realm.syncSession?.resume()
            try await Self.upload(realm)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 2_500)
            // Nothing is left that would be sent again.
            try await gateway.sql("DELETE FROM readings")
            try Self.send(realm, ["last"])
            try await Self.upload(realm)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 1)
        }
    }

    @MainActor
    @Test func `Scenario 39: that may not be inserted are named one by one, and the session goes on`() async throws {
        let rules = """
            {
                "database": "public", "collection": "readings",
                "roles": [
                    {
                        "name": "nobody", "apply_when": {}, "document_filters": { "read": true, "write": true },
                        "read": true, "write": true, "insert": false, "delete": true, "search": true
                    }
                ]
            }
            """
        try await RunningGateway.with(files: [ShopApp.table("readings", "rules"): rules]) { @MainActor gateway in
            let (folder, said) = (try Phone.Folder(), Phone.Said())
            let realm = try await Self.open(gateway, folder, said)
            try Self.send(realm, ["a", "b"])
            try await Self.upload(realm)
            await said.wait { !$0.sync.isEmpty }
            let infos = said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(Set(infos.map(\.objectType)) == ["Reading"])
            #expect(Set(infos.map { "\($0.primaryKey)" }).count == 2)
            #expect(infos.allSatisfy { $0.code == 230 && $0.reason.contains("insert") }, "\(infos.map(\.reason))")
            // The session goes on: an ordinary object arrives.
            let subscriptions = realm.subscriptions
            try await subscriptions.update { subscriptions.append(QuerySubscription<Order> { $0.store == "north" }) }
            try await realm.syncSession?.wait(for: .download)
            try realm.write { _ = realm.create(Order.self, value: ["_id": "o", "store": "north", "size": 1]) }
            try await Self.upload(realm)
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
        }
    }

    @MainActor
    @Test func `Scenario 39: that the write filter does not match are refused with 230, and those beside them are stored`() async throws {
        let rules = """
            {
                "database": "public", "collection": "readings",
                "roles": [
                    {
                        "name": "north", "apply_when": {}, "document_filters": { "read": true, "write": { "store": "north" } },
                        "read": true, "write": true, "insert": true, "delete": true
                    }
                ]
            }
            """
        try await RunningGateway.with(files: [ShopApp.table("readings", "rules"): rules]) { @MainActor gateway in
            let (folder, said) = (try Phone.Folder(), Phone.Said())
            let realm = try await Self.open(gateway, folder, said)
            try realm.write {
                for (key, store) in [("a", "north"), ("b", "south"), ("c", "north")] {
                    realm.create(Reading.self, value: ["_id": key, "store": store, "value": 1] as [String: Any])
                }
            }
            try await Self.upload(realm)
            await said.wait { !$0.sync.isEmpty }
            let infos = said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(infos.map(\.primaryKey) == [.string("b")] && infos.map(\.code) == [230])
            #expect(infos.first?.reason == "Not allowed to insert this object into Reading.", "\(infos.map(\.reason))")
            // Those beside it, and later ones, stand.
            try Self.send(realm, ["d"])
            try await Self.upload(realm)
            #expect(try await gateway.count("SELECT count(*) FROM readings WHERE _id IN ('a', 'c', 'd')") == 3)
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 3)
        }
    }

    private static let surveys: [String: String] = [
        ShopApp.table("surveys", "schema"): """
        {
            "title": "Survey", "bsonType": "object", "required": ["_id"],
            "properties": {
                "_id": { "bsonType": "string" },
                "main": \(sample), "others": { "bsonType": "array", "items": \(sample) },
                "named": { "bsonType": "object", "additionalProperties": \(sample) },
                "order": { "bsonType": "string" }
            }
        }
        """,
        ShopApp.table("surveys", "relationships"): """
        { "order": { "ref": "#/relationship/postgres/public/orders", "source_key": "order", "foreign_key": "_id", "is_list": false } }
        """,
        ShopApp.table("surveys", "rules"): ShopApp.files[ShopApp.table("readings", "rules")]?
            .replacing("\"readings\"", with: "\"surveys\"") ?? "",
        "sync/config.json": ShopApp.files["sync/config.json"]?.replacing("[\"Reading\"]", with: "[\"Reading\", \"Survey\"]") ?? "",
    ]

    private static let sample = """
        {
            "title": "Sample", "bsonType": "object", "required": ["name", "level"],
            "properties": { "name": { "bsonType": "string" }, "level": { "bsonType": "long" } }
        }
        """

    @MainActor
    @Test func `Scenario 37: carry embedded objects, singly, in lists and in dictionaries, and links as keys`() async throws {
        let table = "CREATE TABLE surveys (_id text PRIMARY KEY, main jsonb, others jsonb, named jsonb, \"order\" text);"
        try await RunningGateway.deploy(ShopApp.tables + table) { deployment in
            try await deployment.run(ShopApp.files.merging(Self.surveys) { $1 }) { @MainActor gateway in
                let (folder, said) = (try Phone.Folder(), Phone.Said())
                let realm = try await Self.open(gateway, folder, said, [Survey.self, Order.self])
                let subscriptions = realm.subscriptions
                try await subscriptions.update { subscriptions.append(QuerySubscription<Order> { $0.store == "north" }) }
                try await realm.syncSession?.wait(for: .download)
                try realm.write {
                    let order = realm.create(Order.self, value: ["_id": "o1", "store": "north", "size": 1])
                    let sample = ["name": "a", "level": 1] as [String: Any]
                    realm.create(
                        Survey.self,
                        value: ["_id": "s", "main": sample, "others": [sample, sample], "named": ["k": sample], "order": order]
                            as [String: Any])
                }
                try await Self.upload(realm)
                #expect(said.all.isEmpty, "\(said.all)")
                #expect(
                    try await gateway.count(
                        """
                        SELECT count(*) FROM surveys WHERE main ->> 'name' = 'a' AND jsonb_array_length(others) = 2
                            AND (named -> 'k' ->> 'level')::int = 1 AND "order" = 'o1'
                        """) == 1)
            }
        }
    }

    @MainActor
    @Test func `Scenario 38: of a class that is not asymmetric on the server are refused as a mistake of the app`() async throws {
        let config = ShopApp.files["sync/config.json"]?.replacing("[\"Reading\"]", with: "[]") ?? ""
        try await RunningGateway.with(files: ["sync/config.json": config]) { @MainActor gateway in
            let (folder, said) = (try Phone.Folder(), Phone.Said())
            let realm = try await Self.open(gateway, folder, said)
            try Self.send(realm, ["a"])
            await said.wait { !$0.all.isEmpty }
            let error = try #require(said.sync.first)
            let name = "\(ErrorCode.badChangeset.name) (\(ErrorCode.badChangeset.rawValue)): "
            #expect(error.code == .clientSessionError && error.message.hasPrefix(name) && said.all.count == 1, "\(said.all)")
            #expect(error.message.contains("Reading") && error.message.contains("asymmetric"), "\(error)")
            #expect(try await gateway.count("SELECT count(*) FROM readings") == 0)
        }
    }
}
